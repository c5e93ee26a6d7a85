#!/usr/bin/env bash
# Runs golangci-lint over all modules at once, with the one configuration at the root: "fmt" formats, otherwise it
# checks style and formatting. It builds golangci-lint first if it is not there.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

lint=$(golangci_lint)
install_tool "$lint" "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci_lint_version"
# Its own cache beside the binary: a cache shared with other versions gives stale findings.
export GOLANGCI_LINT_CACHE="$root/.cache/golangci-lint"
"$lint" config verify -c "$root/.golangci.yml"
if [ "${1-}" = fmt ]; then
	cd "$root"
	exec "$lint" fmt -c .golangci.yml ./...
fi
status=0
# It collects its garbage only when it has 4 GiB, which takes a quarter less processor time.
GOGC=off GOMEMLIMIT=4GiB "$root/scripts/each.sh" -a "$lint" run -c "$root/.golangci.yml" || status=1
(cd "$root" && "$lint" fmt --diff -c .golangci.yml ./...) || status=1
exit $status
