# The front door. Each target first makes sure that its packages are there (scripts/setup, packaging/packages.txt);
# the building itself is CMake's (CMakeLists.txt, CMakePresets.json).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
ARGS ?=
CTEST_ARGS ?=
export JOBS
# What the tests for other machines need: cross compilers from x86-64.
MACHINES := $(if $(filter x86_64,$(shell uname -m)),machines)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := build
# configure and build one preset: $(call make_preset,name,directory,targets)
make_preset = scripts/configure $(1) $(2) && \
	cmake --build $(2) -j $(JOBS) --target $(3)

.PHONY: build run test test-sanitize test-asan test-tsan test-long mutate fuzz bench bench-server bench-fleet bench-peers lint format coverage openapi proto reference schema install uninstall clean help

build: ## build the library and the program (build/weir)
	@scripts/setup build
	@$(call make_preset,release,build,all)

run: build ## start the server with example rules and the demo (ARGS=... for its options), until it is interrupted
	@build/weir serve --demo $(ARGS) </dev/null

test: ## build and run every test; ends with "N passed, N failed"
	@scripts/setup build test $(MACHINES)
	@$(call make_preset,release,build,all test-programs)
	@scripts/run-tests build $(CTEST_ARGS)

test-sanitize: test-asan test-tsan ## the tests under AddressSanitizer + UBSan, then ThreadSanitizer

test-asan: ## the tests under AddressSanitizer and UBSan
	@scripts/setup build test sanitize
	@$(call make_preset,asan,build/asan,all test-programs)
	@scripts/run-tests build/asan -LE '^(nosan|noasan)$$' $(CTEST_ARGS)

test-tsan: ## the tests under ThreadSanitizer
	@scripts/setup build test sanitize
	@$(call make_preset,tsan,build/tsan,all test-programs)
	@scripts/run-tests build/tsan -LE '^(nosan|notsan)$$' $(CTEST_ARGS)

test-long: ## the tests set for hours: 10^9 decisions, long floods, more kills; the server under sanitizers
	@$(MAKE) test-sanitize CTEST_ARGS='-L server'
	@scripts/setup build test $(MACHINES)
	@$(call make_preset,long,build/long,all test-programs)
	@scripts/run-tests build/long $(CTEST_ARGS)

mutate: ## change single places of the source and list the changes that no test notices (ARGS="--seed 7 --count 20 --files src/wire")
	@scripts/setup build test
	@scripts/mutate $(ARGS)

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	@scripts/setup build test fuzz
	@$(call make_preset,fuzz,build/fuzz,all test-programs)
	@scripts/fuzz build/fuzz $(FUZZ_SECONDS)

bench: build ## measure the engine next to its floors (ARGS=--json for one object)
	@build/weir-bench core $(ARGS) </dev/null

bench-server: build ## measure the server next to Redis and nginx (ARGS=--quick for a smoke test)
	@scripts/setup bench
	@bench/server $(ARGS) </dev/null

bench-fleet: build ## measure decisions of a shared store next to redis-benchmark (ARGS=--quick for a smoke test)
	@scripts/setup bench
	@bench/fleet $(ARGS) </dev/null

bench-peers: build ## measure the server next to other rate limiters (ARGS=--help names them)
	@scripts/setup bench
	@bench/peers $(ARGS) </dev/null

lint: ## format, layers, pictures, everything built by clang -Werror, clang-tidy, shell scripts
	@scripts/setup build test lint
	@$(call make_preset,clang,build/clang,all test-programs)
	@scripts/lint build/clang

format: ## rewrite the sources in the style of .clang-format
	@scripts/setup lint
	@git ls-files -co --exclude-standard -- '*.c' '*.h' | xargs -r clang-format -i

coverage: ## which lines the tests reach (build/coverage/report.txt)
	@scripts/setup build test coverage
	@$(call make_preset,coverage,build/coverage,all test-programs)
	@scripts/run-tests build/coverage -LE '^nosan$$' $(CTEST_ARGS)
	@gcovr -r . -f src/ --object-directory build/coverage --exclude-throw-branches -o build/coverage/report.txt
	@tail -n 4 build/coverage/report.txt

openapi: build ## write docs/reference/openapi.json anew, after operations or openapi_base.json have changed
	@build/make_manual --openapi >docs/reference/openapi.json

proto: build ## write proto/weir/v1/limiter.proto anew, after operations have changed
	@build/make_manual --proto >proto/weir/v1/limiter.proto

reference: build ## write docs/reference/{metrics,rules,bounds,notices}.md anew, after metrics, keys of the rule file, bounds or notices have changed
	@build/make_manual --metrics >docs/reference/metrics.md
	@build/make_manual --rules >docs/reference/rules.md
	@build/make_manual --bounds >docs/reference/bounds.md
	@build/make_manual --notices >docs/reference/notices.md

schema: build ## write schema/weir.schema.json anew, after keys of the rule file have changed
	@build/make_manual --schema >schema/weir.schema.json

install: build ## install below PREFIX (/usr/local); DESTDIR is respected
	@cmake --install build --prefix "$(PREFIX)"

uninstall: build ## remove from below PREFIX what `make install` has put there
	@scripts/uninstall build "$(PREFIX)"

clean: ## remove everything that was built
	@rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
