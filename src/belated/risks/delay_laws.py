"""Delay laws: how the hazard of turning positive depends on age, up to a factor exp(h) that a model learns.

Every law has hazard exp(h) lambda0(t) and cumulated hazard exp(h) Lambda0(t), where lambda0 may depend on a few
parameters ``shared`` by all rows. A law is small and holds no rows; what it needs of the rows' times it computes once, in
:meth:`DelayLaw.prepare`, and is given back as ``prepared``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf

from belated.arrays import at_least, dot, look_up, namespace, safe_exp, sums_by
from belated.typing import Floats, Ints


class DelayLaw:
    """A law of delays. A subclass writes :meth:`evaluate`, and :meth:`shared_gradient` where it has shared parameters.

    ``prepare`` and ``start`` work on NumPy arrays; the other methods on whatever library their arguments come from.
    """

    n_shared: int = 0
    has_level: bool = False  # whether `shared` already sets the overall level, so that h needs no intercept
    finite_at_zero: bool = True  # whether the hazard has a value at age 0
    extrapolates: bool = True  # whether it says anything about ages beyond the oldest row

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def prepare(self, times: Floats) -> Any:
        """What :meth:`evaluate` needs to know of times (n,): an array, or a tuple of arrays."""
        return times

    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        """log lambda0 and Lambda0 at the prepared times, each of shape (n,)."""
        raise NotImplementedError

    def shared_gradient(self, prepared: Any, shared: Any, d_log_hazard: Any, d_cumulated: Any) -> Any:
        """Gradient in ``shared`` of a sum whose gradient in log lambda0 and Lambda0 is given."""
        raise NotImplementedError

    def shared_curvature(self, prepared: Any, events: Floats) -> Floats:
        """About the second derivatives in ``shared`` (s, s), given the weights of events; a guess that steers a solver."""
        return np.eye(self.n_shared) * events.sum() / self.n_shared

    def cumulated_at(self, time: float, shared: Floats) -> float:
        """Lambda0 at one time."""
        return float(self.evaluate(self.prepare(np.array([time])), shared)[1][0])

    def cumulated_by(self, age: Any, shared: Floats) -> Any:
        """Lambda0 at one time, or at one of each row."""
        return self.evaluate(self.prepare(age), shared)[1] if np.ndim(age) else self.cumulated_at(age, shared)

    def start(self, prepared: Any, events: Floats, exposed: Floats) -> tuple[float, Floats]:
        """A first guess of h and of the shared parameters: events over time at risk, both given by weights of rows."""
        shared = np.zeros(self.n_shared)
        return float(np.log(events.sum() / dot(exposed, self.evaluate(prepared, shared)[1]))), shared

    def roughness(self, shared: Any) -> tuple[Any, Any]:
        """A penalty on the shared parameters, and its gradient."""
        return 0.0, 0.0 * shared


def squared_steps(shared: Any, smoothing: float) -> tuple[Any, Any]:
    """The squared differences of neighbours, times ``smoothing``, and their gradient."""
    xp = namespace(shared)
    steps = shared[1:] - shared[:-1]
    none = xp.zeros_like(shared[:1])
    return smoothing * dot(steps, steps), 2.0 * smoothing * (xp.concat([none, steps]) - xp.concat([steps, none]))


class Exponential(DelayLaw):
    """lambda0 = 1, Lambda0(t) = t."""

    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        return namespace(prepared).zeros_like(prepared), prepared


class Weibull(DelayLaw):
    """Lambda0(t) = t^k with k = exp(shared[0]); lambda0(t) = k t^(k-1)."""

    n_shared = 1
    finite_at_zero = False

    def prepare(self, times: Floats) -> Floats:
        return np.log(np.maximum(times, 1e-300))

    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        shape = safe_exp(shared)
        return shared + (shape - 1.0) * prepared, safe_exp(shape * prepared)

    def shared_gradient(self, prepared: Any, shared: Any, d_log_hazard: Any, d_cumulated: Any) -> Any:
        slope = safe_exp(shared) * prepared
        total = dot(d_log_hazard, 1.0 + slope) + dot(d_cumulated, slope * safe_exp(slope))
        return total + 0.0 * shared


class Piecewise(DelayLaw):
    """lambda0 = exp(shared[k]) on the k-th interval between ``knots``; the last interval has no end.

    ``smoothing`` times the squared differences of neighbouring shared parameters is the roughness.
    """

    has_level = True
    extrapolates = False

    def __init__(self, knots: Floats, smoothing: float) -> None:
        self.knots = knots
        self.smoothing = smoothing

    @property
    def n_shared(self) -> int:  # type: ignore[override]
        return len(self.knots) + 1

    def prepare(self, times: Floats) -> tuple[Ints, Floats]:
        interval = np.searchsorted(self.knots, times, side="left")
        return interval, times - look_up(np.concatenate([[0.0], self.knots]), interval)

    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        interval, inside = prepared
        hazard = safe_exp(shared)
        before = namespace(hazard).cumulative_sum(self._widths() * hazard[:-1], include_initial=True)
        return shared[interval], before[interval] + inside * hazard[interval]

    def shared_gradient(self, prepared: Any, shared: Any, d_log_hazard: Any, d_cumulated: Any) -> Any:
        interval, inside = prepared
        xp = namespace(shared)
        in_log, in_time, in_all = sums_by(interval, self.n_shared, d_log_hazard, d_cumulated * inside, d_cumulated)
        # A row that reached a later interval was at risk during the whole of this one.
        later = xp.flip(xp.cumulative_sum(xp.flip(in_all)))[1:]
        through = xp.concat([self._widths() * later, xp.zeros_like(in_all[:1])])
        return in_log + safe_exp(shared) * (in_time + through)

    def shared_curvature(self, prepared: Any, events: Floats) -> Floats:
        # Where the fit is good, the hazard of an interval times the time at risk is the number of its events.
        (happened,) = sums_by(prepared[0], self.n_shared, events)
        steps = np.diff(np.eye(self.n_shared), axis=0)
        return np.diag(happened + 1e-6 * events.sum()) + 2.0 * self.smoothing * steps.T @ steps

    def _widths(self) -> Any:
        """The length of every interval but the last."""
        return namespace(self.knots).concat([self.knots[:1], self.knots[1:] - self.knots[:-1]])

    def start(self, prepared: Any, events: Floats, exposed: Floats) -> tuple[float, Floats]:
        (happened,) = sums_by(prepared[0], self.n_shared, events)
        at_risk = self.shared_gradient(prepared, np.zeros(self.n_shared), np.zeros_like(exposed), exposed)
        # Intervals without events get a little of the overall hazard. The rougher the guess, the more it is flattened.
        level = np.log(happened.sum() / at_risk.sum())
        steps = np.log((happened + 1e-6 * happened.sum()) / (at_risk + 1e-6 * at_risk.sum())) - level
        return 0.0, level + steps / (1.0 + self.roughness(steps)[0])

    def roughness(self, shared: Any) -> tuple[Any, Any]:
        return squared_steps(shared, self.smoothing)


class Kernel(DelayLaw):
    """lambda0(t) = sum over l of exp(shared[l]) k((t - centres[l]) / widths[l]), with k(u) = exp(-u^2 / 2): smooth hazards.

    NoDeF (Yoshikawa and Imai 2018). Its integral is a sum of error functions. ``smoothing`` is as in :class:`Piecewise`.
    """

    has_level = True
    extrapolates = False

    def __init__(self, centres: Floats, widths: Floats, smoothing: float) -> None:
        self.centres = centres
        self.widths = widths
        self.smoothing = smoothing

    @property
    def n_shared(self) -> int:  # type: ignore[override]
        return len(self.centres)

    def prepare(self, times: Floats) -> tuple[Floats, Floats]:
        """Each kernel at each time, and its integral from 0 to there."""
        away = (times[:, None] - self.centres) / self.widths
        before = -self.centres / self.widths
        area = self.widths * np.sqrt(np.pi / 2.0) * (erf(away / np.sqrt(2.0)) - erf(before / np.sqrt(2.0)))
        return np.exp(-0.5 * away**2), np.maximum(area, 0.0)

    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        kernel, area = prepared
        weight = safe_exp(shared)
        return namespace(weight).log(at_least(kernel @ weight, 1e-300)), area @ weight

    def shared_gradient(self, prepared: Any, shared: Any, d_log_hazard: Any, d_cumulated: Any) -> Any:
        kernel, area = prepared
        weight = safe_exp(shared)
        hazard = at_least(kernel @ weight, 1e-300)
        return weight * (kernel.T @ (d_log_hazard / hazard) + area.T @ d_cumulated)

    def shared_curvature(self, prepared: Any, events: Floats) -> Floats:
        steps = np.diff(np.eye(self.n_shared), axis=0)
        return np.diag(self._happened(prepared, events) + 1e-6 * events.sum()) + 2.0 * self.smoothing * steps.T @ steps

    def start(self, prepared: Any, events: Floats, exposed: Floats) -> tuple[float, Floats]:
        happened, at_risk = self._happened(prepared, events), prepared[1].T @ exposed
        return 0.0, np.log((happened + 1e-3 * happened.sum()) / (at_risk + 1e-3 * at_risk.sum()))

    def _happened(self, prepared: Any, events: Floats) -> Floats:
        """Events shared out among kernels, by how near they are."""
        kernel = prepared[0]
        near: Floats = (kernel / np.maximum(kernel.sum(axis=1, keepdims=True), 1e-300)).T @ events
        return near

    def roughness(self, shared: Any) -> tuple[Any, Any]:
        return squared_steps(shared, self.smoothing)
