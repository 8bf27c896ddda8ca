# Every target sets up what it needs in .venv; only Python 3.11+, pip and make are assumed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format bench clean

demo: .venv/.core
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/pytest -n 2

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/wide.py

.venv/.core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.bench: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache
