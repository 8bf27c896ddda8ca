"""FNW and FNC (Ktena et al., RecSys 2019): every row is a negative at once, and a positive when it turns out to be one."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from belated.streaming.methods.base import Costs, Moments, PositiveBy, StreamMethod, inside
from belated.streaming.stream_records import FIRST, Kinds
from belated.typing import Bools, Floats, Ints


class FakeNegatives(StreamMethod):
    """A negative at arrival, for every row, and a positive at the outcome."""

    needs_window = False

    def ages(self, window: int, horizon: int) -> list[int]:
        return [0]

    def at_age(self, k: int, delay: Ints, moments: Moments) -> tuple[Bools | None, Bools, int]:
        return None, np.zeros(len(delay), dtype=bool), FIRST

    def at_outcome(self, delay: Ints, moments: Moments) -> Bools | None:
        return np.ones(len(delay), dtype=bool)


class FNW(FakeNegatives):
    """Fake negatives weighted: negatives count by 1 - f, since so many of them are real.

    With ``weights="paper"`` all are multiplied by 1 + f, which draws a model that cannot fit everything towards rows with a high rate.
    """

    name = "fnw"
    needs_prediction = True

    def __init__(self, weights: str = "exact") -> None:
        self.weights = weights

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        scale = 1.0 + f if self.weights == "paper" else np.ones(len(f))
        return Costs(scale * label, scale * np.where(label, 0.0, 1.0 - f))


class FNC(FakeNegatives):
    """Fake negatives calibrated: the plain fit has b = p / (1 + p), so p = b / (1 - b); b is kept below one half."""

    name = "fnc"

    def soft_records(self, positive_by: PositiveBy, moments: Moments) -> list[tuple[int, Costs]]:
        p = positive_by(moments.horizon)
        return [(0, Costs(p, np.ones(len(p))))]

    def probability(self, margins: Floats) -> Floats:
        b = np.minimum(inside(expit(margins[:, 0])), 0.5)
        return inside(b / (1.0 - b))
