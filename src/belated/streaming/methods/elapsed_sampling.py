"""ES-DFM (Yang et al., AAAI 2021): wait for a window, then weigh what looks negative by how likely it is to be so."""

from __future__ import annotations

import numpy as np

from belated.streaming.methods.base import Costs, Moments, StreamMethod
from belated.streaming.stream_records import Kinds
from belated.typing import Bools, Floats, Ints


class ElapsedSampling(StreamMethod):
    """The label after the window, and a positive for every outcome after that."""

    has_auxiliary = True

    def at_outcome(self, delay: Ints, moments: Moments) -> Bools | None:
        return delay > moments.window


class ESDFM(ElapsedSampling):
    """Positives count by 1, negatives by z, the share of them that are real.

    With ``weights="paper"`` all are multiplied by 1 + q.
    """

    name = "es-dfm"

    def __init__(self, weights: str = "exact") -> None:
        self.weights = weights

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        scale = 1.0 + q if self.weights == "paper" else np.ones(len(q))
        return Costs(scale * label, scale * np.where(label, 0.0, z))
