#!/usr/bin/env bash
# Runs the tests of python-compat with the interpreter of .venv. Arguments go to pytest.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root/python-compat"

python=$root/.venv/bin/python
[ -x "$python" ] || die "no Python environment in .venv: run make setup"
exec "$python" -B -m pytest -p no:cacheprovider "$@"
