"""DEFUSE (Chen et al., WWW 2022): what looks negative is partly a positive, and counts as both."""

from __future__ import annotations

import numpy as np

from belated.streaming.methods.base import Costs, Moments
from belated.streaming.methods.elapsed_sampling import ElapsedSampling
from belated.streaming.stream_records import LATE, Kinds
from belated.typing import Bools, Floats


class DEFUSE(ElapsedSampling):
    """A negative after the window counts as (1 - z) alpha of a positive and z of a negative, a late positive by 1 - alpha.

    ``alpha=0`` is ES-DFM, 1 takes nothing from late positives; both are right on average, and variance decides.

    Parameters
    ----------
    alpha : float
        Between 0 and 1. Not used by ``weights="paper"``, which has q in its place and multiplies all by 1 + q.
    """

    name = "defuse"

    def __init__(self, alpha: float = 0.5, weights: str = "exact") -> None:
        self.alpha = alpha
        self.weights = weights

    def moments(self, window: int | None, horizon: int) -> Moments:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha={self.alpha!r} must be between 0 and 1.")
        return super().moments(window, horizon)

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        late = label & (kind == LATE)
        if self.weights == "paper":
            positive = np.where(late, 1.0, 1.0 + q)
            return Costs(np.where(label, positive, (1.0 - z) * q), np.where(label, 0.0, z * (1.0 + q)))
        positive = np.where(late, 1.0 - self.alpha, 1.0)
        return Costs(np.where(label, positive, (1.0 - z) * self.alpha), np.where(label, 0.0, z))
