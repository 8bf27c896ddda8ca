"""Libraries that are not always there: which extra brings them, and how to get it. Said here, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def how_to_install(*extras: str) -> str:
    """Until the package is published, a clone is the only place to install it from.

    >>> how_to_install("report")
    "in the clone of belated, run pip install '.[report]'"
    """
    return f"in the clone of belated, run pip install '.[{','.join(extras)}]'"


class MissingExtra(ValueError):
    """A library is not there, or cannot be loaded."""


@contextmanager
def needs(*extras: str) -> Iterator[None]:
    """Turn a missing library into a sentence that says how to get it."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"this needs {error.name}: {how_to_install(*extras)}.") from None
