"""DDFM (Dai et al., ACM MM 2023): corrected labels after the window, and real negatives a second time."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.data.durations import parse_duration
from belated.streaming.methods.base import Costs, Moments
from belated.streaming.methods.elapsed_sampling import ElapsedSampling
from belated.streaming.stream_records import FIRST, SECOND, Kinds
from belated.typing import Bools, Floats, Ints


class DDFM(ElapsedSampling):
    """A negative after the window counts as 1 - z of a positive and z of a negative; one that is real comes back as f - q and 1 - f + q.

    Parameters
    ----------
    again : duration, optional
        The age at which real negatives come back: the horizon by default, and not before it, for nobody knows them earlier.
    """

    name = "ddfm"
    needs_prediction = True

    def __init__(self, again: Any = None) -> None:
        self.again = again

    def ages(self, window: int, horizon: int) -> list[int]:
        again = horizon if self.again is None else parse_duration(self.again, "again", "seconds")
        if again < horizon:
            raise ValueError(f"again={self.again!r} is before the horizon, when nobody knows which negatives are real.")
        return [window, again]

    def at_age(self, k: int, delay: Ints, moments: Moments) -> tuple[Bools | None, Bools, int]:
        if k == 0:
            return None, delay <= moments.window, FIRST
        return delay > moments.horizon, np.zeros(len(delay), dtype=bool), SECOND

    def costs(self, label: Bools, kind: Kinds, f: Floats, q: Floats, z: Floats) -> Costs:
        real = np.where(kind == SECOND, np.clip(1.0 - f + q, 0.0, 1.0), z)
        return Costs(np.where(label, 1.0, 1.0 - real), np.where(label, 0.0, real))
