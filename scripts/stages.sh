#!/usr/bin/env bash
# Runs make targets one after the other and prints what each took. It goes on after a failure, so that one run shows all
# of them, except when setup fails. Ends with status 1 if one failed.
#
# Targets joined by commas are a lane: they run one after the other. Lanes joined by plus signs run side by side,
# because tests wait as well as compute. What their targets print comes when all lanes have ended.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

summary=
failed=0
unusable=0
report() { printf '\n%-12s %-7s %s\n%s%-12s %-7s %d s\n' stage result time "$summary" together "$1" "$SECONDS"; }

# note adds a stage to the summary.
note() { # stage, status, seconds
	local result=ok
	if [ "$2" != 0 ]; then
		result=FAILED failed=1
		[ "$1" != setup ] || unusable=1
	fi
	summary+=$(printf '%-12s %-7s %d s' "$1" "$result" "$3")$'\n'
}

# lane runs its stages one after the other, and says when each has ended.
lane() {
	local stage start status
	for stage in "$@"; do
		start=$SECONDS
		make "$stage" >"$logs/$stage" 2>&1
		status=$?
		printf '%d %d\n' $status $((SECONDS - start)) >"$logs/$stage.end"
		printf '%s has ended after %d s, with status %d\n' "$stage" $((SECONDS - start)) $status
	done
}

# side_by_side runs several lanes at once.
side_by_side() {
	local lane stage
	for lane in "$@"; do
		# shellcheck disable=SC2086 # a list of words
		lane ${lane//,/ } &
	done
	wait
	for lane in "$@"; do
		for stage in ${lane//,/ }; do
			printf '\n==== %s\n' "$stage"
			cat "$logs/$stage"
			# shellcheck disable=SC2046 # status and seconds
			note "$stage" $(cat "$logs/$stage.end" || echo 1 0)
		done
	done
}

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# Ctrl-C does not reach background processes.
trap 'trap - TERM; kill -TERM 0' INT

for group in "$@"; do
	if [[ $group = *[+,]* ]]; then
		printf '\n==== %s\n' "$(sed 's/,/, /g; s/+/; side by side with /g' <<<"$group")"
		# shellcheck disable=SC2086 # a list of words
		side_by_side ${group//+/ }
	else
		printf '\n==== %s\n' "$group"
		start=$SECONDS
		make "$group"
		note "$group" $? $((SECONDS - start))
	fi
	[ "$unusable" = 0 ] || break
done

if [ "$failed" = 1 ]; then
	report FAILED
	exit 1
fi
report ok
