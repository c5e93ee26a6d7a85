#!/usr/bin/env bash
# Installs the peers that are not Go packages of bench, through the machine's ordinary package clients: PostgreSQL, node
# and npm with apt-get; Celery, dramatiq and RQ with pip, BullMQ with npm and the NATS server with go install, in exact
# versions, into bench/.peers. River and NATS's client come with bench's go.mod. The end names peers that could not be
# installed, which bench leaves out. A second run finds everything in place and takes a second.
#
# Debian starts a cluster of its own when PostgreSQL is installed; bench makes others and does not touch it.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"
cd "$root/bench"

peers=.peers
missing=

say() { printf 'setup-peers: %s\n' "$*"; }

# want runs the function for a peer and goes on without the peer if it fails. The function says why on stderr.
want() { # peers' names, function
	say "$1"
	# A subshell with its own -e: bash ignores -e in a command before ||.
	set +e
	(
		set -e
		"$2"
	)
	local status=$?
	set -e
	[ $status = 0 ] || missing="$missing, $1"
}

# packages installs Debian packages.
packages() {
	local as_root=
	command -v apt-get >/dev/null || die "missing: $* (Debian's names). Without apt-get, install them yourself"
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || die "missing: $* - run as root: apt-get install $*"
		as_root='sudo env DEBIAN_FRONTEND=noninteractive'
	fi
	say "installing $*"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # words
	{
		$as_root apt-get update -q
		$as_root apt-get install -q -y --no-install-recommends "$@"
	}
}

# in_place succeeds if a folder of .peers was finished with the same stamp.
in_place() { # folder, stamp
	[ "$(cat "$peers/$1/stamp" 2>/dev/null)" = "$2" ]
}

python_peers() {
	local stamp
	[ "$(uname)" = Linux ] || die "the Python drivers need Linux: they count calls in a file in memory"
	if ! { command -v python3 && python3 -c 'import venv, ensurepip'; } >/dev/null 2>&1; then
		packages python3 python3-venv
	fi
	stamp="$(python3 --version) $(cksum <drivers/requirements.txt)"
	if ! in_place venv "$stamp"; then
		rm -rf "$peers/venv"
		python3 -m venv "$peers/venv"
		"$peers/venv/bin/python" -m pip install -q --disable-pip-version-check -r drivers/requirements.txt
		printf '%s\n' "$stamp" >"$peers/venv/stamp"
	fi
	for peer in celery dramatiq rq; do
		say "  $peer $("$peers/venv/bin/python" drivers/drive.py --version $peer)"
	done
}

node_peers() {
	local stamp
	if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
		packages nodejs npm
	fi
	[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] ||
		die "Node $(node --version) is too old for ioredis: install Node 20 or newer"
	stamp="$(node --version) $(cksum <drivers/package.json)"
	if ! in_place node "$stamp"; then
		rm -rf "$peers/node"
		mkdir -p "$peers/node"
		cp drivers/package.json "$peers/node"
		(cd "$peers/node" && npm install --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error)
		printf '%s\n' "$stamp" >"$peers/node/stamp"
	fi
	say "  bullmq $(node drivers/bullmq.mjs --version)"
}

postgres_of_river() {
	local postgres
	postgres_binary >/dev/null || packages postgresql
	postgres=$(postgres_binary) ||
		die "PostgreSQL was installed, but there is no server on the PATH or in /usr/lib/postgresql"
	say "  $("$postgres" --version)"
}

# postgres_binary finds the server as bench does.
postgres_binary() {
	command -v postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 | grep .
}

nats_server() {
	install_tool "$root/bench/$peers/bin/nats-server" github.com/nats-io/nats-server/v2@v2.14.8
	say "  $("$peers/bin/nats-server" --version)"
}

want "celery, dramatiq and rq" python_peers
want bullmq node_peers
want "river's PostgreSQL" postgres_of_river
want "NATS JetStream" nats_server
if [ -n "$missing" ]; then
	say "MISSING: ${missing#, } (the messages above say why); bench goes without"
else
	say "done: all peers are there"
fi
