# Everyday tasks. `make` alone lists them.

BIN      := .tools
LINTER   := $(BIN)/golangci-lint
ACTIONLINT := $(BIN)/actionlint
# Checks prose.
VALE     := $(BIN)/vale
# In a Python virtual environment.
CFNLINT  := $(BIN)/cfn-lint/installed
# What people write Parquet with, in a Python virtual environment for each version of DuckDB.
PARQUET  := $(foreach tools,latest duckdb-1.3 duckdb-1.4,$(BIN)/parquet/$(tools)/installed)
# What docs/data.md asks a site with: DuckDB with its extension for HTTP, pandas and polars.
DATA     := $(BIN)/parquet/data/installed
# The generator of Python clients from the description of the API.
OPENAPI  := $(BIN)/openapi-client/installed
# Servers that tests start, and tools that the benchmarks compare with; built from the modules in tools.
SERVERS  := $(BIN)/minio $(BIN)/versitygw
RCLONE   := $(BIN)/rclone
# Compares runs of Go benchmarks.
BENCHSTAT := $(BIN)/benchstat
# The runtime of Cloudflare Workers, for the tests of edges.
WORKERD  := internal/tools/edge/node_modules/.package-lock.json
# The node of most of Ethereum, for tests of sources that are not part of `make test-all`: it takes minutes to build.
GETH     := $(BIN)/geth
# The Ethereum node that tests of sources play histories on.
ANVIL    := internal/tools/anvil/node_modules/.package-lock.json
# The client that the whole API is for, and React.
KIT      := client/kit/node_modules/.package-lock.json
# Beam's job server and Flink, as jars, and what starts Beam's workers.
FLINK    := $(BIN)/flink/lib $(BIN)/flink/boot
# The libraries of the explorer, and what checks its types.
EXPLORER := explorer/node_modules/.package-lock.json
# Linters and generators for the npm package and the description of the API.
PACKAGES := internal/tools/packages/node_modules/.package-lock.json
# What tests in a browser run in pages: axe-core.
AXE      := browsers/internal/browser/node_modules/.package-lock.json
SITE     ?= out
SNAPSHOT ?= fixtures/demo
# A snapshot of realistic size; without one the benchmarks make a synthetic one.
BENCH_SNAPSHOT ?= $(wildcard ../shared/data/epinions)
FUZZTIME ?= 1m
SCHEDULES ?= 5000000
NIGHTLY_SCHEDULES ?= 100000
# The packages whose benchmarks are of hot loops.
HOT := ./generator ./server

# Debian installs nginx and pgbouncer in folders that are only in root's PATH.
export PATH := $(PATH):/usr/sbin:/sbin

.PHONY: help preview generate publish edge test test-all test-nightly test-tools test-geth test-beam test-flink test-scale test-equal test-mutations test-install release release-check race-tools edge-tools client-tools disk-tools database-tools workflow-tools release-tools flink-tools bench-tools lint lint-tools docs fuzz bench bench-go bench-publish bench-fallback bench-api bench-edge bench-explorer bench-live bench-rounds bench-sources soak clean
# Even with -j: apt must not run twice at a time, and cgo needs the C compiler installed first.
.NOTPARALLEL:

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

preview: ## serve the demo on this machine
	go run ./cmd/preview

generate: ## render SNAPSHOT into SITE
	go run ./cmd/followpress generate --snapshot $(SNAPSHOT) --out $(SITE)

publish: ## publish SITE to DEST (s3://… or file:///…; ENDPOINT for other servers than Amazon's)
	go run ./cmd/followpress publish --site $(SITE) --dest $(DEST) $(if $(ENDPOINT),--endpoint $(ENDPOINT))

edge: ## write the configuration of an edge (KIND, BUCKET_URL, FALLBACK_URL) into OUT
	go run ./cmd/followpress edge --kind $(KIND) --site $(SITE) --bucket-url $(BUCKET_URL) $(if $(FALLBACK_URL),--fallback-url $(FALLBACK_URL)) $(if $(OUT),--out $(OUT))

