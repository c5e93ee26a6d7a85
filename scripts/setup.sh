#!/usr/bin/env bash
# Installs what the tests need beyond Go, through the machine's ordinary package clients: redis-server, prometheus with
# promtool, systemd-analyze, tmux (tests of what a terminal shows), zsh, fish and bash-completion (tests of completion),
# git, Python with a virtual environment in .venv. "setup.sh check" also installs what `make check` needs: Chromium and
# npm with axe-core in .cache/npm (tests of the dashboard), and a C compiler (race detector). scripts/lint.sh builds the
# linter itself. A second run finds everything in place and takes about a second.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"
for=${1:-test}
[ "$for" = test ] || [ "$for" = check ] || die "unknown argument $for: expected test or check"

say() { printf 'setup: %s\n' "$*"; }

check_go() {
	command -v go >/dev/null || die "no go on the PATH: install Go $go_minimum or newer"
	local have
	have=$(go env GOVERSION)
	have=${have#go}
	if [ "$(printf '%s\n%s\n' "$go_minimum" "$have" | sort -V | head -n 1)" != "$go_minimum" ]; then
		die "Go $have is too old: install Go $go_minimum or newer"
	fi
}

# redis_server prints the server that the tests will start; they take it from REDIS_SERVER as well.
redis_server() { printf '%s\n' "${REDIS_SERVER:-redis-server}"; }

# venv_works succeeds if python3 can make virtual environments, which Debian has in a package of its own.
venv_works() { command -v python3 >/dev/null && python3 -c 'import venv, ensurepip' 2>/dev/null; }

# bash_completion is the library that completion in bash needs; tests take it from BASH_COMPLETION as well.
bash_completion=${BASH_COMPLETION:-/usr/share/bash-completion/bash_completion}

# Each line: a test, and the Debian packages to install when it fails.
missing_packages() {
	command -v git >/dev/null || echo git
	[ -n "${REDIS_SERVER-}" ] || command -v redis-server >/dev/null || echo redis-server
	command -v prometheus >/dev/null && command -v promtool >/dev/null || echo prometheus
	[ "$(uname)" != Linux ] || command -v systemd-analyze >/dev/null || echo systemd
	command -v tmux >/dev/null || echo tmux
	command -v zsh >/dev/null || echo zsh
	command -v fish >/dev/null || echo fish
	[ -e "$bash_completion" ] || echo bash-completion
	venv_works || echo python3 python3-venv
	[ "$for" = check ] || return 0
	command -v "$(go env CC)" >/dev/null || echo gcc libc6-dev
	[ -n "${CHROMIUM-}" ] || command -v chromium >/dev/null || echo chromium
	command -v npm >/dev/null || echo npm
}

install_packages() {
	local packages as_root=
	packages=$(missing_packages | tr '\n' ' ')
	[ -n "${packages// /}" ] || return 0
	if ! command -v apt-get >/dev/null; then
		die "missing: $packages(Debian's names). Without apt-get, install them yourself," \
			"on macOS: xcode-select --install;" \
			"brew install redis prometheus tmux zsh fish bash bash-completion@2 python node;" \
			"and set CHROMIUM to the program of a Chromium or Chrome"
	fi
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || die "missing: $packages- run as root: apt-get install $packages"
		as_root='sudo env DEBIAN_FRONTEND=noninteractive'
	fi
	say "installing $packages"
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # both are lists of words
	{
		$as_root apt-get update -q
		$as_root apt-get install -q -y --no-install-recommends $packages
	}
}

check_redis() {
	local server version
	server=$(redis_server)
	command -v "$server" >/dev/null ||
		die "$server is not there: set REDIS_SERVER to an existing redis-server, or unset it"
	version=$("$server" --version) || die "$server --version failed: expected a Redis server or a compatible one"
	say "tests run on $server: $version"
}

# make_venv rebuilds .venv when the interpreter or the list of packages has changed. It installs the package of this
# tree as a link to its source.
make_venv() {
	local package=python-compat requirements=python-compat/requirements-test.txt stamp
	[ -f "$requirements" ] || die "$requirements is missing: expected the Python tests' packages, one per line"
	stamp="$root $(python3 --version) $(cat "$requirements" $package/pyproject.toml | cksum)"
	if [ -x .venv/bin/python ] && [ "$(cat .venv/stamp 2>/dev/null)" = "$stamp" ]; then
		say "Python: .venv is in place ($(.venv/bin/python --version))"
		return
	fi
	say "Python: making .venv"
	rm -rf .venv
	python3 -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check -r "$requirements"
	.venv/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e $package
	printf '%s\n' "$stamp" >.venv/stamp
}

# install_npm installs what the tests in a browser take from npm, when their list has changed.
install_npm() {
	local from=itest/dashboard/browser to=.cache/npm
	if cmp -s $from/package-lock.json $to/installed.json; then
		return
	fi
	say "npm: installing into $to"
	rm -rf $to
	mkdir -p $to
	cp $from/package.json $from/package-lock.json $from/.npmrc $to
	(cd $to && npm ci --silent) || die "npm ci failed in $to: see npm's message above, or its log"
	cp $from/package-lock.json $to/installed.json
}

check_go
install_packages
check_redis
make_venv
[ "$for" = test ] || install_npm
say "done: $(go env GOVERSION)"
