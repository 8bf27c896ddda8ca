"""The one form in which the library complains about rows of the user's data."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.typing import Bools


def counted(count: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def refuse(bad: Bools, name: str, what: str, values: Any, advice: str) -> None:
    """Raise a ValueError where any row is bad: it names the column, how many rows, the first of them, and what to do.

    >>> refuse(np.array([False, True]), "age", "{count} negative", [3, -1], "Drop them.")
    Traceback (most recent call last):
    ...
    ValueError: column 'age': 1 row is negative, the first at row 1 (-1). Drop them.
    """
    bad = np.asarray(bad)
    count = int(bad.sum())
    if count:
        first = int(np.argmax(bad))
        shown = values[first]
        shown = shown.item() if isinstance(shown, np.generic) else shown.as_py() if hasattr(shown, "as_py") else shown
        rows = "1 row is" if count == 1 else f"{count} rows are"
        raise ValueError(f"column {name!r}: {what.format(count=rows)}, the first at row {first} ({shown}). {advice}")
