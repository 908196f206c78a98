# etcd-medic: build, check and try. `make help` lists the targets. Only Go and make are needed; helper programs are pinned as
# Go modules under .tools and testdata/servers and are built into .tools/bin when a target needs them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GO ?= go
GOVERSION := $(shell $(GO) env GOVERSION)
BIN := bin/etcd-medic
TOOLS := .tools/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
VERSION_PACKAGE := github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/cli
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT)

# gs:// needs HTTP only. What cloud.google.com/go/storage needs for gRPC is an eighth of the program and of the time that it takes to start.
TAGS := disable_grpc_modules
# Everything is compiled as a release is, without paths of this folder and without C: lint, tests, build and dist share what is compiled, and so
# does the next clone. The race detector needs C.
override GOFLAGS := $(strip $(GOFLAGS) -trimpath -tags=$(TAGS))
export GOFLAGS
export CGO_ENABLED := 0

# FUZZTIME is how long each fuzz target runs, BENCHTIME and BENCH what `make microbench` measures, PACKAGES what is tested.
FUZZTIME ?= 10s
BENCH ?= .
BENCHTIME ?= 1s
# The longest stand first, so that none runs alone at the end.
PACKAGES ?= ./cmd/etcd-medic/internal/cli ./repair/run ./repair/surgery ./repair/rebuild ./repair/plan ./...
# AT_ONCE is how many packages are tested at a time: the longest wait for servers and elections more than they compute. CI runs each test, also
# one whose result is known from another clone.
AT_ONCE ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
TESTING = -json -p $(AT_ONCE) $(if $(CI),-count=1)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- the program -------------------------------------------------------------------------------------------------------

# The servers of other lines are modules of their own, because a program can hold one version of etcd's server only. They are built,
# compressed and embedded (build tag lines). `go build ./cmd/etcd-medic` gives the same program with the server of 3.6 alone.
LINES := line35 line37
LINE_PROGRAMS := $(LINES:%=bin/lines/%)
PACKED := node/internal/lines/.packed

bin/lines/%: node/%/main.go node/%/go.mod node/%/go.sum
	$(GO) -C node/$* build -ldflags '-s -w' -o $(CURDIR)/$@ .

$(PACKED): $(LINE_PROGRAMS) node/internal/pack/main.go
	GOOS= GOARCH= $(GO) run ./node/internal/pack node/internal/lines $(LINE_PROGRAMS)
	touch $@

