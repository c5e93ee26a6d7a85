#!/usr/bin/env bash
# Runs delayedvet of this tree over the packages of all modules, with the workspace.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

unset GOWORK # go finds go.work by itself
export GOGC=400 # as in the Makefile
tool=$root/.cache/bin/delayedvet
mkdir -p "$(dirname "$tool")"
go build -race=false -o "$tool" ./delayedvet/cmd/delayedvet
# shellcheck disable=SC2046 # a list of words
go vet -vettool="$tool" $(modules | sed 's,$,/...,')
