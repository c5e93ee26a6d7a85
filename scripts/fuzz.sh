#!/usr/bin/env bash
# Finds every Fuzz function in every module and fuzzes it for the given time or number of inputs: go test takes one of
# them at a time.
#
#   scripts/fuzz.sh 30s
#   scripts/fuzz.sh 30000x
set -euo pipefail
. "$(dirname "$0")/lib.sh"

time=${1:?expected the time for each target, such as 30s, or the number of inputs, such as 30000x}
count=0
failed=
for dir in $(modules); do
	cd "$root/$dir"
	# "package-directory function" for each, without the directories of modules further down.
	while read -r package target; do
		count=$((count + 1))
		printf '== %s %s %s\n' "$dir" "$package" "$target"
		go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$package" || failed="$failed $target"
	done < <(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}
{{end}}' ./... | sed '/^$/d' | xargs grep -HoE '^func Fuzz[A-Za-z0-9_]*\(f \*testing\.F\)' /dev/null |
		sed -E "s,^$PWD/?,./,; s,/?[^/]*\.go:func (Fuzz[A-Za-z0-9_]*)\(.*, \1," | sort -u || true)
done
[ -z "$failed" ] || die "failed:$failed; the inputs are in testdata/fuzz of their packages, keep them as tests"
[ "$count" -gt 0 ] || die "found no Fuzz function: expected func FuzzName(f *testing.F) in some _test.go file"
printf 'fuzz: %d targets, %s each\n' "$count" "$time"
