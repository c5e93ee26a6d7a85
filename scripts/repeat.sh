#!/usr/bin/env bash
# Runs `make test` again and again beside four busy loops and prints how long each run took. It ends at the first
# failure and keeps the output of that run, because a test that fails on a busy machine is to be mended.
#
#   scripts/repeat.sh [COUNT]
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

count=${1:-20}
output=.cache/repeat.log
mkdir -p .cache
loops=()
trap '[ ${#loops[@]} = 0 ] || kill "${loops[@]}"' EXIT
trap 'exit 1' INT TERM
for _ in 1 2 3 4; do
	while :; do :; done &
	loops+=($!)
done

for n in $(seq "$count"); do
	start=$SECONDS
	if ! make test >"$output" 2>&1; then
		grep -E '^ *--- FAIL: |^FAIL|^panic: |^FAILED ' "$output" || tail -n 20 "$output"
		die "run $n of $count failed after $((SECONDS - start)) s; its output is in $output"
	fi
	printf 'repeat: run %d of %d passed in %d s\n' "$n" "$count" $((SECONDS - start))
done
