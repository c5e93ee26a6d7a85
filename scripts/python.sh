#!/usr/bin/env bash
# Checks the Python package with the interpreter of .venv: style, types, tests, the contents of its wheel, and the first
# steps of its README. With arguments, which it hands to pytest, it only runs the tests.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root/python-compat"

python=$root/.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
tests=("$python" -B -m pytest -p no:cacheprovider)
export MYPY_CACHE_DIR=$root/.cache/mypy-stubs # for a test that runs mypy
[ $# = 0 ] || exec "${tests[@]}" "$@"

"$python" -m ruff check --no-cache .
"$python" -m ruff format --no-cache --check .
"$python" -m mypy --cache-dir="$root/.cache/mypy"
"$python" -m pyright
"${tests[@]}"

dist=$(mktemp -d)
trap 'rm -rf "$dist"' EXIT
if ! "$python" -m build --no-isolation --wheel --outdir "$dist" . >"$dist/log" 2>&1; then
	cat "$dist/log"
	die "the wheel does not build"
fi
files=$("$python" -m zipfile -l "$dist"/*.whl)
for file in godelayed/py.typed $(cd src && ls godelayed/lua/*.lua); do
	[[ $files == *"$file "* ]] || die "$file is missing in the wheel"
done
echo "wheel: $(basename "$dist"/*.whl)"
"$root/scripts/quickstart-python.sh"
