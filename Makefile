# Targets for people who build, test and measure. `make help` lists them.
# Everything a target needs beyond Go is fetched by the project's own scripts
# into $(CACHE), outside of the tree.

GO       ?= go
CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/applier
SEEDS    ?= 200
CYCLES   ?= 25
FUZZTIME ?= 1s
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -s -w -X main.version=$(VERSION)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT     := mvdan.cc/gofumpt@v0.12.0

# Build tags of this tree; lint looks at it with and without them.
TAGS := itest itestfull failpoints

export APPLIER_CACHE ?= $(CACHE)

.PHONY: help build run test itest itest-setup itest-full sim crash bench bench-peers lint fmt fuzz-smoke gen

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: ## build bin/applier
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/applier ./cmd/applier

run: build ## the demo: embedded broker, local table, nothing but Go; CONFIG=my.yml runs your own
	@$(if $(CONFIG),exec bin/applier run -c $(CONFIG),exec bin/applier demo)

test: ## everything that needs nothing but Go, with the race detector
	$(GO) vet ./...
	$(GO) test -race -shuffle=on -timeout 20m ./...

itest-setup: ## fetch the real parts (Kafka, Paimon's Java core, Flink, pypaimon, paimon-rust)
	./itest/fetch.sh >/dev/null

itest: itest-setup ## interop tests on real parts
	$(GO) test -count=1 -parallel 4 -tags itest -timeout 40m ./itest/...

itest-full: itest-setup ## interop tests, long ones included, and the long runs of the others
	$(GO) test -count=1 -timeout 60m ./storage/paimon -run Damaged -damages 2500
	$(GO) test -count=1 -parallel 4 -tags 'itest itestfull' -timeout 180m ./itest/...

sim: ## the seeded simulation of the commit loop: SEEDS=200
	$(GO) test -count=1 -timeout 24h ./merger -run TestSimulation -seeds $(SEEDS)

crash: itest-setup ## kill -9 cycles on the real binary with real Kafka: CYCLES=25
	CRASH_CYCLES=$(CYCLES) $(GO) test -count=1 -tags itest -timeout 24h ./itest -run 'Crash'

bench: ## workloads and kernels; OUT=file.json writes figures, WORKLOADS=W2-10M-100k runs one
	$(GO) run ./itest/bench $(if $(OUT),-out $(OUT)) $(if $(WORKLOADS),-workloads $(WORKLOADS))

bench-peers: itest-setup ## the same merges by us and by paimon-rust in one run
	$(GO) run ./itest/bench -peers $(if $(OUT),-out $(OUT))

lint: ## vet, staticcheck, formatting, import direction, sizes
	$(GO) vet ./...
	$(GO) vet -tags '$(TAGS)' ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run $(STATICCHECK) -tags '$(TAGS)' ./...
	@out=$$($(GO) run $(GOFUMPT) -l .); test -z "$$out" || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) test -count=1 ./cmd/applier/internal/tidy

fmt: ## format
	$(GO) run $(GOFUMPT) -w .

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
