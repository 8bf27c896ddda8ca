"""Hazard heads: at the end of each interval of ages, whether a row that was still open has turned positive in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.streaming.methods.base import Costs, Moments, PositiveBy, StreamMethod, ages_from
from belated.streaming.stream_records import Kinds
from belated.typing import Bools, Floats, Ints


class HazardHeads(StreamMethod):
    """One margin for each interval; every label is final when it is learned, so there are no weights and nothing to estimate first.

    p = 1 - the product over intervals of 1 - h, with h = sigmoid(margin) the chance of an outcome in an interval, given none before.

    Parameters
    ----------
    intervals : int, or sequence of durations
        How many, each four times as long as the one before it, the last up to the horizon; or where they end.
    """

    name = "hazard-heads"
    needs_window = False

    def __init__(self, intervals: int | Sequence[Any] = 6) -> None:
        self.intervals = intervals

    def ages(self, window: int, horizon: int) -> list[int]:
        return ages_from(self.intervals, horizon)

    def heads(self, moments: Moments) -> int:
        return len(moments.ages)

    def at_age(self, k: int, delay: Ints, moments: Moments) -> tuple[Bools | None, Bools, int]:
        at_risk = None if k == 0 else delay > moments.ages[k - 1]
        return at_risk, delay <= moments.ages[k], k

    def soft_records(self, positive_by: PositiveBy, moments: Moments) -> list[tuple[int, Costs]]:
        found, before = [], np.zeros(1)
        for k, age in enumerate(moments.ages):
            by_now = positive_by(age)
            found.append((k, Costs(np.maximum(by_now - before, 0.0), 1.0 - by_now)))
            before = by_now
        return found

    def head(self, kind: Kinds) -> Ints:
        return kind.astype(np.int64)

    def probability(self, margins: Floats) -> Floats:
        return -np.expm1(-np.logaddexp(0.0, margins).sum(axis=1))

    def positive_by_ages(self, margins: Floats) -> Floats:
        return -np.expm1(-np.logaddexp(0.0, margins).cumsum(axis=1))
