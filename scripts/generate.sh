#!/usr/bin/env bash
# Copies into the Python package what it shares with Go: the Lua scripts, which it runs, the golden vectors, which its
# tests read, and the licence. Writes docs/CLI.md, schemas and golden outputs of the command delayed, which its tests
# compare. With --check it only prints what differs among the copies.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

package=python-compat/src/godelayed
failed=0

# share copies files into a folder, and removes files there that no longer have a source.
share() { # folder, files...
	local folder=$1 file name stale=
	shift
	for file in "$folder"/*; do
		name=${file##*/}
		[[ " ${*##*/} " == *" $name "* || ! -e $file ]] || stale+=" $file"
	done
	if [ "$check" = 1 ]; then
		for file in "$@"; do
			if ! cmp -s "$file" "$folder/${file##*/}"; then
				echo "generate: $folder/${file##*/} is not $file: run make generate"
				failed=1
			fi
		done
		for file in $stale; do
			echo "generate: $file has no source any more: run make generate"
			failed=1
		done
		return
	fi
	mkdir -p "$folder"
	cp "$@" "$folder"
	# shellcheck disable=SC2086 # a list of words
	[ -z "$stale" ] || rm $stale
}

# copy is share for one file, in a folder that has others.
copy() { # folder, file
	if [ "$check" = 0 ]; then
		cp "$2" "$1"
	elif ! cmp -s "$2" "$1/${2##*/}"; then
		echo "generate: $1/${2##*/} is not $2: run make generate"
		failed=1
	fi
}

check=0
[ "${1-}" != --check ] || check=1
[ "$check" = 1 ] || go test -count=1 ./internal/schedule -run '^TestVectors$' -update
share $package/lua lua/*.lua
copy python-compat LICENSE
share python-compat/tests/vectors testdata/wire/*.json testdata/schedule/*.json
[ "$check" = 1 ] || go test -count=1 ./cmd/delayed/internal/cli ./cmd/delayed/internal/top \
	-run '^Test(Schemas|Page|Golden)$' -update
[ "$check" = 1 ] || go test -count=1 ./web -run '^TestOpenAPI$' -update
exit $failed
