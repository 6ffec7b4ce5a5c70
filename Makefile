# Targets for people who build, test and measure. `make help` lists them.
# Everything a target needs beyond Go is fetched by the project's own scripts
# into $(CACHE), outside of the tree.

GO       ?= go
CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/applier
SEEDS    ?= 2000
FIRST    ?= 1
BUBBLES  ?= 300
CYCLES   ?= 25
FUZZTIME ?= 1s
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Build tags of this tree; lint looks at it with and without them.
TAGS := itest itestfull failpoints mutants synctests

export APPLIER_CACHE ?= $(CACHE)

.PHONY: help build run test itest itest-setup stack itest-full sim sim-daemon sim-mutants crash bench bench-peers lint fmt fuzz-smoke gen vuln sbom

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/applier
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/applier ./cmd/applier

run: build ## the demo: embedded broker, local table, nothing but Go; CONFIG=my.yml runs your own
	@$(if $(CONFIG),exec bin/applier run -c $(CONFIG),exec bin/applier demo)

test: ## everything that needs nothing but Go, with the race detector
	$(GO) vet ./...
	$(GO) test -race -shuffle=on -timeout 20m ./...
	$(GO) test -tags synctests -timeout 10m -run 'Bubble|Fault' ./cmd/applier/internal/app

itest-setup: ## fetch the real parts (Kafka, Connect, Paimon's Java core, Flink, pypaimon, paimon-rust, Spark)
	./itest/fetch.sh >/dev/null

itest: itest-setup ## interop tests on real parts
	MATRIX_COUNTS=$(CACHE)/matrix.txt $(GO) test -count=1 -parallel 4 -tags itest -timeout 40m ./itest/...
	@cat $(CACHE)/matrix.txt

stack: build ## the tutorial's stack without Docker: PostgreSQL, Debezium, Kafka, S3, Prometheus; Ctrl-C ends it
	./itest/fetch.sh kafka connect versitygw prometheus postgres >/dev/null
	$(GO) build -o bin/stack-up ./itest/stack
	exec bin/stack-up

itest-full: itest-setup ## interop tests, long ones included, and the long runs of the others
	$(GO) test -count=1 -timeout 60m ./storage/paimon -run Damaged -damages 2500
	$(GO) test -count=1 -timeout 60m ./merger/compact -run TestMetadata -commits 2000
	PIPELINE_ROWS=$${PIPELINE_ROWS:-1000000} MATRIX_COUNTS=$(CACHE)/matrix-full.txt $(GO) test -count=1 -parallel 4 -tags 'itest itestfull' -timeout 180m ./itest/...
	@cat $(CACHE)/matrix-full.txt

sim: ## the seeded simulation of the commit loop: SEEDS=2000, FIRST=1
	$(GO) test -count=1 -v -timeout 72h ./merger -run TestSimulation -seeds $(SEEDS) -first-seed $(FIRST)

sim-mutants: ## leave out each rule of the commit protocol: the simulation must notice; MUTANT=name runs one
	$(GO) test -count=1 -v -timeout 12h -tags mutants ./merger -run 'TestMutants' -mutant '$(MUTANT)'
	$(GO) test -count=1 -v -timeout 1h ./merger -run 'TestSimulation_Every' -seeds 2000

sim-daemon: ## random schedules of the whole program in virtual time: BUBBLES=300
	$(GO) test -count=1 -tags synctests -timeout 24h ./cmd/applier/internal/app -run TestBubble -bubbles $(BUBBLES)

crash: itest-setup ## kill -9 cycles on the real binary with real Kafka: CYCLES=25
	CRASH_CYCLES=$(CYCLES) $(GO) test -count=1 -tags itest -timeout 24h ./itest -run 'Crash'

bench: ## workloads and kernels; OUT=file.json writes figures, WORKLOADS=W2-10M-100k runs one
	$(GO) run ./itest/bench $(if $(OUT),-out $(OUT)) $(if $(WORKLOADS),-workloads $(WORKLOADS))

bench-peers: itest-setup ## the same merges by us, paimon-rust, Spark with Iceberg, Spark with Delta: WITH=delta, WORKLOADS=peers-1M, OUT
	$(GO) run ./itest/bench -peers $(if $(OUT),-out $(OUT)) $(if $(WORKLOADS),-workloads $(WORKLOADS)) $(if $(WITH),-with $(WITH))

lint: ## vet, staticcheck, formatting, import direction, sizes
	$(GO) vet ./...
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags '$(TAGS)' ./...
	@out=$$($(GO) run $(GOFUMPT) -l .); test -z "$$out" || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) test -count=1 ./cmd/applier/internal/tidy

fmt: ## format
	$(GO) run $(GOFUMPT) -w .

vuln: ## known vulnerabilities in what the program reaches; NOT RUN, and no success, without the database
	@out=$$($(GO) run $(GOVULNCHECK) ./... 2>&1); code=$$?; echo "$$out"; \
	if test $$code -ne 0 && echo "$$out" | grep -q 'fetching vulnerabilities'; then echo "govulncheck: NOT RUN: its database is out of reach"; fi; \
	exit $$code

sbom: build ## bin/applier.cdx.json: the modules of bin/applier, as CycloneDX
	bin/applier version --sbom > bin/applier.cdx.json

fuzz-smoke: ## every fuzz target of the tree for FUZZTIME=1s
	@targets=$$(grep -rEo '^func Fuzz[A-Za-z0-9_]*' --include='*_test.go' . | sed -E 's#/[^/]*:func #:#' | sort); \
	test -n "$$targets" || { echo "no fuzz targets found"; exit 1; }; \
	for t in $$targets; do \
	  echo "== $$t"; $(GO) test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$${t%:*}" || exit 1; \
	done

gen: ## rewrite the generated pages of docs/
	$(GO) test -count=1 ./config -update
	$(GO) test -count=1 ./metrics -update
	$(GO) test -count=1 ./cmd/applier/internal/tidy -update
