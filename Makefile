# Everything a person or CI runs here. `make help` lists it; each target sets up what it needs first.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.ready
# The interpreter that the environment is made with: `make setup PYTHON=/path/to/python3.12`.
PYTHON ?=
# Test processes side by side; `make test JOBS=0` runs in one process.
JOBS ?= auto
# `make test SLOW=1` takes the slow tests along.
SLOW ?=
# More for pytest: `make test ARGS='-k explain -x'`.
ARGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Lets the tests find the traces beside the checkout; tests that need them skip loudly where they are absent.
export ALIQUOT_SHARED ?= $(abspath ../shared)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## make .venv with the locked versions (again only when they change)

$(STAMP): pyproject.toml requirements/lock.txt scripts/make_venv.sh
	@PYTHON='$(PYTHON)' scripts/make_venv.sh $(VENV) requirements/lock.txt
	@touch $@

.PHONY: demo
demo: setup ## the case: whole-card FIFO against binpack, slices and priority; then a service and a few jobs
	@scripts/demo.sh
	@scripts/demo_service.sh

.PHONY: test
test: setup ## the fast tests (SLOW=1: all)
	@$(PY) -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal -m '$(if $(SLOW),,not slow and )not uml' $(ARGS)

.PHONY: test-slow
test-slow: setup ## only the slow tests
	@$(PY) -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal -m 'slow and not uml' $(ARGS) || { code=$$?; test $$code -eq 5; }

# Rounds of `make search`.
ROUNDS ?= 10

.PHONY: test-uml
test-uml: setup ## power cuts and cgroup v2 on a User-Mode Linux machine; not in CI: its patience depends on the host
	@$(PY) -m pytest -m uml $(ARGS)

.PHONY: search
search: setup ## the properties with new random examples, ROUNDS=10 times over
	@for round in $$(seq $(ROUNDS)); do \
	  ALIQUOT_SEARCH=1 $(PY) -m pytest -q -n $(JOBS) --maxprocesses 8 tests/properties -m '' $(ARGS) || exit; \
	done

.PHONY: check
check: setup ## lint, format, types, layers
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo

.PHONY: format
format: setup ## put the code into the one format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: bench
bench: setup ## every benchmark: tables here, JSON in bench/results
	@scripts/bench.sh

.PHONY: lock
lock: ## write requirements/lock.txt anew from pyproject.toml
	@PYTHON='$(PYTHON)' scripts/make_lock.sh requirements/lock.txt

.PHONY: clean
clean: ## remove the environment, caches and outputs
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