# Tests leave much behind and hold little: collecting that less often saves a sixth of their time.
test: ## run the tests that need nothing but Go (minutes)
	go test -count=1 -exec 'env GOGC=400' $(TESTFLAGS) ./...

test-all: ## run these, and all others: race detector, servers, browsers, Beam, Flink; installs what is missing
	bash .ci/test

test-nightly: test-tools flink-tools $(PARQUET) ## run what runs at night: all tests at length, faults, a soak (hours)
	bash .ci/test nightly
	$(MAKE) test-mutations
	$(MAKE) release-check
	$(MAKE) soak SCHEDULES=$(NIGHTLY_SCHEDULES)

test-tools: race-tools edge-tools client-tools disk-tools database-tools workflow-tools $(SERVERS) $(WORKERD) $(ANVIL) $(KIT) $(EXPLORER) $(AXE) $(PACKAGES) $(OPENAPI) $(DATA) ## install what `make test-all` needs and is missing

test-geth: race-tools $(GETH) ## run the tests that need geth, which it builds
	CGO_ENABLED=1 TEST_SERVERS=1 TEST_GETH=1 go test -race -count=1 -v -run Geth ./internal/testenv/nodes ./source/chain

# Without the race detector: what it needs for itself would count as memory of workers, which have limits.
test-flink: flink-tools ## run the tests that need Flink (some minutes)
	TEST_NIGHTLY=1 bash .ci/test flink

test-beam: ## compare the site of BENCH_SNAPSHOT by Beam with that of generate (minutes)
	$(if $(BENCH_SNAPSHOT),,$(error BENCH_SNAPSHOT=DIR says which snapshot))
	cd beam && TEST_BEAM_SNAPSHOT="$(abspath $(BENCH_SNAPSHOT))" go test -count=1 -timeout 2h -v -run '^TestGivenSnapshot$$' ./...

test-scale: flink-tools ## run Beam at size on Flink: BENCH_SNAPSHOT, and an account that 2 million follow (up to hours)
	$(if $(BENCH_SNAPSHOT),,$(error BENCH_SNAPSHOT=DIR says which snapshot))
	cd beam && TEST_FLINK=1 TEST_BEAM_SNAPSHOT="$(abspath $(BENCH_SNAPSHOT))" TEST_BEAM_API=$(API) TEST_BEAM_FOLLOWERS=2000000 \
		go test -count=1 -timeout 6h -v -run '^Test(GivenSnapshotInACluster|FlinkPopularAccount)$$' ./cmd/followpress-beam

test-equal: ## compare the roots of the sites of SNAPSHOT_DIR with those in generator/testdata/roots.txt
	$(if $(SNAPSHOT_DIR),,$(error SNAPSHOT_DIR=DIR says which snapshot))
	SNAPSHOT_DIR="$(abspath $(SNAPSHOT_DIR))" go test -count=1 -v -run '^TestRoots$$' ./generator

test-mutations: ## put faults into the code, one at a time: a test must find each (up to an hour)
	go run ./internal/testenv/mutations

test-install: ## try test-tools on fresh Debian systems (as root, in chroots; some minutes)
	bash .ci/test-install

release: release-tools ## build the files of a release of the commit, VERSION=v1.2.3, into dist
	go run -C internal/tools/release . --version "$(VERSION)" --out $(CURDIR)/dist

release-check: release-tools ## build a release twice, install each file of it on a bare Debian (as root), and run it
	@bash .ci/install debootstrap=debootstrap systemd-analyze=systemd
	RELEASE_CHECK=$(or $(VERSION),v0.0.0-check) go test -C internal/tools/release -count=1 -timeout 2h -v

# Tools from Debian are written COMMAND=PACKAGE, /FILE=PACKAGE or python3:MODULE=PACKAGE: the package is installed if the rest is missing.

race-tools: # the race detector needs a C compiler; downloads need certificates
	@bash .ci/install gcc=gcc /usr/include/stdlib.h=libc6-dev /etc/ssl/certs/ca-certificates.crt=ca-certificates

edge-tools: # the servers that tests of edges run
	@bash .ci/install nginx=nginx /usr/lib/nginx/modules/ngx_http_js_module.so=libnginx-mod-http-js \
		node=nodejs caddy=caddy npm=npm

