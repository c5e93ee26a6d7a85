#!/usr/bin/env bash
# Runs the tests of the Python package with each version of Python that its classifiers name. Each has an environment of
# its own with the newest libraries that it can have, into which the package is installed: python-compat, or the file
# that is given. Interpreters are those on the PATH, such as python3.11, and those of pyenv. Checks of types and style,
# for which the version does not matter, are left out.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
package=$(realpath "${1:-$root/python-compat}")
cd "$root/python-compat"

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
if [ -d "$package" ]; then # a copy: building leaves nothing behind in the tree
	cp -R "$package" "$root/lua" "$place"
	package=$place/python-compat
fi

# interpreter prints the file of a version of Python.
interpreter() { # 3.11
	local python
	for python in "python$1" "$(pyenv prefix "$1" 2>/dev/null)/bin/python"; do
		"$python" -c 'import sys; print(sys.executable)' 2>/dev/null && return
	done
	die "no Python $1: expected python$1 on the PATH, or pyenv install $1"
}

libraries=$(sed -n '/^$/q; s/==.*//p' requirements-test.txt)
versions=$(sed -n 's/.*Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
for version in $versions; do
	python=$(interpreter "$version")
	"$python" -m venv "$place/$version"
	# shellcheck disable=SC2086 # a list of words
	"$place/$version/bin/python" -m pip install -q --disable-pip-version-check $libraries pytest-xdist "$package"
	printf 'pythons: %s\n' "$("$place/$version/bin/python" --version)"
	"$place/$version/bin/python" -B -m pytest -p no:cacheprovider -n 4 --dist worksteal \
		-k 'not checks_calls and not ruff_would' ||
		die "the tests fail with Python $version"
	rm -rf "${place:?}/$version"
done
