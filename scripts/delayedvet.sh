#!/usr/bin/env bash
# Runs delayedvet of this tree over the packages of all modules, with the workspace.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

unset GOWORK # go finds go.work by itself
tool=$root/.cache/bin/delayedvet
mkdir -p "$(dirname "$tool")"
go build -o "$tool" ./delayedvet/cmd/delayedvet
# shellcheck disable=SC2046 # a list of words
go vet -vettool="$tool" $(modules | sed 's,$,/...,')
