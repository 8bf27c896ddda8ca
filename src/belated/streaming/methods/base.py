"""What a method of the stream is: which records a row puts on it, and with which weights they are learned.

With p = P(d <= H | x) for delay d and horizon H, q = P(w < d <= H | x) for window w, and z = P(negative | no early positive, x), a
record costs a * -log f + b * -log(1 - c f), where f is the model's p. The weights may depend on f, which then is a number that
was predicted before, and on estimates of q and z. Whatever the paper says, a method here has the true p as its fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from belated.data.durations import DAY, duration_text, parse_duration
from belated.streaming.stream_records import Kinds
from belated.typing import Bools, Floats, Ints

PositiveBy = Callable[[int], Floats]  # an age in microseconds to P(positive by then | x) of rows

_LEAST = 1e-6  # of what is predicted


@dataclass(frozen=True)
class Moments:
    """Ages at which records are made, the window and the horizon; all in microseconds."""

    ages: tuple[int, ...]
    window: int
    horizon: int


@dataclass(frozen=True)
class Costs:
    """Of n records: a, b and c as above."""

    a: Floats
    b: Floats
    c: Floats | None = None  # None: 1

    def take(self, rows: Any) -> Costs:
        return Costs(self.a[rows], self.b[rows], None if self.c is None else self.c[rows])


class StreamMethod(BaseEstimator):
    """One paper. A subclass writes :meth:`ages`, :meth:`at_age` and :meth:`costs`, and what differs of the rest."""

    name: ClassVar[str]
    needs_window: ClassVar[bool] = True
    has_auxiliary: ClassVar[bool] = False  # needs estimates of q and z, learned from rows that have reached the horizon
    sees_mature: ClassVar[bool] = False  # looks at such rows itself, see learn_mature
    needs_prediction: ClassVar[bool] = False  # its weights depend on f
    weights: str = "exact"

    def moments(self, window: int | None, horizon: int) -> Moments:
        """When records are made, for a window and a horizon in microseconds."""
        if self.needs_window and window is None:
            raise ValueError(
                f"{self.name} needs a window: how long to wait for a first label. Set window=, as in '15min'."
            )
        if window is not None and window >= horizon:
            raise ValueError(
                f"window={duration_text(window / DAY)} must be shorter than horizon={duration_text(horizon / DAY)}."
            )
        if self.weights not in ("exact", "paper"):
            raise ValueError(f"weights={self.weights!r} is not known; choose 'exact' or 'paper'.")
        waited = window if self.needs_window and window is not None else 0
        return Moments(tuple(self.ages(waited, horizon)), waited, horizon)

    def heads(self, moments: Moments) -> int:
        """How many margins the model learns."""
        return 1

    def ages(self, window: int, horizon: int) -> Sequence[int]:
        """Ages at which a row is looked at, in ascending order."""
        return [window]

    def at_age(self, k: int, delay: Ints, moments: Moments) -> tuple[Bools | None, Bools, int]:
        """Of rows that have reached the k-th age: which give a record (None: all), its label, and its kind."""
        return None, delay <= moments.ages[k], k

    def at_outcome(self, delay: Ints, moments: Moments) -> Bools | None:
        """Of rows that turn positive, which give a record then; None: none does."""
        return None

    def head(self, kind: Kinds) -> Ints:
        """Which margin learns from each record."""
        return np.zeros(len(kind), dtype=np.int64)

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        """The weights of records."""
        return Costs(label.astype(np.float64), (~label).astype(np.float64))

    def probability(self, margins: Floats) -> Floats:
        """p, from margins of shape (n, heads)."""
        return expit(margins[:, 0])

    def positive_by_ages(self, margins: Floats) -> Floats | None:
        """P(positive by each of its ages), of shape (n, ages), where the method itself says so."""
        return None

    def open(self, moments: Moments) -> None:
        """Begin without having seen anything."""

    def soft_records(self, positive_by: PositiveBy, moments: Moments) -> list[tuple[int, Costs]]:
        """For each margin what rows would teach it on average, if P(positive by an age | x) were as another model says."""
        p = positive_by(moments.horizon)
        return [(0, Costs(p, 1.0 - p))]

    def state(self) -> dict[str, Floats]:
        """What it has learned itself, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Floats]) -> None:
        """The other way round."""

    def learn_mature(self, delay: Ints) -> None:
        """See rows that have reached the horizon."""


def inside(share: Floats) -> Floats:
    """Kept away from 0 and 1, since methods divide by it."""
    return np.clip(share, _LEAST, 1.0 - _LEAST)


def ages_from(given: Sequence[object] | int, horizon: int) -> list[int]:
    """Ages up to the horizon: as given, or so many, each four times the one before."""
    if isinstance(given, int | np.integer):
        if not 1 <= given <= 20:
            raise ValueError(f"intervals={given!r} must be between 1 and 20, or a list of ages.")
        return [max(horizon // 4**k, 1) for k in range(int(given) - 1, -1, -1)]
    ages = sorted(parse_duration(one, "intervals", "seconds") for one in given)
    if not 1 <= len(ages) <= 1000 or ages[-1] > horizon or len(set(ages)) < len(ages):
        raise ValueError(f"intervals={given!r} must be up to 1000 different ages, none of them beyond the horizon.")
    return ages if ages[-1] == horizon else [*ages, horizon]
