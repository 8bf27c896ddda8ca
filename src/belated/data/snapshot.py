"""Snapshot: what was known about each sample at one instant, and how to rewind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.data.durations import DAY, is_number, parse_duration, to_days
from belated.data.times import NEVER, show_instant
from belated.tables.frames import take_rows
from belated.typing import Floats, Ints


@dataclass(frozen=True, repr=False)
class Snapshot:
    """The training data as it was knowable at ``as_of``.

    Attributes
    ----------
    X : frame
        Features, in the caller's own kind of frame.
    y : int array of shape (n,)
        1 where the outcome had happened by ``as_of`` (and within the horizon), else 0.
    elapsed : float array of shape (n,)
        Days from arrival to ``as_of``.
    delay : float array of shape (n,)
        Days from arrival to outcome where y is 1, else NaN.
    horizon : float or None
        The target's deadline in days: outcomes later than this count as negative.

    Examples
    --------
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> snap
    Snapshot(as_of=2024-01-24 00:00:00+00:00, rows=4174, positive so far=581, horizon=7 d)
    >>> len(snap.X), int(snap.y.sum()), float(snap.elapsed.max().round(1)), float(snap.delay[snap.y == 1].max().round(1))
    (4174, 581, 21.0, 6.9)
    """

    X: Any
    as_of_micros: int
    clock: str
    elapsed_micros: Ints
    delay_micros: Ints  # NEVER where no outcome is known
    horizon: float | None

    @property
    def y(self) -> Ints:
        return (self.delay_micros != NEVER).astype(np.int64)

    @property
    def elapsed(self) -> Floats:
        return to_days(self.elapsed_micros)

    @property
    def delay(self) -> Floats:
        return np.where(self.delay_micros == NEVER, np.nan, to_days(self.delay_micros))

    @property
    def as_of(self) -> str:
        return show_instant(self.as_of_micros, self.clock)

    def __len__(self) -> int:
        return len(self.elapsed_micros)

    def __repr__(self) -> str:
        horizon = "" if self.horizon is None else f", horizon={self.horizon:g} d"
        return f"Snapshot(as_of={self.as_of}, rows={len(self)}, positive so far={int(self.y.sum())}{horizon})"

    def rewind(self, window: Any) -> Snapshot:
        """The snapshot as of ``as_of - window``: younger rows vanish, later outcomes are unknown again.

        ``window`` is a number of days (the unit of ``elapsed``), or a duration such as ``"36h"``.
        """
        days = is_number(window)
        if days and not 0 < window < 1e6:
            raise ValueError(f"window={window!r} must be a positive number of days.")
        back = round(float(window) * DAY) if days else parse_duration(window, "window")
        keep = self.elapsed_micros >= back
        if not keep.any():
            raise ValueError(f"window={window!r} rewinds past the first arrival: no row is {back / DAY:g} days old.")
        elapsed = self.elapsed_micros[keep] - back
        delay = self.delay_micros[keep]
        return Snapshot(
            X=take_rows(self.X, keep),
            as_of_micros=self.as_of_micros - back,
            clock=self.clock,
            elapsed_micros=elapsed,
            delay_micros=np.where(delay <= elapsed, delay, NEVER),
            horizon=self.horizon,
        )
