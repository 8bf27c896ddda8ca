"""When a solver stops, and what it returns. There is one rule for each kind of solver; ``tol`` is a model's.

- On narrow data (:mod:`.preconditioned_lbfgs`): when no entry of the gradient exceeds ``tol``, in coordinates in which the
  curvature is about 1.
- On long vectors (:mod:`.long_vector_lbfgs`): when a Newton step promises to lower the value by well less than ``tol`` of it.
- By dual ascent (:mod:`.dual`): when the duality gap, a bound on the distance from the minimum, is at most ``tol`` of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_CAUTION = 0.1  # where convergence is slow, an approximate Newton step promises several times less than is left to gain
_ENOUGH_PAIRS = (
    3  # with fewer pairs in the memory of L-BFGS, one known from the start included, its promise means little
)


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped, and how near the minimum that is."""

    theta: Any
    n_iter: int
    gradient_norm: float  # what the rule looks at: the largest scaled entry, the promise, or the gap
    value: float  # of the objective
    gap: float = np.nan  # a bound on the distance from the minimum, where there is one


def gradient_is_small(largest_entry: float, tol: float) -> bool:
    return largest_entry <= tol


def promise(slope: float, value: float, first_value: float, scale: float | None) -> float:
    """The decrease that a step along a Newton direction promises, as a share of the value or of ``scale``.

    A value near 0 counts as a tenth of the first.
    """
    return -slope / 2.0 / (scale or max(abs(value), abs(first_value) / 10.0, 1e-300))


def promise_is_small(promised: float, tol: float, pairs: int) -> bool:
    return promised <= _CAUTION * tol and (pairs >= _ENOUGH_PAIRS or promised == 0.0)


def gap_is_small(gap: float, value: float, tol: float) -> bool:
    return gap <= tol * abs(value)
