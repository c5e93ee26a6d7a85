#!/usr/bin/env bash
# Runs a command in every module of go.work and fails if one of the runs failed.
#
#   scripts/each.sh [-n] [-x module]... [-w | -o | -b | -a] command...
#
# -n only in the nested modules, not in the root.
# -x not in this module.
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
while [ "${1-}" = -x ]; do
	grep -qxF "./$2" <<<"$list" || die "-x $2: go.work has no such module"
	list=$(grep -vxF "./$2" <<<"$list")
	shift 2
done
ways=workspace
case ${1-} in
-w) shift ;;
-o) ways=alone && shift ;;
-b) ways='workspace alone' && shift ;;
-a) ways= && shift ;;
esac
[ $# -gt 0 ] || die "no command: expected each.sh [-n] [-x module]... [-w|-o|-b|-a] command..."

if [ -z "$ways" ]; then
	cd "$root"
	# shellcheck disable=SC2046 # a list of words
	exec env -u GOWORK "$@" $(sed 's,$,/...,' <<<"$list" | sed '1!G; h; $!d')
fi

# alone runs the command in one module, without the workspace. A module whose command go install builds must have no
# replace lines: it gets them in a copy of its go.mod, and back what the command changes there.
alone() { # directory, command...
	local dir=$root/$1 path copy status=0
	shift
	cd "$dir"
	export GOWORK=off
	path=$(module_path)
	if [ "$dir" = "$root/." ] || grep -q '^replace' go.mod || ! grep -q "$path v" go.mod; then
		"$@"
		return
	fi
	copy=$(mktemp -d)
	cp go.mod go.sum "$copy"
	go mod edit -replace="$path=$root" "$copy/go.mod"
	GOFLAGS="$(go env GOFLAGS) -modfile=$copy/go.mod" "$@" || status=$?
	go mod edit -dropreplace="$path" "$copy/go.mod"
	cmp -s go.mod "$copy/go.mod" || cp "$copy/go.mod" go.mod
	cmp -s go.sum "$copy/go.sum" || cp "$copy/go.sum" go.sum
	rm -r "$copy"
	return "$status"
}

failed=
for dir in $list; do
	for way in $ways; do
		printf '== %s (%s)\n' "$dir" "$way"
		# GOWORK is unset for the workspace, so that go finds go.work by itself.
		if [ "$way" = alone ]; then
			(alone "$dir" "$@") || failed="$failed $dir($way)"
		else
			(cd "$root/$dir" && env -u GOWORK "$@") || failed="$failed $dir($way)"
		fi
	done
done
[ -z "$failed" ] || die "failed in:$failed"
