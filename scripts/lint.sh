#!/usr/bin/env bash
# Runs the linter in every module, with the one configuration at the root. Arguments go to golangci-lint: "run" or "fmt --diff".
set -euo pipefail
. "$(dirname "$0")/lib.sh"

lint=$(golangci_lint)
[ -x "$lint" ] || die "golangci-lint $golangci_lint_version is not built: run make setup"
[ $# -gt 0 ] || set -- run

# Its own cache beside the binary: a cache shared with other versions gives stale findings.
export GOLANGCI_LINT_CACHE="$root/.cache/golangci-lint"
"$lint" config verify -c "$root/.golangci.yml"
"$root/scripts/each.sh" -w "$lint" "$@" -c "$root/.golangci.yml" ./...
