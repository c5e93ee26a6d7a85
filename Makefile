# `make help` lists the targets. CI and .ci/run call nothing else. Each target covers every module of go.work.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# For each Fuzz function in `make fuzz`: a time, or a number of inputs such as 30000x. `make check` gives a number,
# because Go sometimes reports the end of a time as the failure "context deadline exceeded".
FUZZTIME ?= 30s
# How often make soak repeats its tests, and make repeat runs make test.
SOAK ?= 20
N ?= 20
# The tests of make chaos: those with published counts, and others of which make test repeats less.
published := PoisonAmongInnocents|OneKill|KillsInARow|RollingDeploys|Recovery|Fresh.*|Outages
published := $(published)|Python(Outages|Poison.*)|MixedChaos|FailOver.*
isolated := Quarantine|HostileHandlers|ChildrenEndWithTheirWorker
smaller := IdleCost|Kill.*|LostReplies|Model|Pause|Filters
CHAOS ?= ^Test($(published)|$(isolated)|$(smaller))$$
# Go test flags for test-go, race and browser, for instance TESTFLAGS='-run TestKill -v'.
TESTFLAGS ?=
# The server that the tests start; if empty, redis-server on the PATH.
REDIS_SERVER ?=
ifneq ($(REDIS_SERVER),)
export REDIS_SERVER
endif

# The servers of make servers, such as redis-6.2; if empty, all.
SERVER ?=

# By default, the race detector sleeps for a second before a program ends.
GORACE ?= atexit_sleep_ms=0
export GORACE

each := scripts/each.sh
# make lint vets the code, so go test need not. Tests wait more than they compute: three packages at a time.
gotest := go test -vet=off -count=1 -p 3 -timeout=20m
# The packages of make test, those of itest first, as their tests take longest. Tests of bench and those in a browser
# have targets of their own.
packages := $(each) -x bench -a go list | grep -v /itest/dashboard

