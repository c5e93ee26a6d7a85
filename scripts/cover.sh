#!/usr/bin/env bash
# Fails when the tests of the root module cover less than 85 % of the root package. Run with GOWORK=off: what a user's go test sees.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

minimum=85.0
mkdir -p .cache
GOWORK=off go test -count=1 -timeout=15m -coverpkg=. -coverprofile=.cache/cover.out ./...
total=$(GOWORK=off go tool cover -func=.cache/cover.out | awk '$1 == "total:" { sub("%", "", $NF); print $NF }')
[ -n "$total" ] || die "no total in the coverage profile"
printf 'cover: root package %s %%, at least %s %% expected; see go tool cover -html=.cache/cover.out\n' "$total" "$minimum"
awk -v have="$total" -v want="$minimum" 'BEGIN { exit !(have + 0 >= want + 0) }' || die "coverage fell below $minimum %"
