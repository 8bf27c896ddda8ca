"""The reference: every public name is in it, with an example that the doctests run."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import belated

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "index.md").read_text()
NAMES = [
    f"{module}.{name}"
    for module in ("belated", "belated.plot", "belated.datasets")
    for name in import_module(module).__all__
]


def listed():
    """The names of the page's tables, each with its module."""
    found = []
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", PAGE, re.DOTALL):
        module = re.search(r"currentmodule:: (\S+)", block)[1]
        found += [f"{module}.{name}" for name in re.findall(r"^ {3}([A-Za-z][\w.]*)$", block, re.MULTILINE)]
    return found


def test_every_public_name_is_in_the_reference_once():
    there = listed()
    assert len(set(there)) == len(there)
    assert set(NAMES) <= set(there)


def test_the_reference_names_nothing_that_is_not_there():
    for name in listed():
        module, last = name.rsplit(".", 1)
        assert hasattr(import_module(module), last), name


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name):
    module, last = name.rsplit(".", 1)
    text = getattr(import_module(module), last).__doc__
    assert "    Examples\n    --------\n    >>> " in text or re.search(r"^ {4}>>> ", text, re.MULTILINE), name


def test_every_method_by_name_is_a_public_class():
    from belated.methods import METHODS

    assert {kind for _, kind, _ in METHODS.values()} <= set(belated.__all__)
