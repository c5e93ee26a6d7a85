#!/usr/bin/env bash
# Runs make targets one after the other and prints what each took. It goes on after a failure, so that one run shows all
# of them, except when setup fails. Ends with status 1 if one failed.
#
# Targets joined by a plus sign run side by side, because their tests wait more than they compute. Their outputs are
# printed one after the other when all have ended.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

summary=
failed=0
report() { printf '\n%-12s %-7s %s\n%s%-12s %-7s %d s\n' stage result time "$summary" together "$1" "$SECONDS"; }

# note adds a stage to the summary.
note() { # stage, status, seconds
	local result=ok
	[ "$2" = 0 ] || result=FAILED failed=1
	summary+=$(printf '%-12s %-7s %d s' "$1" "$result" "$3")$'\n'
}

# side_by_side runs several stages at once.
side_by_side() {
	local stage
	for stage in "$@"; do
		(
			start=$SECONDS
			make "$stage" >"$logs/$stage" 2>&1
			printf '%d %d\n' $? $((SECONDS - start)) >"$logs/$stage.end"
		) &
	done
	wait
	for stage in "$@"; do
		printf '\n==== %s\n' "$stage"
		cat "$logs/$stage"
		# shellcheck disable=SC2046 # status and seconds
		note "$stage" $(cat "$logs/$stage.end" || echo 1 0)
	done
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# Ctrl-C does not reach background processes.
trap 'trap - TERM; kill -TERM 0' INT

for group in "$@"; do
	if [[ $group = *+* ]]; then
		printf '\n==== %s, side by side\n' "${group//+/, }"
		# shellcheck disable=SC2086 # a list of words
		side_by_side ${group//+/ }
		continue
	fi
	printf '\n==== %s\n' "$group"
	start=$SECONDS
	make "$group"
	note "$group" $? $((SECONDS - start))
	if [ "$group" = setup ] && [ "$failed" = 1 ]; then
		break
	fi
done

if [ "$failed" = 1 ]; then
	report FAILED
	exit 1
fi
report ok
