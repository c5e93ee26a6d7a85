#!/usr/bin/env bash
# Runs make targets one after the other, each named as an argument, and prints what each took: the time, and the time of
# the processors. It goes on after a failure, so that one run shows all of them, except when a setup fails. Ends with
# status 1 if one failed.
set -uo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root" || exit 1

spent=$(mktemp)
trap 'rm -f "$spent"' EXIT
row='%-12s %-7s %7s %12s\n'
summary=
outcome=ok
processors=0
TIMEFORMAT='%0U %0S'

for stage; do
	printf '\n==== %s\n' "$stage"
	start=$SECONDS
	result=ok
	{ time make "$stage" 2>&3; } 3>&2 2>"$spent" || result=FAILED outcome=FAILED
	read -r user system <"$spent"
	processors=$((processors + user + system))
	# shellcheck disable=SC2059 # one format for all rows
	summary+=$(printf "$row" "$stage" "$result" "$((SECONDS - start)) s" "$((user + system)) s")$'\n'
	[[ $stage != setup* || $result = ok ]] || break
done

# shellcheck disable=SC2059 # one format for all rows
printf "\n$row%s$row" stage result time processors "$summary" together "$outcome" "$SECONDS s" "$processors s"
[ "$outcome" = ok ]
