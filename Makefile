# Every target makes the virtual environment that it needs and installs the extras
# that it uses, again when pyproject.toml has changed.
#
#   PYTHON   the interpreter that makes the environment (3.11 or newer)
#   VENV     the folder of the environment
#   PINS     a file of versions to install, constraints/oldest.txt or newest.txt

PYTHON ?= python3
VENV ?= .venv
PINS ?=
SKLEARNS := 1.7 1.8 1.9

BIN := $(VENV)/bin
export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint doc bench fuzz compat clean

## demo    run the quickstart example
demo: $(VENV)/.stamp-plot
	$(BIN)/python examples/plot_quickstart.py

## test    run the tests and the docstring examples
test: $(VENV)/.stamp-test
	$(BIN)/python -m pytest

## lint    check style and formatting
lint: $(VENV)/.stamp-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

## doc     build the documentation into doc/_build/html
doc: $(VENV)/.stamp-doc
	$(BIN)/python -m sphinx -W --keep-going -b html doc doc/_build/html

## bench   measure speed and memory, and write the tables of the guide's page on them
bench: $(VENV)/.stamp-bench
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/suite.py
	$(BIN)/python benchmarks/full_size.py

## fuzz    run the tests on random input
fuzz: $(VENV)/.stamp-test
	$(BIN)/python tests/fuzz.py

## compat  try scikit-learn's tools on each version of it, for the guide's table
COMPAT_VENVS := $(SKLEARNS:%=$(VENV)-sklearn-%)
compat: $(COMPAT_VENVS:%=%/.stamp-test)
	$(firstword $(COMPAT_VENVS))/bin/python doc/compatibility.py \
	  $(COMPAT_VENVS:%=%/bin/python)

## clean   remove the environment and everything that was built
clean:
	rm -rf .venv .venv-sklearn-* build dist doc/_build doc/auto_examples doc/generated
	rm -rf doc/sg_execution_times.rst .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

help:
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^## /  /p' Makefile

$(VENV)/.stamp-venv:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "$(PYTHON) not found: name a Python 3.11 or newer, make PYTHON=..." >&2; \
	  exit 1; }
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
	  echo "skdisent needs Python 3.11 or newer, $(PYTHON) is" \
	    "$$("$(PYTHON)" --version 2>&1): name another, make PYTHON=..." >&2; \
	  exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"
	@touch "$@"

# .stamp-NAME: the package is installed with its extra NAME.
$(VENV)/.stamp-%: pyproject.toml $(VENV)/.stamp-venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $(PINS:%=-c "%") -e ".[$*]"
	@touch "$@"

$(VENV)-sklearn-%/.stamp-test: pyproject.toml
	"$(PYTHON)" -m venv "$(@D)"
	"$(@D)/bin/python" -m pip install --quiet --disable-pip-version-check \
	  "scikit-learn==$*.*" -e ".[test]"
	@touch "$@"
