"""Libraries that are not always there: which extra brings them, and how to get it. Said here, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def how_to_install(*extras: str) -> str:
    """What brings the libraries of extras; pip keeps the belated that is installed, from wherever it came.

    >>> how_to_install("report")
    "pip install 'belated[report]'"
    """
    return f"pip install 'belated[{','.join(extras)}]'"


class MissingExtra(ValueError):
    """A library is not there, or cannot be loaded."""


@contextmanager
def needs(*extras: str) -> Iterator[None]:
    """Turn a missing library into a sentence that says how to get it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"this needs {error.name}: {how_to_install(*extras)}.") from None
