#!/usr/bin/env bash
# Runs govulncheck in every module, and builds it first if it is missing. If the database cannot be reached, it
# fails and says so. VULNDB names another copy of the database (https:// or file://).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

check=$(govulncheck)
install_tool "$check" "golang.org/x/vuln/cmd/govulncheck@$govulncheck_version"
args=(${VULNDB:+-db "$VULNDB"})

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$root/scripts/each.sh" -w "$check" ${args[@]+"${args[@]}"} ./... 2>&1 | tee "$log" || status=$?
if grep -qi 'fetching vulnerabilities' "$log"; then
	die "the vulnerability database is out of reach: nothing was checked." \
		"Try again with a connection, or name a copy in VULNDB"
fi
exit "$status"
