"""Stretches of arrival time: rows that came one after another, kept together when some are left out."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats, Ints

STRETCHES = 6


def stretch_of_rows(age: Floats, stretches: int = STRETCHES) -> Ints:
    """The stretch of time in which each row arrived, 0 for the oldest: as many rows in each as ties allow."""
    order = np.sort(age)
    edges = [order[len(age) * k // stretches] for k in range(1, stretches)]
    # Numbered without gaps, for where many rows came at the same time some stretches are empty.
    return np.unique(-np.searchsorted(edges, age, side="right"), return_inverse=True)[1]
