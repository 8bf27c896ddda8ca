"""Stretches of arrival time: rows that came one after another, kept together when some are left out."""

from __future__ import annotations

import numpy as np

from belated.cluster.sharded import ranked
from belated.typing import Floats, Ints

STRETCHES = 6


def stretch_of_rows(age: Floats, stretches: int = STRETCHES) -> Ints:
    """The stretch of time in which each row arrived, 0 for the oldest: as many rows in each as ties allow."""
    count = len(age)
    edges = ranked(age, [count * k // stretches for k in range(1, stretches)])
    numbers = -np.searchsorted(edges, age, side="right")
    # Numbered without gaps, for where many rows came at the same time some stretches are empty.
    return np.searchsorted(np.unique(numbers), numbers)
