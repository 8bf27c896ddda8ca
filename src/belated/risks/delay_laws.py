"""Delay laws: how the hazard of turning positive depends on age, up to a factor exp(h) that a model learns.

Every law has hazard exp(h) lambda0(t) and cumulated hazard exp(h) Lambda0(t), where lambda0 may depend on a few
parameters ``shared`` by all rows. A law is small and holds no rows; what it needs of the rows' times it computes
once, in :meth:`DelayLaw.prepare`, and takes back as ``at``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.typing import Floats, Ints


def safe_exp(x: Any) -> Any:
    """exp with its argument cut at 200, so that a wild step of a line search stays finite."""
    return np.exp(np.minimum(x, 200.0))


class DelayLaw:
    n_shared: int = 0
    has_level: bool = False  # whether `shared` already sets the overall level, so that h needs no intercept

    def prepare(self, times: Floats) -> Any:
        raise NotImplementedError

    def evaluate(self, at: Any, shared: Floats) -> tuple[Floats, Floats]:
        """log lambda0 and Lambda0 at the prepared times."""
        raise NotImplementedError

    def pull_back(self, at: Any, shared: Floats, d_log_hazard: Floats, d_cumulated: Floats) -> Floats:
        """Gradient in ``shared`` of a sum whose gradient in log lambda0 and Lambda0 is given."""
        return np.zeros(0)

    def cumulative_at(self, time: float, shared: Floats) -> float:
        return float(self.evaluate(self.prepare(np.array([time])), shared)[1][0])

    def start(self, at: Any, events: Floats, exposed: Floats) -> tuple[float, Floats]:
        """A first guess of h and of the shared parameters: events over time at risk, both given by weights of rows."""
        shared = np.zeros(self.n_shared)
        return float(np.log(events.sum() / (exposed @ self.evaluate(at, shared)[1]))), shared

    def roughness(self, shared: Floats) -> tuple[float, Floats]:
        """A penalty on the shared parameters, and its gradient."""
        return 0.0, np.zeros(self.n_shared)


class Exponential(DelayLaw):
    """lambda0 = 1, Lambda0(t) = t."""

    def prepare(self, times: Floats) -> Floats:
        return times

    def evaluate(self, at: Floats, shared: Floats) -> tuple[Floats, Floats]:
        return np.zeros_like(at), at


class Weibull(DelayLaw):
    """Lambda0(t) = t^k with k = exp(shared[0]); lambda0(t) = k t^(k-1)."""

    n_shared = 1

    def prepare(self, times: Floats) -> Floats:
        return np.log(np.maximum(times, 1e-300))

    def evaluate(self, at: Floats, shared: Floats) -> tuple[Floats, Floats]:
        shape = safe_exp(shared[0])
        return shared[0] + (shape - 1.0) * at, safe_exp(shape * at)

    def pull_back(self, at: Floats, shared: Floats, d_log_hazard: Floats, d_cumulated: Floats) -> Floats:
        slope = safe_exp(shared[0]) * at
        return np.array([(d_log_hazard * (1.0 + slope)).sum() + (d_cumulated * slope * safe_exp(slope)).sum()])


class Piecewise(DelayLaw):
    """lambda0 = exp(shared[k]) on the k-th interval between ``knots``; the last interval has no end.

    ``smoothing`` times the squared differences of neighbouring shared parameters is the roughness.
    """

    has_level = True

    def __init__(self, knots: Floats, smoothing: float) -> None:
        self.knots = knots
        self.smoothing = smoothing

    @property
    def n_shared(self) -> int:  # type: ignore[override]
        return len(self.knots) + 1

    def prepare(self, times: Floats) -> tuple[Ints, Floats]:
        interval = np.searchsorted(self.knots, times, side="left")
        return interval, times - np.concatenate([[0.0], self.knots])[interval]

    def evaluate(self, at: Any, shared: Floats) -> tuple[Floats, Floats]:
        interval, inside = at
        hazard = safe_exp(shared)
        before = np.concatenate([[0.0], np.cumsum(np.diff(self.knots, prepend=0.0) * hazard[:-1])])
        return shared[interval], before[interval] + inside * hazard[interval]

    def pull_back(self, at: Any, shared: Floats, d_log_hazard: Floats, d_cumulated: Floats) -> Floats:
        interval, inside = at
        k = self.n_shared
        here = np.bincount(interval, weights=d_cumulated * inside, minlength=k)
        # A row in a later interval has lived through the whole of this one.
        later = np.bincount(interval, weights=d_cumulated, minlength=k)[::-1].cumsum()[::-1][1:]
        here[:-1] += np.diff(self.knots, prepend=0.0) * later
        return np.bincount(interval, weights=d_log_hazard, minlength=k) + safe_exp(shared) * here

    def start(self, at: Any, events: Floats, exposed: Floats) -> tuple[float, Floats]:
        none = np.zeros_like(exposed)
        happened = np.bincount(at[0], events, self.n_shared)
        at_risk = self.pull_back(at, np.zeros(self.n_shared), none, exposed)
        # A little of the overall hazard for intervals where nothing happened; and no rougher than the penalty likes.
        level = np.log(happened.sum() / at_risk.sum())
        steps = np.log((happened + 1e-6 * happened.sum()) / (at_risk + 1e-6 * at_risk.sum())) - level
        return 0.0, level + steps / (1.0 + self.roughness(steps)[0])

    def roughness(self, shared: Floats) -> tuple[float, Floats]:
        steps = np.diff(shared)
        gradient = np.zeros_like(shared)
        gradient[1:] += 2.0 * self.smoothing * steps
        gradient[:-1] -= 2.0 * self.smoothing * steps
        return self.smoothing * float(steps @ steps), gradient
