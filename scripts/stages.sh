#!/usr/bin/env bash
# Runs make targets one after the other and prints what each took. It goes on after a failure, so that one run shows all
# of them, except when setup fails. Ends with status 1 if one failed.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

summary=
failed=0
report() { printf '\n%-12s %-7s %s\n%s%-12s %-7s %d s\n' stage result time "$summary" together "$1" "$SECONDS"; }

for stage in "$@"; do
	printf '\n==== %s\n' "$stage"
	start=$SECONDS
	if make "$stage"; then result=ok; else result=FAILED failed=1; fi
	summary+=$(printf '%-12s %-7s %d s' "$stage" "$result" $((SECONDS - start)))$'\n'
	if [ "$stage" = setup ] && [ "$failed" = 1 ]; then
		break
	fi
done

if [ "$failed" = 1 ]; then
	report FAILED
	exit 1
fi
report ok