.PHONY: build
build: $(PACKED) ## build bin/etcd-medic, static, with etcd servers of the lines 3.5, 3.6 and 3.7
	$(GO) build -tags lines,$(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/etcd-medic

.PHONY: demo
demo: build ## diagnose a real incident (etcd 3.4.3, auth entries applied twice) and rehearse its repair
	.tools/demo.sh $(BIN)

# --- checks ------------------------------------------------------------------------------------------------------------

.PHONY: ci
ci: lint deadcode tools-test test race build demo docs-check dist-check fuzz-cli e2e-slice soak-slice ## everything a change must pass

# PORTED are the packages that ask the system for what is not the same everywhere. They are compiled for the others, too: the rest needs so many
# modules that only a release and the nightly run can afford it.
PORTED := ./node/internal/isolation ./internal/... ./dumplog ./dumpdb

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## walls between the packages, style, likely bugs
	$(GO) mod tidy -diff
	$(GO) mod verify
	for line in $(LINES); do $(GO) -C node/$$line mod tidy -diff; $(GO) -C node/$$line vet ./...; done
	for os in darwin windows; do GOOS=$$os $(GO) build -tags lite $(PORTED); done
	$(TOOLS)/golangci-lint config verify
	GOGC=400 GOMEMLIMIT=4GiB $(TOOLS)/golangci-lint run ./...

# deadcode begins at every program and every test, with the tags of a release and of e2e.
.PHONY: deadcode
deadcode: $(TOOLS)/deadcode $(PACKED) ## functions that neither the program nor a test reaches
	found="$$($(TOOLS)/deadcode -test -tags lines,e2e,$(TAGS) ./...)"; if [ -n "$$found" ]; then echo "$$found"; exit 1; fi

.PHONY: test
test: $(TOOLS)/testcount ## all tests, with their count; lint vets
	$(GO) test $(TESTING) -vet=off -timeout 40m $(PACKAGES) | $(TOOLS)/testcount

.PHONY: test-race
test-race: $(TOOLS)/testcount ## all tests with the race detector, with their count
	CGO_ENABLED=1 $(GO) test $(TESTING) -race -timeout 40m $(PACKAGES) | $(TOOLS)/testcount

# CONCURRENT are the packages that start goroutines; a test of .tools/walls keeps the list complete. Of their tests COMPUTING take most of the time
# under the race detector, and show it nothing that the others do not. The longest packages stand first. `make test-race` leaves nothing out.
CONCURRENT := ./repair/run ./dumpdb ./dumplog ./node ./cmd/etcd-medic/internal/cli ./compare/replay ./compare/evidence ./collect ./compare/diff \
  ./compare/dossier ./internal/progress ./internal/spill ./node/internal/isolation ./repair/restoretest ./watch
COMPUTING := EachCallFails|EachLineFails|Screens|LastScreens|OneScreen|FullIsShort|PrintedCommands|SuggestionsAreNotRefused|DocumentedCommandsRun|WithoutParts|PastedCommands|DigestsAreKeyed|ProgressOf|ProgressIs|BigLogIsReadFast|Tap|SoundHistories|AgainstTheServer|OracleBboltShapes|Sweep|Chaos|TwinsOfIncidents|KilledAtEveryPoint|Mend$$|ManyParts|RaceNeverEndsWithZero|KeysInPartsOfDamage|ImpossibleKeysInParts|OracleBboltCheckOnDamage|Cases|Results|Rehearse$$|RebuildContinues|EndsWithAClosedSegment|RecordsWithoutPadding|IdleBehindDamage|TablesOnTerminal|Operations$$|MemoryIsBounded|CollectYields|BackupsOfOlderLinesServe

.PHONY: race
race: $(TOOLS)/testcount ## tests of the packages that start goroutines, with the race detector
	CGO_ENABLED=1 $(GO) test $(TESTING) -vet=off -race -timeout 20m -skip '^Test($(COMPUTING))' $(CONCURRENT) | TESTCOUNT_FILE= $(TOOLS)/testcount

.PHONY: tools-test
tools-test: $(TOOLS)/golangci-lint ## tests of the helper programs and of the walls in .golangci.yml
	$(GO) -C .tools/testcount test ./...
	$(GO) -C .tools/mutants test ./...
	$(GO) -C .tools/notices test ./...
	$(GO) -C .tools/dist test ./...
	$(GO) -C .tools/rules test ./...
	GOLANGCI_LINT=$(CURDIR)/$(TOOLS)/golangci-lint $(GO) -C .tools/walls test -count=1 ./...

# N changes are drawn by SEED; each costs a run of its package's tests. Name PACKAGES: over the whole tree the first N changes tell little.
# A changed loop may take memory without end: data is limited. JOBS=2 takes half of the time where tests wait for servers.
N ?= 40
SEED ?= 1
JOBS ?= 1

.PHONY: mutants
mutants: $(TOOLS)/mutants ## small changes that no test notices: PACKAGES="./compare/replay ..." [N=40] [SEED=1] [JOBS=1]
	ulimit -d 8388608 && $(TOOLS)/mutants -go '$(GO)' -n '$(N)' -seed '$(SEED)' -parallel '$(JOBS)' -same .tools/mutants/same.txt $(PACKAGES)

.PHONY: e2e
e2e: build test-servers $(TOOLS)/testcount ## tests against real clusters of each supported etcd line
	ETCD_MEDIC_TEST_SERVERS=$(CURDIR)/$(TOOLS) ETCD_MEDIC_TEST_BIN=$(CURDIR)/$(BIN) \
	  $(GO) test -json -count=1 -parallel 3 -timeout 60m -tags e2e,$(TAGS) -run 'E2E' $(PACKAGES) | $(TOOLS)/testcount

# The slice runs a healthy cluster of each line from 3.5 on, with restarts, and asks that nothing on it is called broken.
.PHONY: e2e-slice
e2e-slice: build $(addprefix $(TOOLS)/,etcd-3.5.0 etcd-3.5.35 etcd-3.6.16 etcd-3.7.3) $(TOOLS)/testcount ## a slice of e2e for CI: each line once
	ETCD_MEDIC_TEST_SERVERS=$(CURDIR)/$(TOOLS) ETCD_MEDIC_TEST_BIN=$(CURDIR)/$(BIN) \
	  $(GO) test -json -count=1 -parallel 3 -timeout 10m -tags e2e,$(TAGS) -run '^TestE2EHealthyCluster$$' ./cmd/etcd-medic \
	  | TESTCOUNT_FILE= $(TOOLS)/testcount

.PHONY: browser
browser: $(TOOLS)/testcount ## tests of the HTML report in a headless Chromium, which is installed where missing: [SCREENSHOTS=DIR]
	.tools/chromium.sh
	SCREENSHOTS='$(abspath $(SCREENSHOTS))' $(GO) test -json -count=1 -timeout 15m -tags browser,$(TAGS) -run 'TestBrowser|TestScreenshots|TestPictures' ./cmd/etcd-medic/internal/render/htmlreport | $(TOOLS)/testcount

.PHONY: browser-slice
browser-slice: $(TOOLS)/testcount ## the fast part of the browser tests, about 20 s: needs a Chromium, installs none
	$(GO) test -json -count=1 -timeout 5m -tags browser,$(TAGS) -run '^TestBrowser(Timeline|Tree|Keyboard|Print|WithoutScripts)$$' ./cmd/etcd-medic/internal/render/htmlreport | $(TOOLS)/testcount

# SEEDS of the soak, CASE (the one case to judge, or how the names of faults begin), KEEP (a folder for the sources of wrong cases), SETS (such a
# folder: judge its cases once more, without servers; with FAULTS=N apply faults to those without one), MEDIC (a built program to judge instead of this tree), OUT (a file for the table, also while it runs).
SEEDS ?= 1..12
SOAK = SOAK_SEEDS='$(SEEDS)' SOAK_CASE='$(CASE)' SOAK_KEEP='$(abspath $(KEEP))' SOAK_SETS='$(abspath $(SETS))' SOAK_FAULTS='$(FAULTS)' SOAK_MEDIC='$(abspath $(MEDIC))' SOAK_OUT='$(abspath $(OUT))' \
	  ETCD_MEDIC_TEST_SERVERS=$(CURDIR)/$(TOOLS)

.PHONY: soak
soak: test-servers ## random histories on real servers, with and without faults: SEEDS=A..B [CASE=] [KEEP=DIR] [SETS=DIR [FAULTS=N]] [MEDIC=PROGRAM]
	$(SOAK) $(GO) test -count=1 -parallel 6 -timeout 12h -tags e2e,$(TAGS) -run '^TestSoak$$' -v ./compare/soak | grep -v '^ *=== '

# The slice asks for no false alarm on what servers left without a fault: where exactly a fault lands depends on how fast the machine is.
# Its seeds run 3.5.35, 3.6.16 and 3.7.3.
.PHONY: soak-slice
soak-slice: SEEDS = 0..2
soak-slice: CASE = healthy
soak-slice: $(addprefix $(TOOLS)/,etcd-3.5.35 etcd-3.6.16 etcd-3.7.3) ## a slice of the soak for CI: histories without faults
	$(SOAK) $(GO) test -count=1 -parallel 3 -timeout 10m -tags e2e,$(TAGS) -run '^TestSoak$$' -v ./compare/soak | grep -v '^ *=== '

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (10s) [CORPUS=DIR to begin with, and to keep what reaches new code]
	FUZZTIME=$(FUZZTIME) CORPUS='$(abspath $(CORPUS))' GO=$(GO) .tools/fuzz.sh

RUNS ?= 300

.PHONY: fuzz-cli
fuzz-cli: build ## run the program on mutated evidence, from outside: RUNS=300 SEED=1 [FIRST=N] [KEEP=DIR for sets of failed runs]
	$(GO) run ./cmd/etcd-medic/fuzzcli -medic $(BIN) -runs $(RUNS) -seed $(SEED) -first $(or $(FIRST),0) -keep '$(KEEP)'

# MB is how large the inputs are, each of one shape: 300 MB of memory are allowed for 3 MB, 1 GB for more.
MB ?= 3

.PHONY: memory
memory: ## inputs of every shape, MB (3) megabytes each, in at most 300 MB of memory, larger ones in 1 GB; and their time
	ETCD_MEDIC_LARGE_INPUT='$(filter-out 3,$(MB))' $(GO) test -tags memory,$(TAGS) -count=1 -timeout 10h -v -run '^Test(MemoryOfShapes|MaxMemory|TimeOfLargeInputs)$$' \
	  ./cmd/etcd-medic/fuzzcli | grep -v '^ *==='

# ROUNDS is how often each process runs, SCALE the size of the data in percent, LARGE=1 adds 8 GB with 20,000,000 revisions.
ROUNDS ?= 5
SCALE ?= 100
BENCH_OUT ?= docs/BENCHMARKS.md

.PHONY: bench
bench: build peers ## measure program, peers and floors in turns; writes docs/BENCHMARKS.md: [ROUNDS=5] [SCALE=100] [LARGE=1] [BENCH_OUT=]
	$(GO) test -tags bench,$(TAGS) -count=1 -timeout 4h -v -run '^TestBenchReport$$' ./cmd/etcd-medic -medic $(CURDIR)/$(BIN) \
	  -peers $(CURDIR)/$(TOOLS) -out $(abspath $(BENCH_OUT)) -rounds $(ROUNDS) -scale $(SCALE) $(if $(LARGE),-large) | grep -v '^ *==='

.PHONY: microbench
microbench: ## benchmarks of single functions: [BENCH=.] [BENCHTIME=1s] [PACKAGES=]
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 60m $(PACKAGES)

# --- release -----------------------------------------------------------------------------------------------------------

# DIST is where a release is written, TARGETS the systems (default all), as linux/amd64,darwin/arm64.
DIST ?= dist

.PHONY: modules
modules: ## fetch what dist is built from; dist itself fetches nothing
	for dir in . $(LINES:%=node/%) .tools/dist; do $(GO) -C $$dir mod download; done

.PHONY: dist
dist: ## build a release into DIST (dist): programs, packages, image, manifests, checksums [TARGETS=]
	$(GO) -C .tools/dist run . -root $(CURDIR) -o $(abspath $(DIST)) -go '$(GO)' -targets '$(TARGETS)'

.PHONY: platforms
platforms: modules ## compile the program, without servers of other lines, for each system of a release
	for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do \
	  GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -tags lite -o /dev/null ./cmd/etcd-medic; echo "compiled for $$p"; done

.PHONY: dist-check
dist-check: modules ## build a small release twice and fail unless both are equal; run the packaged program
	GO='$(GO)' .tools/dist-check.sh -targets linux/amd64 -lite

# EMULATED is where the programs are built that emulate runs, all the same way: for this machine, arm64 and Windows.
EMULATED := bin/emulated

.PHONY: emulate
emulate: modules ## run the programs for arm64 (qemu-user) and Windows (wine) on every incident: answers and inputs as here; installs both emulators
	$(GO) build -tags lite -o $(EMULATED)/native ./cmd/etcd-medic
	GOOS=linux GOARCH=arm64 $(GO) build -tags lite -o $(EMULATED)/arm64 ./cmd/etcd-medic
	GOOS=windows GOARCH=amd64 $(GO) build -tags lite -o $(EMULATED)/windows.exe ./cmd/etcd-medic
	.tools/emulate.sh $(EMULATED)/native $(EMULATED)/arm64 $(EMULATED)/windows.exe

# PODMAN is the command with the flags that it needs here, RUN are flags of `podman run`, DEB_IMAGE and RPM_IMAGE the distributions.
.PHONY: container-check
container-check: modules dist ## install the packages of DIST in clean containers and use them, run the image: [DEB_IMAGE=debian:12] [RPM_IMAGE=almalinux:9] [PODMAN=podman] [RUN=]
	.tools/container-check.sh $(abspath $(DIST))

.PHONY: nightly
nightly: ## everything: ci, e2e, soak, fuzz, fuzz-cli, memory, browser, emulate, mutants, bench; nightly/summary.md [PARTS="e2e soak"]
	.tools/nightly.sh

# --- documents ---------------------------------------------------------------------------------------------------------

.PHONY: docs
docs: ## write the generated documents (docs/CHECKS.md, docs/CAUSES.md, docs/cli)
	$(GO) run ./cmd/etcd-medic docs --dir docs

.PHONY: docs-check
docs-check: build ## fail if the generated documents are not what the code says
	.tools/docs-check.sh $(BIN)
	$(GO) -C .tools/notices run . -root $(CURDIR) -go '$(GO)' -check

.PHONY: notices
notices: ## write THIRD_PARTY_NOTICES.txt from the licences of all linked modules
	$(GO) -C .tools/notices run . -root $(CURDIR) -go '$(GO)'

# --- helper programs ---------------------------------------------------------------------------------------------------

# tool(NAME,MODULE,PACKAGE) builds a pinned program again whenever its pin or the Go version changes.
define tool
$$(TOOLS)/$(1): $(2)/go.mod $$(wildcard $(2)/go.sum $(2)/*.go) $$(TOOLS)/.$$(GOVERSION)
	$$(GO) -C $(2) build -ldflags '-s -w' -o $$(CURDIR)/$$@ $(3)
	touch $$@
endef

# Each server has a main.go of its own, which can make the segments of its log small.
SERVERS := etcd-3.3.18 etcd-3.4.3 etcd-3.5.0 etcd-3.5.35 etcd-3.6.16 etcd-3.7.3
PEERS := etcd-dump-logs etcd-dump-db etcdutl-3.6 etcdutl-3.7 bbolt
# What the end-to-end tests run beside servers.
CLIENTS := etcdctl-3.6 etcdutl-3.6 etcdutl-3.7

$(eval $(call tool,golangci-lint,.tools/golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint))
$(eval $(call tool,deadcode,.tools/deadcode,golang.org/x/tools/cmd/deadcode))
$(eval $(call tool,testcount,.tools/testcount,.))
$(eval $(call tool,mutants,.tools/mutants,.))
$(foreach s,$(SERVERS),$(eval $(call tool,$(s),testdata/servers/$(s),.)))
$(eval $(call tool,etcd-dump-logs,testdata/servers/etcd-dump-logs,go.etcd.io/etcd/v3/tools/etcd-dump-logs))
$(eval $(call tool,etcd-dump-db,testdata/servers/etcd-dump-db,go.etcd.io/etcd/v3/tools/etcd-dump-db))
$(eval $(call tool,etcdctl-3.6,testdata/servers/etcdctl-3.6,go.etcd.io/etcd/etcdctl/v3))
$(eval $(call tool,etcdutl-3.6,testdata/servers/etcdutl-3.6,go.etcd.io/etcd/etcdutl/v3))
$(eval $(call tool,etcdutl-3.7,testdata/servers/etcdutl-3.7,go.etcd.io/etcd/etcdutl/v3))
$(eval $(call tool,bbolt,testdata/servers/bbolt,go.etcd.io/bbolt/cmd/bbolt))
$(eval $(call tool,versitygw,testdata/servers/versitygw,github.com/versity/versitygw/cmd/versitygw))

# 3.4.23 is Debian's: its module is not published. The package is only unpacked, not installed.
$(TOOLS)/etcd-3.4.23:
	mkdir -p $(TOOLS)/deb
	cd $(TOOLS)/deb && apt-get -qq download etcd-server=3.4.23* && dpkg-deb -x etcd-server_*.deb .
	mv $(TOOLS)/deb/usr/bin/etcd $@
	rm -rf $(TOOLS)/deb

$(TOOLS)/.$(GOVERSION):
	mkdir -p $(TOOLS)
	rm -f $(TOOLS)/.go*
	touch $@

.PHONY: test-servers
test-servers: $(addprefix $(TOOLS)/,$(SERVERS) etcd-3.4.23 $(CLIENTS) versitygw) ## etcd servers of the lines 3.3 to 3.7 (3.4.23: Debian) and an S3 server into .tools/bin

.PHONY: peers
peers: $(addprefix $(TOOLS)/,$(PEERS)) ## build the tools that bench compares with into .tools/bin

.PHONY: clean
clean: ## remove what was built
	rm -rf bin .tools/bin node/internal/lines/*.zst $(PACKED)
