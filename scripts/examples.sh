#!/usr/bin/env bash
# Runs the quickstart as a newcomer does: from the root, without REDIS_URL.
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
