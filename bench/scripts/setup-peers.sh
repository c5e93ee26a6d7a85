#!/usr/bin/env bash
# Installs the stores of the peers that have one of their own: PostgreSQL for river with apt-get, and the NATS server
# with go install, in an exact version, into bench/.peers. A second run finds both in place and takes a second.
#
# Debian starts a cluster of its own when PostgreSQL is installed; bench makes others and does not touch it.
set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

# postgres_binary finds the server as bench does.
postgres_binary() {
	command -v postgres || compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 | grep .
}

if ! postgres_binary >/dev/null; then
	command -v apt-get >/dev/null || die "missing: PostgreSQL. Without apt-get, install it yourself"
	as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo)
	"${as_root[@]}" apt-get update -q
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql
fi
"$(postgres_binary)" --version
install_tool "$root/bench/.peers/bin/nats-server" github.com/nats-io/nats-server/v2@v2.14.8
"$root/bench/.peers/bin/nats-server" --version
