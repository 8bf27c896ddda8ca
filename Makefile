# Every target sets up what it needs in .venv; only Python 3.11+, pip and make are assumed.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-browser test-cluster test-oldest lint format docs dist bench clean

demo: .venv/.report
	$(BIN)/belated demo --report report.html

test: lint
	$(BIN)/pytest -n 2

# Reports and the site in a real browser: Debian's Chromium, installed where it is missing, unless CHROMIUM names another one.
test-browser: .venv/.browser docs
	@test -n "$$CHROMIUM" || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ SUDO=$$(test "$$(id -u)" = 0 || echo sudo); $$SUDO apt-get update -q && $$SUDO apt-get install -y -q chromium; }
	$(BIN)/pytest tests/report tests/site --browser-required

# Real engines: Dask with worker processes, and Spark with executors on Java 17, installed where there is no Java.
test-cluster: .venv/.cluster
	@command -v java >/dev/null || \
		{ SUDO=$$(test "$$(id -u)" = 0 || echo sudo); $$SUDO apt-get update -q && $$SUDO apt-get install -y -q openjdk-17-jre-headless; }
	$(BIN)/pytest tests/cluster -m cluster

# The default tests with the oldest supported version of every dependency, in an environment of their own.
test-oldest: .venv-oldest/.dev
	.venv-oldest/bin/pytest -n 2

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, into docs/_build/html: open index.html there. Building it uses no network, and runs the examples of the gallery.
docs: .venv/.docs
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

# What would be released: built, checked, and used in empty environments with the newest and the oldest dependencies.
dist: .venv/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python packaging/try_wheel.py dist/*.whl

bench: .venv/.bench
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/wide.py
	$(BIN)/python benchmarks/methods.py 6000000
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/boosting.py 500000
	$(BIN)/python benchmarks/streaming.py 700000

.venv/.core: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/.report: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[report]'
	touch $@

.venv/.browser: .venv/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[browser]'
	touch $@

.venv/.cluster: .venv/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dask,spark]'
	touch $@

.venv/.bench: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	-$(BIN)/pip install --quiet --disable-pip-version-check vowpalwabbit river
	touch $@

.venv/.docs: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

.venv/.release: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[release]'
	touch $@

.venv-oldest/.dev: pyproject.toml packaging/oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check --constraint packaging/oldest.txt --editable '.[dev]'
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .venv-oldest dist .mypy_cache .pytest_cache .ruff_cache docs/_build docs/gallery docs/methods/generated docs/reference/generated
