VENV ?= .venv
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
ARGS ?=

BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore
DEMO_READY := $(VENV)/.ready-demo
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-sqlite test-postgresql lint format types layers migrations-check docs bench \
	faults wheel-check clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with everything that development needs

demo: $(DEMO_READY) ## Run the demo project; DATABASE_URL=... picks the database
	$(BIN)/python manage.py demo $(ARGS)

test: test-sqlite test-postgresql ## Run the tests on SQLite, then on PostgreSQL; ARGS=... goes to pytest

test-sqlite: $(READY) ## Run the tests on SQLite
	TEST_DATABASE=sqlite $(BIN)/python -m pytest $(ARGS)

test-postgresql: $(READY) ## Run the tests on PostgreSQL: DATABASE_URL, or a server of their own
	TEST_DATABASE=postgresql $(BIN)/python -m pytest $(ARGS)

lint: $(READY) ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY) ## Format, and repair what can be repaired
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## Check types
	$(BIN)/mypy

layers: $(READY) ## Check that imports point one way
	$(BIN)/lint-imports

migrations-check: $(READY) ## Check that no migration is missing
	$(BIN)/python manage.py makemigrations --check --dry-run

docs: $(READY) ## Build the documentation into docs/_build/html
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs docs/_build/html

bench: $(READY) ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

faults: $(READY) ## Attack a worker fleet for an hour; reports in var/faults-report*.md
	status=0; \
	$(BIN)/python -m faults --report var/faults-report.md $(ARGS) || status=1; \
	$(BIN)/python -m faults --report var/faults-report-sqlite.md --database sqlite $(ARGS) || status=1; \
	exit $$status

wheel-check: $(READY) ## Build the wheel, install it in a fresh environment and use it there
	.ci/wheel-check $(BIN)/python

clean: ## Remove everything that can be made again
	rm -rf .venv .ci-venvs build dist docs/_build var .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed: make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade "pip>=25.1"

$(DEMO_READY): pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable . --group demo
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --editable . --group dev
	@touch $@ $(DEMO_READY)
