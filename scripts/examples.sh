#!/usr/bin/env bash
# Runs the quickstart and the dashboard as a newcomer does: from the root, without REDIS_URL.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

unset REDIS_URL
out=$(go run ./examples/quickstart 2>&1) || { printf '%s\n' "$out"; die "the quickstart failed"; }
printf '%s\n' "$out"
case $out in
	*"All 9 tasks are done"*"ran 2 times"*) ;;
	*) die "the quickstart did not show that the killed worker's task ran again" ;;
esac

# go run would not hand on a signal that only it gets, so the program is built.
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
go build -o "$dir/dashboard" ./examples/dashboard
"$dir/dashboard" -listen 127.0.0.1:0 >"$dir/out" 2>&1 &
pid=$!
for _ in $(seq 300); do
	! grep -q 'The dashboard is at' "$dir/out" || break
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.1
done
cat "$dir/out"
port=$(sed -n 's,^The dashboard is at http://127.0.0.1:\([0-9]*\)/queues/login#.*,\1,p' "$dir/out")
[ -n "$port" ] || die "the dashboard did not say where it is"
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /queues/login HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
case $(cat <&3) in
	*" 200 OK"*"Sign in"*) ;;
	*) die "the dashboard has no page to sign in with" ;;
esac
exec 3>&-
kill -TERM "$pid"
wait "$pid" || die "the dashboard did not end well"
pid=
