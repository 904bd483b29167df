# The whole project in one command each. Needs: python3 (3.11 or newer, with pip and venv), make, git.
# Variables are given after the target, never taken from the environment:
#   make test ARGS="tests/operators -k sparse"      make demo PYTHON=python3.12

PYTHON := python3
OLDEST := python3.11
JOBS := 2
ARGS :=

VENV := .venv
BIN := $(VENV)/bin
FLOORS := .venv-floors

# What a caller may have set for another project must not reach ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PIP_USER PIP_TARGET PIP_PREFIX PYTEST_ADDOPTS MYPYPATH
export PYTHONUTF8 := 1
# A user without a home, or whose home cannot be written, keeps caches in the checkout.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export HOME := $(CURDIR)/$(VENV)/home
endif
SHELL := /bin/sh

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check portable mutate format bench clean distclean

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)$$/  make \1	\2/p' Makefile

demo: $(VENV)/.demo  ## a first look: train, predict and draw, into demo/
	$(BIN)/python -m examples.demo $(ARGS)

# Processes that share the cores must not each start a BLAS thread a core: they would wait for each other, spinning.
test: $(VENV)/.dev  ## every test and doctest; JOBS=2 processes, ARGS= for pytest
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --dist worksteal $(ARGS)

check: $(VENV)/.dev  ## format, lint, types, imports, sizes, docstrings; changes nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/house.py
	$(BIN)/python .ci/numpydoc_check.py

portable: $(VENV)/.dev $(FLOORS)/.dev  ## the numerical tests as on other CPUs, with other threads and the oldest versions
	$(BIN)/python .ci/portable.py $(JOBS) $(ARGS)

mutate: $(VENV)/.dev  ## small faults in the source that no test notices; ARGS= for the script
	$(BIN)/python .ci/mutate.py $(ARGS)

format: $(VENV)/.dev  ## format, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## time it and print the ratio tables; ARGS= for the command
	$(BIN)/python benchmarks/bench.py $(ARGS)

clean:  ## remove what the other commands made, except .venv
	rm -rf demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -type d \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +

distclean: clean  ## and .venv
	rm -rf $(VENV) $(FLOORS)

# One environment, two stamps: a newcomer's first demo does not wait for the developers' tools.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "saccade needs Python 3.11 or newer, and '$(PYTHON)' is not; name one that is: make <target> PYTHON=python3.12" >&2; \
	  exit 1; }
	@echo "Making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.created
	@echo "Installing saccade and what the demo needs into $(VENV) (the first time takes a minute or two)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.created
	@echo "Installing saccade and the developers' tools into $(VENV) (the first time takes a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(VENV)/.demo $@

# The floors of pyproject.toml, and nothing newer of what it names.
$(FLOORS)/.dev: pyproject.toml .ci/floors.py $(VENV)/.created
	@$(OLDEST) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "The oldest versions have wheels for Python 3.11, and '$(OLDEST)' is none; name one: make portable OLDEST=<path>" >&2; \
	  exit 1; }
	@echo "Installing saccade and the oldest versions it takes into $(FLOORS) (a few minutes)"
	@$(OLDEST) -m venv --clear $(FLOORS)
	@$(FLOORS)/bin/python .ci/floors.py > $(FLOORS)/constraints.txt
	@$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check -c $(FLOORS)/constraints.txt -e '.[plots,tables,pictures,deep,demo,tools]'
	@touch $@
