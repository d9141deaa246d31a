# Needs Python 3.11 or newer and make; everything else is installed into $(VENV).
#   make demo                two clusters, a dead primary, a failover: under two minutes
#   make test                the quick tier, then the system tier on real brokers
#   make PYTHON=python3.13   another interpreter (for a new $(VENV))
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Extra arguments for pytest: make quick ARGS="-k checkpoint -x"
ARGS ?=
# Processes that share the tests: make quick WORKERS=0 for one without pytest-xdist (and with --pdb).
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest $(ARGS)
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
# An editable installation compiles nothing by itself, and some environments forbid it at run time.
COMPILE = $(BIN)/python -m compileall -q failover

# The theme announces its successor on every build; docs/dependencies.md says what that means here.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test quick system lint format bench chaos docs clean

help:
	@echo "make demo | test | quick | system | lint | format | bench | chaos | docs | clean"

demo: $(VENV)/.lab
	$(BIN)/failover demo

test: quick system

quick: $(VENV)/.test
	$(PYTEST) -q -m quick -n $(WORKERS)

system: $(VENV)/.test
	$(PYTEST) -q -m system -n $(WORKERS) --dist loadfile

bench: $(VENV)/.test
	$(PYTEST) -q -s tests/bench

chaos: $(VENV)/.test
	FAILOVER_TEST_EXAMPLES=600 $(PYTEST) -q -m quick -n $(WORKERS)
	$(PYTEST) -q tests/chaos

# The import contract comes first: a wrong layer is cheaper to mend than anything below it.
lint: $(VENV)/.test $(VENV)/.docs
	$(BIN)/lint-imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find failover tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp a step: a second run installs nothing until pyproject.toml changes.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "error: $(PYTHON) is not Python 3.11 or newer; name one: make PYTHON=python3.13 …" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "error: $(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.lab: pyproject.toml $(VENV)/.python
	$(INSTALL) '.[lab]'
	@$(COMPILE)
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.python
	$(INSTALL) '.[test]'
	@$(COMPILE)
	@touch $@ $(VENV)/.lab

$(VENV)/.docs: pyproject.toml $(VENV)/.python
	$(INSTALL) '.[docs]'
	@touch $@
