#!/usr/bin/env bash
# Finds every Fuzz function in every module and fuzzes it for the given time or number of inputs: go test takes one of
# them at a time.
#
#   scripts/fuzz.sh 30s
#   scripts/fuzz.sh -b 30000x
#
# -b blindly: which inputs reach new code does not guide it, so Go compiles the packages as for their other tests. Else
#    it compiles them and all that they import once more, which takes longer than a few thousand inputs.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

blind=
if [ "${1-}" = -b ]; then
	blind=yes
	shift
fi
time=${1:?expected the time for each target, such as 30s, or the number of inputs, such as 30000x}
count=0
failed=
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT

# fuzz runs one target. What it finds goes to testdata/fuzz of the package, where the program must run for it.
fuzz() { # package, target
	local flags=(-run='^$' -fuzz="^$2\$" -fuzztime="$time") program=$programs/$count
	if [ -z "$blind" ]; then
		go test "${flags[@]}" "$1"
		return
	fi
	go test -vet=off -c -o "$program" "$1" || return
	(cd "$1" && "$program" "${flags[@]/#-/-test.}" -test.fuzzcachedir="$programs/inputs")
}

for dir in $(modules); do
	cd "$root/$dir"
	# "package-directory function" for each, without the directories of modules further down.
	while read -r package target; do
		count=$((count + 1))
		printf '== %s %s %s\n' "$dir" "$package" "$target"
		fuzz "$package" "$target" || failed="$failed $target"
	done < <(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}
{{end}}' ./... | sed '/^$/d' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)' /dev/null |
		sed -E "s,^$PWD/?,./,; s,/?[^/]*\.go:func (Fuzz[A-Za-z0-9_]*)\(.*, \1," | sort -u || true)
done
[ -z "$failed" ] || die "failed:$failed; the inputs are in testdata/fuzz of their packages, keep them as tests"
[ "$count" -gt 0 ] || die "found no Fuzz function: expected func FuzzName(f *testing.F) in some _test.go file"
printf 'fuzz: %d targets, %s each\n' "$count" "$time"
