#!/usr/bin/env bash
# Runs govulncheck in every module. Where its database cannot be reached nothing is known, so that is a failure with its
# own text. VULNDB names another copy of the database (https:// or file://).
set -euo pipefail
. "$(dirname "$0")/lib.sh"

check=$(govulncheck)
[ -x "$check" ] || die "govulncheck $govulncheck_version is not built: run make setup"
args=(${VULNDB:+-db "$VULNDB"})

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$root/scripts/each.sh" -w "$check" ${args[@]+"${args[@]}"} ./... 2>&1 | tee "$log" || status=$?
if grep -qi 'fetching vulnerabilities' "$log"; then
	die "the vulnerability database is out of reach: nothing was checked. Try again with a connection, or name a copy in VULNDB"
fi
exit "$status"
