#!/usr/bin/env bash
# Writes the golden vectors of schedules, docs/CLI.md, and schemas and golden outputs of the command delayed, which
# tests compare, and copies the licence into the Python package.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

go test -count=1 ./internal/schedule -run '^TestVectors$' -update
cp LICENSE python-compat
go test -count=1 ./cmd/delayed/internal/cli ./cmd/delayed/internal/top -run '^Test(Schemas|Page|Golden)$' -update
go test -count=1 ./web/internal/api -run '^TestOpenAPI$' -update
