#!/usr/bin/env bash
# Checks that go.work lists every module, that all modules have the same go directive, that the installed package of
# keakon writes its golden vectors, and that the Python package has the licence. With --write it writes the vectors
# instead.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

python=.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
vectors=testdata/wire/keakon.json
if [ "${1-}" = --write ]; then
	"$python" testdata/wire/generate_keakon.py >"$vectors.new"
	mv "$vectors.new" "$vectors"
	exit
fi

failed=0
listed=$(modules | sed 's,^\./,,' | sort)
# Modules in testdata are no modules of this tree: tests of delayedvet read them.
present=$(git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' ':!*/testdata/*' |
	sed 's,/*go\.mod$,,; s,^$,.,' | sort)
if [ "$listed" != "$present" ]; then
	printf 'verify: go.work and the modules of the tree differ:\n'
	diff <(echo "$listed") <(echo "$present") || true
	failed=1
fi

directives=$(for dir in $listed; do grep -H '^go ' "$dir/go.mod"; done; grep -H '^go ' go.work)
if [ "$(printf '%s\n' "$directives" | sed 's/.*://' | sort -u | wc -l)" -ne 1 ]; then
	printf 'verify: go directives differ:\n%s\n' "$directives"
	failed=1
fi

if ! "$python" testdata/wire/generate_keakon.py | diff - "$vectors"; then
	printf 'verify: %s is not what the installed package writes: look why, then run make vectors\n' "$vectors"
	failed=1
fi
if ! cmp LICENSE python-compat/LICENSE; then
	failed=1
fi
exit $failed
