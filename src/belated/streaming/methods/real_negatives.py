"""DEFER (Gu et al., KDD 2021): every row comes back at the horizon with its real label."""

from __future__ import annotations

import numpy as np

from belated.streaming.methods.base import Costs, Moments, StreamMethod
from belated.streaming.stream_records import FIRST, SECOND, Kinds
from belated.typing import Bools, Floats, Ints


class DEFER(StreamMethod):
    """The label after the window; late positives again at their outcome, all others again at the horizon.

    Positives count by f / (f - q/2), negatives by (1 - f) / (1 - f + q/2), which undoes how often each was seen.

    Parameters
    ----------
    largest : float
        Weights are at most so much.
    """

    name = "defer"
    has_auxiliary = True
    needs_prediction = True

    def __init__(self, largest: float = 5.0) -> None:
        self.largest = largest

    def ages(self, window: int, horizon: int) -> list[int]:
        return [window, horizon]

    def at_age(self, k: int, delay: Ints, moments: Moments) -> tuple[Bools | None, Bools, int]:
        if k == 0:
            return None, delay <= moments.window, FIRST
        late = (delay > moments.window) & (delay <= moments.horizon)
        return ~late, delay <= moments.window, SECOND

    def at_outcome(self, delay: Ints, moments: Moments) -> Bools | None:
        return delay > moments.window

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        positive = f / np.maximum(f - q / 2.0, f / self.largest)
        negative = np.minimum((1.0 - f) / (1.0 - f + q / 2.0), self.largest)
        return Costs(positive * label, negative * ~label)
