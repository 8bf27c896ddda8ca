"""What is released: bounds that are tried, versions that agree, and hooks that do what `make lint` does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import belated

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Not installed beside the oldest versions; docs/releases.md says so.
NOT_TRIED = {"torch", "dask", "pyspark", "playwright"}
TOOLS = {"bench", "browser", "docs", "release", "dev"}


def lower_bounds(texts):
    return {Requirement(text).name: Version(spec.version) for text in texts for spec in Requirement(text).specifier}


def test_the_oldest_versions_that_are_tried_are_the_bounds():
    users = [
        *PROJECT["dependencies"],
        *(x for k, v in PROJECT["optional-dependencies"].items() if k not in TOOLS for x in v),
    ]
    bounds = {name: bound for name, bound in lower_bounds(users).items() if name not in NOT_TRIED}
    lines = (ROOT / "packaging" / "oldest.txt").read_text().splitlines()
    tried = {name: Version(version) for name, version in (line.split("==") for line in lines if "==" in line)}
    tables = lower_bounds(x for x in PROJECT["optional-dependencies"]["dev"] if x.startswith(("pandas", "polars")))
    assert {name: tried.get(name) for name in bounds | tables} == bounds | tables


def test_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == PROJECT["version"] == belated.__version__
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == PROJECT["version"]


def test_the_hook_runs_what_make_lint_runs():
    hooks = ROOT / ".pre-commit-config.yaml"
    if not hooks.exists():
        pytest.skip("not a checkout")
    assert re.findall(r"entry: (.*)", hooks.read_text()) == ["make lint"]


def test_every_target_of_the_pages_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md", "docs/releases.md"):
        named = set(re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert {a or b for a, b in named} <= targets, page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "ARCHITECTURE.md", "SECURITY.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), f"{page} links to {target}"
