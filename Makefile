# `make help` lists the targets. Node 24 comes with the project's dependencies; this PATH lets every recipe find it.
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
TESTS := 'test/unit/**/*.test.ts' 'test/feature/**/*.test.ts' 'test/conformance/**/*.test.ts' 'test/cluster/**/*.test.ts'

# What a change is compared with to run first what it can touch.
BASE ?= main

.DEFAULT_GOAL := help
.PHONY: help up install build package generate baseline verify check test test-slow test-nightly golden fields fields-check cel-conformance conformance bench testbed image changelog

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 18

node_modules/.install: package.json package-lock.json tools/node/package.json
	npm install --no-save --no-audit --no-fund --ignore-scripts
	@touch $@

install: node_modules/.install ## Install what the project needs

# Ctrl-C goes to every process in the terminal's group, make included, which then ends by the signal and not with 0. With
# `set -m` the quickstart is a group of its own, so that it stops by itself and make reads its exit code.
up: install ## Start the quickstart: gateway, plain service and mock provider, all on loopback
	@command="node examples/quickstart/start.ts --provider $(or $(PROVIDER),mock)"; \
	if [ -t 0 ]; then set -m; $$command; else exec $$command; fi

generate: install ## Write CRDs, types, validators, rules and reference pages from crds/schemas
	node tools/modules.ts
	oxfmt .oxlintrc.json
	node codegen/main.ts
	node test/fields/main.ts --write

build: install ## Write the published form of the program to dist/
	node tools/package.ts

package: build ## Pack the npm package
	npm pack --ignore-scripts

baseline: install ## Accept that the CRDs no longer take what they took: nothing else removes a field or tightens a bound
	node codegen/main.ts --baseline

check: install ## Types, lint, format, dead code
	tsc -p .
	oxlint
	oxfmt --check .
	knip

verify: check ## Everything that must hold without running a test: generated files are fresh, the code is clean
	node codegen/main.ts --verify
	node test/fields/main.ts --verify

testbed: install ## Build what tests run against (etcd, kube-apiserver, kubectl, ratelimit, an ext server, a collector, Helm) into a cache outside the checkout
	bash test/testbed/build.sh kubernetes
	bash test/testbed/build.sh services
	bash test/testbed/build.sh metrics
	bash test/testbed/build.sh telemetry
	bash test/testbed/build.sh helm

test: install testbed ## Run the tests: unit, feature and against a real API server
	node --import tsx test/run.ts $(TESTS)
	$(MAKE) fields-check

test-slow: install testbed ## The slow lane, which needs root, Java, Maven and Chromium too: Keycloak, SPIRE, the reference endpoint picker, a node, sieges, 600 generated objects of each kind, 10,000 expressions, conformance
	bash test/testbed/build.sh node
	bash test/testbed/build.sh conformance
	bash test/testbed/build.sh inference
	bash test/testbed/build.sh spire
	bash test/testbed/build.sh python
	GWPROXY_OBJECTS=600 GWPROXY_EXPRESSIONS=10000 node --import tsx test/run.ts --at-once 1 --changed-since $(BASE) \
		'test/slow/**/*.test.ts' test/cluster/properties.test.ts test/conformance/cel/differential.test.ts
	$(MAKE) conformance

test-nightly: install testbed ## Random breadth that no change can wait for, with a new GWPROXY_SEED each time: 2,000 generated objects of each kind, 40,000 expressions, fuzzing, properties
	seed=$${GWPROXY_SEED:-$$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}; echo "GWPROXY_SEED=$$seed make test-nightly repeats this run"; \
	GWPROXY_SEED=$$seed GWPROXY_OBJECTS=2000 GWPROXY_EXPRESSIONS=40000 node --import tsx test/run.ts --at-once 1 \
		test/cluster/properties.test.ts test/conformance/cel/differential.test.ts test/slow/fuzz.test.ts $$(grep -rl assertProperty test/unit)

cel-conformance: install ## List every case of the official expression test data with its verdict
	@node --import tsx test/conformance/cel/main.ts

conformance: install ## The official suites of the Gateway API and its inference extension against our images on a real node; needs root and writes the reports
	node --import tsx test/conformance/gateway-api/main.ts $(if $(SUITE),--suite '$(SUITE)') $(if $(RUN),--run '$(RUN)')

golden: install ## Rewrite the golden files; look at the difference before you commit it
	UPDATE_GOLDEN=1 node --import tsx --test 'test/unit/**/golden.test.ts'

fields: install ## List every field of the schemas with the test that proves it
	node test/fields/main.ts --write --print

fields-check: install ## Re-run each proof without its field, and with another value: it must then fail by an assertion
	node test/fields/main.ts --check $(if $(FIELD),--field '$(FIELD)')

bench: install ## CPU-microseconds per request, side by side with the peers that can be installed
	node --import tsx test/bench/main.ts $(BENCH)

changelog: install ## Fold the notes of changes/unreleased into CHANGELOG.md as a release: VERSION=0.2.0
	node tools/changelog.ts $(VERSION)

image: install ## Pack the container images of this architecture as an archive with its bill of materials, without Docker
	node tools/image.ts