.PHONY: help
help: ## Print this list
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { print "\n" substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile

# The stages of make check. CHECK='race lint' runs these alone.
CHECK ?= tidy house verify lint vet build platforms check-python bench-smoke examples browser servers fuzz race pythons

##@ Everything

.PHONY: setup
setup: ## Install what make test needs: Redis, Prometheus, shells, Python packages (1 min once, then 1 s)
	@scripts/setup.sh

.PHONY: setup-check
setup-check: ## Install what make check needs too: Chromium, npm packages, a C compiler (1 min once, then 1 s)
	@scripts/setup.sh check

.PHONY: test
test: ## Install what is missing and run the tests of Go and Python (5 min on two cores, 8 with empty caches)
	@scripts/stages.sh setup test-go test-python

.PHONY: check
check: ## What is left of CI, stage by stage: race detector, linters, browser, fuzzing, servers (30 min)
	@FUZZTIME=$${FUZZTIME:-10000x} FUZZFLAGS=-b SERVER="$${SERVER:-redis-6.2 valkey-9.1}" \
		scripts/stages.sh setup-check $(CHECK)

.PHONY: repeat
repeat: ## Run make test N times, 20 by default, beside four busy loops, until it fails (3 h)
	@scripts/repeat.sh $(N)

.PHONY: fresh
fresh: ## Clone HEAD into an empty folder with empty caches and run the README's two commands (10 min)
	@scripts/fresh.sh

##@ Go

.PHONY: build
build: ## Compile each module alone, without the workspace, as its users do (1 min once, then 5 s)
	@$(each) -o go list -export ./... >/dev/null # go build would link the programs as well

.PHONY: platforms
platforms: ## Compile code and tests for linux/386 and Windows too (3 min once, then 10 s)
	@CGO_ENABLED=0 GOOS=linux GOARCH=386 $(each) -a go vet
	@CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(each) -x bench -a go vet

.PHONY: test-go
test-go: ## Run all Go tests but those of bench and those in a browser (4 min)
	@$(gotest) $(TESTFLAGS) $$($(packages))

.PHONY: race
race: ## The same but for delayedvet with the race detector, in random order (8 min)
	@GOFLAGS="$$(go env GOFLAGS) -race" $(gotest) -shuffle=on $(TESTFLAGS) $$($(packages) | grep -v /delayedvet)

.PHONY: browser
browser: ## Run the tests of the dashboard in Chromium (3 min)
	@cd itest && $(gotest) $(TESTFLAGS) ./dashboard/...

.PHONY: cover
cover: ## Check that the tests of the root module cover 85 % of the engine (4 min)
	@scripts/cover.sh

.PHONY: servers
servers: ## Run the tests on five servers, from Redis 6.2 to Valkey 9.1; SERVER=redis-6.2 for one of them (6 min)
	@scripts/servers.sh $(SERVER)

.PHONY: soak
soak: ## Repeat the tests in itest SOAK times, 20 by default (1 h)
	@cd itest && go test -vet=off -count=$(SOAK) -timeout=12h $(TESTFLAGS) ./...

.PHONY: cgroups
cgroups: ## Try limits of memory by control groups on a kernel of its own: user-mode Linux; installs it (20 s)
	@scripts/cgroups.sh

.PHONY: chaos
chaos: ## Kill workers, cut off Redis, flood queues, as often as docs/RELIABILITY.md says; idle machine (20 min)
	@go test -count=1 -v -run='^Test(FailOver|HalfOpen)' -timeout=1h . -args -failovers 20 -half-open
	@cd itest && DELAYED_LIMITS=1 go test -count=1 -v -run='$(CHAOS)' -timeout=2h . -args -chaos

.PHONY: fuzz
fuzz: ## Run each Fuzz function for FUZZTIME, 30s by default; with DELAYED_LIMITS=1 also check memory (5 min)
	@scripts/fuzz.sh $(FUZZFLAGS) $(FUZZTIME)

.PHONY: examples
examples: ## Run the quickstart and the dashboard as a newcomer does (40 s)
	@scripts/examples.sh

.PHONY: screenshots
screenshots: ## Take the pictures of the dashboard in README.md, with the example behind it (4 min)
	@cd itest && go run ./dashboard/screenshots -out ../docs/dashboard

# Flags of the commands of bench, for instance BENCH='-rounds 1 -scale 0.1'.
BENCH ?=

.PHONY: bench
bench: ## Measure against asynq and the bare prototype on every axis; leaves bench/bench.json (13 min)
	@cd bench && go run . bench -json bench.json $(BENCH)

.PHONY: bench-peers
bench-peers: ## Measure against asynq, river and JetStream; leaves bench/peers.json (15 min)
	@cd bench && go run . peers -json peers.json $(BENCH)

.PHONY: bench-peers-setup
bench-peers-setup: ## Install PostgreSQL and the NATS server, for bench-peers, and try both (1 min once, then 10 s)
	@bench/scripts/setup-peers.sh
	@cd bench && $(gotest) -run='^TestPeersSmoke$$' .

.PHONY: bench-inspector
bench-inspector: ## Measure what it costs to look into a queue with a million tasks; idle machine (2 min)
	@cd bench && go run . inspector $(BENCH)

.PHONY: bench-dashboard
bench-dashboard: ## Measure pages of the dashboard with a million tasks, and 200 open pages; idle machine (7 min)
	@cd bench && go run . dashboard $(BENCH)
	@cd itest && go test -run '^$$' -bench FirstPaint -benchtime 30x ./dashboard

.PHONY: bench-worst
bench-worst: ## Measure sizes that might keep Redis busy for long; leaves bench/worst.json; idle machine (3 min)
	@cd bench && go run . worst -json worst.json $(BENCH)

.PHONY: bench-profile
bench-profile: ## Profile a drain, worker and server; leaves bench/delayed-drain.*.pprof (15 s)
	@cd bench && go run . profile $(BENCH)

.PHONY: bench-guard
bench-guard: ## Check that no published ratio has become worse by more than 15 % (2 min, 5 when in doubt)
	@cd bench && go run . guard $(BENCH)

.PHONY: limits
limits: ## Run the tests that measure: time, memory and allocations; idle machine (12 min)
	@export DELAYED_LIMITS=1; \
	go test -count=1 -p 1 $$(git grep -l --untracked '\<limits\.\(Only\|Errorf\)(' -- '*_test.go' ':!itest' | \
		sed 's,^,./,; s,/[^/]*$$,,' | sort -u); \
	(cd itest && go test -run='^Test(Million|LargeMessages.*|LogsOfHostileTexts)$$' -count=1 -v .); \
	(cd cmd/delayed && go test -run='^TestTextsOfStrangers$$' -count=1 ./internal/...); \
	(cd examples && go test -run='^TestQuickstart$$' -count=1 .)
	@go test -run='^$$' -bench='^BenchmarkScripts$$' -benchtime=1x ./internal/redisstore

.PHONY: bench-smoke
bench-smoke: ## Run the tests of bench, and each Go benchmark once, to see that it works (1 min)
	@cd bench && $(gotest) -skip='^TestPeersSmoke$$' ./...
	@$(gotest) -run='^$$' -bench=. -benchtime=1x $$(git grep -l --untracked '^func Benchmark' -- '*_test.go' | \
		sed 's,^,./,; s,/[^/]*$$,,' | sort -u)

.PHONY: faults
faults: ## Break the code in each way kept in itest/faults and expect a test to fail; FAULTS=lock for some (10 min)
	@cd itest && go run ./faults $(FAULTS)

# What make mutants compares with, and how long it goes on.
BASE ?= main
FOR ?= 20m

.PHONY: mutants
mutants: ## Change what differs from BASE, main by default, and list the changes that no test notices (20 min)
	@cd itest && go run ./faults -since $(BASE) -for $(FOR)

##@ Python

.PHONY: test-python
test-python: ## Run the tests of python-compat (1 min)
	@scripts/python.sh

.PHONY: check-python
check-python: ## Check style, types and packaging of python-compat, and the first steps of its README (1 min)
	@scripts/check-python.sh

.PHONY: pythons
pythons: ## Run the tests of python-compat with each version of Python that it names (10 min)
	@scripts/pythons.sh

##@ Releases

# The version of a release, such as v0.1.0; see CONTRIBUTING.md.
VERSION ?=

.PHONY: version
version: ## Write VERSION into every go.mod and into the Python package (1 s)
	@scripts/version.sh $(VERSION)

.PHONY: release-check
release-check: ## Get and use the modules and the Python package of HEAD as others will once VERSION is out (10 min)
	@scripts/release-check.sh $(VERSION)

##@ Habits

.PHONY: lint
lint: ## Check style and formatting; builds the linter the first time, in 2 min (1 min)
	@scripts/lint.sh

.PHONY: fmt
fmt: ## Format all Go files and tidy every go.mod (20 s)
	@scripts/lint.sh fmt
	@$(each) -o go mod tidy

.PHONY: house
house: ## Measure the layout: imports that point up, knots, long files, stray files; HOUSE=-v lists all (10 s)
	@cd itest && go run ./house $(HOUSE)

.PHONY: vet
vet: ## Run delayedvet, which checks calls of the library; make lint does what go vet does (2 min once, then 1 s)
	@scripts/delayedvet.sh

.PHONY: tidy
tidy: ## Check that every go.mod is tidy; make fmt repairs it (5 s)
	@$(each) -o go mod tidy -diff

.PHONY: verify
verify: ## Check go.work, go directives, keakon's golden vectors and the licence of the Python package (2 s)
	@scripts/verify.sh

.PHONY: generate
generate: ## Write golden vectors, docs/CLI.md, schemas and golden outputs of the command (5 s)
	@scripts/generate.sh

.PHONY: vectors
vectors: ## Write the golden vectors that the PyPI package gives anew (1 s)
	@scripts/verify.sh --write

.PHONY: vuln
vuln: ## Look for known vulnerabilities; fails and says so when the database is out of reach (30 s)
	@scripts/vuln.sh

.PHONY: clean
clean: ## Remove the tools, the virtual environment and test leftovers of this tree (1 s)
	@rm -rf .cache .venv bin bench/.peers
	@find . -path ./.git -prune -o \( -name '*.test' -o -name '*.out' -o -name __pycache__ \) -print0 | xargs -0 rm -rf