client-tools: # what runs the library for browsers and the explorer; the fonts of its screenshots
	@bash .ci/install node=nodejs chromium=chromium firefox-esr=firefox-esr /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core

disk-tools: # the file system of power failure tests
	@bash .ci/install mkfs.ext4=e2fsprogs

database-tools: # the databases of indexers; Debian has the programs of each version in a folder of its own
	@bash .ci/install '/usr/lib/postgresql/*/bin/initdb=postgresql' pgbouncer=pgbouncer

workflow-tools: # what the nightly workflow and docs/start.md call; runners of GitHub have it
	@bash .ci/install aws=awscli curl=curl git=git

release-tools: # what packs the client and Debian's packages
	@bash .ci/install git=git npm=npm dpkg-deb=dpkg /etc/ssl/certs/ca-certificates.crt=ca-certificates

flink-tools: $(FLINK) # what runs Flink; Maven is only asked if there are no jars yet
	@bash .ci/install java=default-jre-headless

$(BIN)/flink/lib: beam/flink/pom.xml beam/flink/checksums .ci/flink
	@bash .ci/install mvn=maven /etc/ssl/certs/ca-certificates.crt=ca-certificates
	bash .ci/flink $@
	@touch $@

$(BIN)/flink/boot: beam/go.mod beam/go.sum
	go build -C beam -o $(CURDIR)/$@ github.com/apache/beam/sdks/v2/go/container

bench-tools: # tools that benchmarks compare with, and the load generator
	@bash .ci/install nginx=nginx wrk=wrk

$(WORKERD) $(ANVIL) $(KIT) $(EXPLORER) $(AXE) $(PACKAGES): %/node_modules/.package-lock.json: %/package.json %/package-lock.json | edge-tools
	npm ci --prefix $* --ignore-scripts --no-audit --no-fund
	@touch $@

lint: lint-tools ## run the linters of Go, workflows, shell scripts, CloudFormation and prose
	bash .ci/lint

lint-tools: $(LINTER) $(ACTIONLINT) $(VALE) $(CFNLINT) # install what `make lint` needs and is missing
	@bash .ci/install shellcheck=shellcheck

$(CFNLINT): internal/tools/cfn-lint/requirements.txt
$(OPENAPI): internal/tools/packages/requirements.txt
$(PARQUET) $(DATA): $(BIN)/parquet/%/installed: internal/tools/parquet/%.txt
$(CFNLINT) $(OPENAPI) $(PARQUET) $(DATA):
	@bash .ci/install python3=python3 python3:ensurepip=python3-venv /etc/ssl/certs/ca-certificates.crt=ca-certificates
	python3 -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

docs: ## regenerate docs/commands.md
	go test ./cmd/followpress -run TestCommandsPage -update

$(LINTER): internal/tools/go.mod internal/tools/go.sum
	go build -modfile=internal/tools/go.mod -o $@ tool

$(VALE): export CGO_ENABLED := 1
$(VALE): | race-tools

$(SERVERS) $(RCLONE) $(ACTIONLINT) $(VALE) $(GETH) $(BENCHSTAT): $(BIN)/%: internal/tools/%/go.mod internal/tools/%/go.sum
	go build -modfile=internal/tools/$*/go.mod -o $@ tool

fuzz: ## run each fuzz test for FUZZTIME
	bash .ci/fuzz $(FUZZTIME)

# measured runs a benchmark: its command, its name, more flags. It compares the rounds with those of the run before on this machine.
define measured
[ ! -f $(BIN)/bench/$(2).txt ] || mv $(BIN)/bench/$(2).txt $(BIN)/bench/$(2)-before.txt
$(1) --bin $(BIN)/bench --results $(BIN)/bench/$(2).txt $(3)
[ ! -f $(BIN)/bench/$(2)-before.txt ] || $(BENCHSTAT) before=$(BIN)/bench/$(2)-before.txt now=$(BIN)/bench/$(2).txt
endef

