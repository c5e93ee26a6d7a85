#!/usr/bin/env bash
# Runs a command in every module of go.work and fails if one of the runs failed.
#
#   scripts/each.sh [-n] [-w | -o | -b | -a] command...
#
# -n only in the nested modules, not in the root.
# -w with the workspace (the default): nested modules see this tree's other modules.
# -o with GOWORK=off: each module alone, as its users get it.
# -b both ways.
# -a all at once: one run at the root, with the workspace, and with the pattern of each module's packages after the
#    command, so that Go loads common packages once. The last module comes first: itest, whose tests take longest, so
#    that the others are tested beside it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

list=$(modules)
[ -n "$list" ] || die "go.work lists no module"
if [ "${1-}" = -n ]; then
	list=$(grep -vx . <<<"$list")
	shift
fi
ways=workspace
case ${1-} in
-w) shift ;;
-o) ways=alone && shift ;;
-b) ways='workspace alone' && shift ;;
-a) ways= && shift ;;
esac
[ $# -gt 0 ] || die "no command: expected each.sh [-n] [-w|-o|-b|-a] command..."

if [ -z "$ways" ]; then
	cd "$root"
	# shellcheck disable=SC2046 # a list of words
	exec env -u GOWORK "$@" $(sed 's,$,/...,' <<<"$list" | sed '1!G; h; $!d')
fi

failed=
for dir in $list; do
	for way in $ways; do
		printf '== %s (%s)\n' "$dir" "$way"
		# GOWORK is unset for the workspace, so that go finds go.work by itself.
		if [ "$way" = alone ]; then
			(cd "$root/$dir" && GOWORK=off "$@") || failed="$failed $dir($way)"
		else
			(cd "$root/$dir" && env -u GOWORK "$@") || failed="$failed $dir($way)"
		fi
	done
done
[ -z "$failed" ] || die "failed in:$failed"
