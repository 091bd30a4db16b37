# Everything runs in .venv, which is rebuilt whenever pyproject.toml or constraints.txt changes.

PYTHON ?= $(shell scripts/find_python)
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-benchmarks

.PHONY: help venv demo test test-slow planted-bugs lint format docs bench clean
.DELETE_ON_ERROR:

help:  ## Say what can be made
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python 3.11, 3.12 or 3.13 found; set PYTHON=..." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear $(VENV)
	$(PIP_INSTALL) -e '.[dev,docs]'
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(PIP_INSTALL) -e '.[benchmarks,distributed,rules]'
	@touch $@

venv: $(STAMP)  ## Create .venv with the package and its tools

demo: $(STAMP)  ## Run the demonstration; results go to demo-output/
	$(BIN)/bayes-lcs demo --out demo-output --force

test: $(STAMP)  ## Fast tests and the examples in the docstrings
	$(BIN)/python -m pytest -n auto --doctest-modules tests bayes_lcs

test-slow: $(STAMP)  ## The slow statistical tests, and only those
	$(BIN)/python -m pytest -n auto -m slow tests

planted-bugs: $(STAMP)  ## Plant each known bug in a copy and check that a test fails
	$(BIN)/python scripts/plant_bugs.py $(PLANT)

lint: $(STAMP)  ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(STAMP)  ## Build the documentation in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

bench: $(BENCH_STAMP)  ## Compare with other libraries in one run
	$(BIN)/python -m experiments.benchmarks

clean:  ## Remove everything that make created
	rm -rf $(VENV) demo-output docs/_build docs/auto_tutorials docs/sg_execution_times.rst dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