bench: bench-tools $(BENCHSTAT) ## compare with cp, tar and nginx; then run the Go benchmarks
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	$(call measured,go run ./bench,generate,--snapshot "$(BENCH_SNAPSHOT)")
	$(MAKE) bench-go

bench-go: $(BENCHSTAT) ## run the Go benchmarks of hot loops, and compare them with the committed result
	@mkdir -p $(BIN)/bench
	go test -run '^$$' -bench . -benchmem -benchtime 0.3s -count 6 $(HOT) >$(BIN)/bench/go.txt
	git show HEAD:bench/results/go.txt >$(BIN)/bench/go-committed.txt
	cp $(BIN)/bench/go.txt bench/results/go.txt
	$(BENCHSTAT) committed=$(BIN)/bench/go-committed.txt new=$(BIN)/bench/go.txt

bench-publish: $(BENCHSTAT) $(SERVERS) $(RCLONE) ## compare publish with rclone, on MinIO and versitygw (about half an hour)
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	$(call measured,go run ./bench/publish,publish,--tools $(BIN) --snapshot "$(BENCH_SNAPSHOT)")

bench-fallback: $(BENCHSTAT) bench-tools $(BIN)/minio ## compare the fallback over MinIO with nginx
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o $(BIN)/bench/ ./cmd/fallback
	go build -buildvcs=false -o $(BIN)/bench/ ./bench/bare
	$(call measured,go run ./bench/fallback,fallback,--tools $(BIN) --snapshot "$(BENCH_SNAPSHOT)")

bench-api: $(BENCHSTAT) bench-tools edge-tools $(BIN)/minio ## measure the whole read API over MinIO (about half an hour)
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o $(BIN)/bench/ ./cmd/fallback
	$(call measured,go run ./bench/api,api,--tools $(BIN) --snapshot "$(BENCH_SNAPSHOT)")

bench-edge: $(BENCHSTAT) bench-tools edge-tools ## compare nginx in front of a bucket with nginx serving files
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	$(call measured,go run ./bench/edge,edge,--snapshot "$(BENCH_SNAPSHOT)")

bench-explorer: $(BENCHSTAT) bench-tools edge-tools client-tools $(BIN)/minio ## measure the explorer in Chromium, over a slow network
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	go build -C browsers -buildvcs=false -o ../$(BIN)/bench/visit ./bench
	$(call measured,$(BIN)/bench/visit,explorer,--tools $(BIN) --snapshot "$(BENCH_SNAPSHOT)")

bench-rounds: ## count the objects that random follows change, by route, without and with --ranks-every
	@test -n "$(BENCH_SNAPSHOT)" || { echo "name a snapshot packed by gzip: make bench-rounds BENCH_SNAPSHOT=FOLDER"; exit 1; }
	for every in 0 86400; do for api in spec efp; do for popular in false true; do \
		go test ./generator -run '^TestRounds$$' -v -timeout 2h -rounds "$(abspath $(BENCH_SNAPSHOT))" \
			-rounds-api $$api -rounds-every $$every -rounds-popular=$$popular || exit 1; \
	done; done; done

bench-live: $(BENCHSTAT) bench-tools ## measure live with a graph of the real network's size (half an hour; LIVE has flags, such as --burst 1m)
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	$(call measured,go run ./bench/live,live,$(LIVE))

bench-sources: $(BENCHSTAT) ## measure a first sync of the chains, and replay, against nodes of the real network's size
	go build -buildvcs=false -o $(BIN)/bench/ ./cmd/followpress
	$(call measured,go run ./bench/sources,sources,)

soak: race-tools $(SERVERS) ## kill publishers 500 times, and simulate SCHEDULES schedules of publishing (hours)
	TEST_SERVERS=1 KILLS=500 go test -race -count=1 -timeout 2h -run KilledPublishers -v ./publisher
	go test -count=1 -timeout 24h -v -run '^TestSimulation$$' ./publisher -schedules $(SCHEDULES) -seed 1000000

clean: ## remove what was built and generated
	rm -rf out bin dist $(BIN) internal/tools/edge/node_modules internal/tools/anvil/node_modules internal/tools/packages/node_modules client/kit/node_modules explorer/node_modules browsers/internal/browser/node_modules
