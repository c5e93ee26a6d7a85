#!/usr/bin/env bash
# Runs make targets one after the other and prints what each took: the time, and the time of the processors. It goes on
# after a failure, so that one run shows all of them, except when setup fails. Ends with status 1 if one failed.
#
# Targets joined by commas are a lane: they run one after the other. Lanes joined by plus signs run side by side,
# because tests wait as well as compute. What their targets print comes when all lanes have ended.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

row='%-12s %-7s %7s %12s\n'
summary=
failed=0
unusable=0

# report prints the summary. The shell's own children are all stages.
report() { # result
	local spent
	times >"$logs/times"
	spent=$(awk -F '[ms ]+' 'NR == 2 { print int($1 * 60 + $2 + $3 * 60 + $4) }' "$logs/times")
	# shellcheck disable=SC2059 # one format for all rows
	printf "\n$row%s$row" stage result time processors "$summary" together "$1" "$SECONDS s" "$spent s"
}

# run runs a stage. It leaves its status, and how many seconds it took and how many of the processors', in a file.
run() { # stage
	local start=$SECONDS status TIMEFORMAT='%0U %0S'
	{ time make "$1" 2>&3; } 3>&2 2>"$logs/$1.spent"
	status=$?
	awk -v status=$status -v took=$((SECONDS - start)) '{ print status, took, $1 + $2 }' \
		"$logs/$1.spent" >"$logs/$1.end"
	return $status
}

# note adds a stage to the summary.
note() { # stage, status, seconds, seconds of the processors
	local result=ok
	if [ "$2" != 0 ]; then
		result=FAILED failed=1
		[ "$1" != setup ] || unusable=1
	fi
	# shellcheck disable=SC2059 # one format for all rows
	summary+=$(printf "$row" "$1" "$result" "$3 s" "${4-?} s")$'\n'
}

# lane runs its stages one after the other, and says when each has ended.
lane() {
	local stage start status
	for stage in "$@"; do
		start=$SECONDS
		run "$stage" >"$logs/$stage" 2>&1
		status=$?
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
		run "$group"
		# shellcheck disable=SC2046 # status and seconds
		note "$group" $(cat "$logs/$group.end")
	fi
	[ "$unusable" = 0 ] || break
done

if [ "$failed" = 1 ]; then
	report FAILED
	exit 1
fi
report ok
