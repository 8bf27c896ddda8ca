"""The delayed feedback model on a stream: at fixed ages, whether a row is positive yet, given how many should be by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.streaming.methods.base import Costs, Moments, PositiveBy, StreamMethod, ages_from
from belated.streaming.stream_records import Kinds
from belated.typing import Bools, Floats, Ints

_FEW = 200.0  # mature positives, below which the shares seen at each age are compared with each other
_LEAST = 1e-3  # of the delay curve


class FixedAges(StreamMethod):
    """At each age a row costs -log(f F) if it is positive by then and -log(1 - f F) if not, F being the share of positives that come by then.

    F is one curve for all rows. It is refreshed from rows that reach the horizon, older ones fading; until enough have, from how
    many are positive at each age.

    Parameters
    ----------
    intervals : int, or sequence of durations
        Ages, as in :class:`HazardHeads`.
    memory : float
        About how many mature positives the curve remembers.
    """

    name = "dfm-stream"
    needs_window = False
    sees_mature = True

    def __init__(self, intervals: int | Sequence[Any] = 6, memory: float = 20_000.0) -> None:
        self.intervals = intervals
        self.memory = memory

    def ages(self, window: int, horizon: int) -> list[int]:
        return ages_from(self.intervals, horizon)

    def open(self, moments: Moments) -> None:
        count = len(moments.ages)
        self.ages_ = np.array(moments.ages, dtype=np.int64)
        self.come_, self.seen_, self.positive_ = np.zeros(count), np.zeros(count), np.zeros(count)

    def soft_records(self, positive_by: PositiveBy, moments: Moments) -> list[tuple[int, Costs]]:
        come = np.array([positive_by(age).sum() for age in moments.ages])
        self.come_ = come * min(1.0, self.memory / max(come[-1], 1e-300))
        return super().soft_records(positive_by, moments)

    def state(self) -> dict[str, Floats]:
        return {"come": self.come_, "seen": self.seen_, "positive": self.positive_}

    def restore(self, state: dict[str, Floats]) -> None:
        self.come_, self.seen_, self.positive_ = state["come"], state["seen"], state["positive"]

    @property
    def curve_(self) -> Floats:
        """F at each age; the last is 1."""
        if self.come_[-1] >= _FEW:
            found = self.come_ / self.come_[-1]
        else:
            rate = np.maximum.accumulate(self.positive_ / np.maximum(self.seen_, 1.0))
            found = rate / rate.max() if rate.max() > 0 else np.ones(len(rate))
        return np.clip(found, _LEAST, 1.0)

    def positive_by_ages(self, margins: Floats) -> Floats:
        return self.probability(margins)[:, None] * self.curve_

    def learn_mature(self, delay: Ints) -> None:
        come = (delay[:, None] <= self.ages_).sum(axis=0).astype(np.float64)
        self.come_ = self.come_ * max(1.0 - come[-1] / self.memory, 0.0) + come

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        count = len(self.ages_)
        self.seen_ += np.bincount(kind, minlength=count)
        self.positive_ += np.bincount(kind, label, minlength=count)
        return Costs(label.astype(np.float64), (~label).astype(np.float64), self.curve_[kind])
