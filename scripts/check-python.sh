#!/usr/bin/env bash
# Checks the Python package with the interpreter of .venv: style, types, what it is on PyPI, and the first steps of its
# README.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root/python-compat"

python=$root/.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
export MYPY_CACHE_DIR=$root/.cache/mypy

"$python" -m ruff check --no-cache .
"$python" -m ruff format --no-cache --check .
"$python" -m mypy
"$python" -m pyright

dist=$(mktemp -d)
trap 'rm -rf "$dist"' EXIT
if ! "$python" -m build --no-isolation --outdir "$dist" . >"$dist/log" 2>&1; then # the wheel is made from the sdist
	cat "$dist/log"
	die "sdist and wheel do not build"
fi
"$python" - "$dist"/*.tar.gz "$dist"/*.whl <<'PYTHON'
import email, pathlib, re, sys, tarfile, zipfile

source, wheel = tarfile.open(sys.argv[1]), zipfile.ZipFile(sys.argv[2])
name = pathlib.Path(sys.argv[1]).name.removesuffix('.tar.gz')
info = f'{name}.dist-info'
files = [f'src/{p}' for p in wheel.namelist() if p.startswith('godelayed/')]
expected = [str(p) for p in pathlib.Path('src').rglob('*') if p.suffix in ('.py', '.typed')]
expected += [f'src/godelayed/{p.relative_to("..")}' for p in pathlib.Path('../lua').rglob('*.lua')]
missing = [f'{p} in the wheel' for p in expected if p not in files]
missing += [f'{p} in the sdist' for p in ('LICENSE', *expected) if f'{name}/{p}' not in source.getnames()]
if f'{info}/licenses/LICENSE' not in wheel.namelist():
    missing.append('LICENSE in the wheel')
about = email.message_from_bytes(wheel.read(f'{info}/METADATA'))
fields = ('Author', 'License-Expression', 'Project-URL', 'Keywords', 'Requires-Python', 'Provides-Extra')
missing += [f'{field} in the metadata' for field in fields if not about[field]]
if missing:
    sys.exit(f'missing: {", ".join(missing)}')
claimed = [c.rsplit(' ', 1)[1] for c in about.get_all('Classifier') if re.search(r':: 3\.\d+$', c)]
own = f'{sys.version_info[0]}.{sys.version_info[1]}'
if own not in claimed or about['Requires-Python'] != f'>={claimed[0]}':
    sys.exit(f'expected classifiers of {about["Requires-Python"]} and of {own}, the version in use, found {claimed}')
links = re.findall(r'\]\(([^)]*)\)|^\[[^]]+]: (\S+)', about.get_payload(), re.M)
local = [a or b for a, b in links if not (a or b).startswith('https://')]
if not links or local:
    sys.exit(f'README.md: expected links that work on PyPI, which begin with https://, found {local or "none"}')
print(f'packages: {name}, with {len(expected)} files, for Python {", ".join(claimed)}')
PYTHON
"$root/scripts/quickstart-python.sh"
