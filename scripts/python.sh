#!/usr/bin/env bash
# Runs the tests of the Python package with the interpreter of .venv. Arguments go to pytest.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root/python-compat"

python=$root/.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
export MYPY_CACHE_DIR=$root/.cache/mypy # for a test that runs mypy
export PYTHONPYCACHEPREFIX=$root/.cache/bytecode # for the tests and for the workers that they start
unset PYTHONDONTWRITEBYTECODE
[ $# -gt 0 ] || set -- -n 4 --dist worksteal # tests wait more than they compute
exec "$python" -m pytest -p no:cacheprovider "$@"
