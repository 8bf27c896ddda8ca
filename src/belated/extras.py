"""Libraries that are not always there: which extra brings them, and how to get it. Said here, once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import requires


def how_to_install(*extras: str) -> str:
    """What brings the libraries of extras, by their own names: so it is right wherever belated came from, and asks no index for belated.

    >>> how_to_install("report")
    "pip install 'jinja2>=3.1' 'matplotlib>=3.8.4'"
    """
    of_extras = re.compile(rf"([^;]+);.*extra == ['\"]({'|'.join(extras)})['\"]")
    found = [of_extras.fullmatch(line) for line in requires("belated") or ()]
    return " ".join(["pip install", *(f"'{match[1].strip()}'" for match in found if match)])


class MissingExtra(ValueError):
    """A library is not there, or cannot be loaded."""


@contextmanager
def needs(*extras: str) -> Iterator[None]:
    """Turn a missing library into a sentence that says how to get it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"this needs {error.name}: {how_to_install(*extras)}.") from None
