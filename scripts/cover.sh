#!/usr/bin/env bash
# Runs the tests of the root module with the race detector, in random order, and fails when they cover less than 85 % of
# the root package and those below it. Run it with GOWORK=off, as users' go test does.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$root"

minimum=85.0
packages=.,./internal/engine/...,./internal/function,./internal/group,./internal/lifecycle,./internal/loop
packages=$packages,./internal/redisstore,./internal/schedule,./internal/sweep
mkdir -p .cache
GOWORK=off go test -race -vet=off -shuffle=on -count=1 -timeout=20m \
	-coverpkg="$packages" \
	-coverprofile=.cache/cover.out ./...
total=$(GOWORK=off go tool cover -func=.cache/cover.out | awk '$1 == "total:" { sub("%", "", $NF); print $NF }')
[ -n "$total" ] || die "no total in the coverage profile"
printf 'cover: engine %s %%, at least %s %% expected; see go tool cover -html=.cache/cover.out\n' "$total" "$minimum"
awk -v have="$total" -v want="$minimum" 'BEGIN { exit !(have + 0 >= want + 0) }' || die "coverage fell below $minimum %"
