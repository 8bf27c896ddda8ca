"""Stochastic dual coordinate ascent for weighted logistic risks, with a duality gap as certificate.

A row costs f(z) = c softplus(z) - a z with c = a + b > 0. Its conjugate is f*(u) = c (s log s + (1-s) log(1-s)) with
s = (u + a)/c, on -a < u < b: an interval of length c, so b may be negative. The problem

    min over w, w0 of sum_i f_i(x_i w + w0) + l2 ||w||^2

has the dual  max over u of - sum f_i*(u_i) - l2 ||w(u)||^2,  w(u) = - sum u_i x_i / (2 l2),  sum u_i = 0.

The last condition comes from the free intercept. While ascending it is replaced by a weak pull of the intercept towards
a centre, which follows it; what is left of m = sum u_i enters the gap, f + f* - u z summed over rows, as 0.1 |m|: a bound
as long as the best intercept is within 0.1 of the one found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.risks.base import Risk
from belated.solvers import dual_kernels
from belated.solvers.rows import SparseRows
from belated.solvers.stopping import gap_is_small
from belated.typing import Floats, SmallInts

_FIRST_CHECK = 3  # epochs before the gap is first computed
_TOO_SLOW = 0.75  # dual ascent gives up when more than this share of the gap is left after an epoch
_PARTS = 16  # of which sums are made up
_START = 1e-3  # how far from its boundary a dual variable starts


@dataclass(frozen=True)
class DualSolution:
    coef: Floats
    intercept: float
    value: float
    gap: float  # a bound on value - minimum
    n_epochs: int


def minimise_dual(
    rows: SparseRows,
    risk: Risk,
    l2: float,
    free_intercept: bool,
    tol: float,
    max_epochs: int,
    start: Floats | None = None,
) -> DualSolution:
    """Ascend until the duality gap is at most ``tol`` times the objective, or too slow, or ``max_epochs`` are spent.

    ``risk`` must have a dual. ``start`` holds weights, and an intercept where that is free, from a similar problem.
    """
    problem = _Dual(rows, risk, l2, free_intercept, start)
    order = np.arange(rows.n, dtype=np.int32)
    gap, previous, rate, value = np.inf, np.inf, 0.15, np.inf
    checked, next_check = 0, _FIRST_CHECK
    for epoch in range(1, max_epochs + 1):
        problem.epoch(order, seed=epoch)
        if epoch < next_check:
            problem.recentre(gap * rate ** (epoch - checked))
            continue
        previous, (gap, slack, value) = gap, problem.gap()
        if gap_is_small(gap + slack, value, tol):
            break
        # What is left is due to the intercept. Letting it jump costs something, which a few epochs repair.
        if slack > gap:
            problem.recentre(np.inf)
            gap, checked, next_check = np.inf, epoch, epoch + 2
            continue
        if np.isfinite(previous):
            rate = (gap / previous) ** (1.0 / (epoch - checked))
        if rate > _TOO_SLOW:
            break
        problem.recentre(gap)
        # The gap shrinks about geometrically, and computing it costs half an epoch, so wait until it should be small enough.
        missing = np.log(max(tol * abs(value), 1e-300) / gap) / np.log(rate)
        checked, next_check = epoch, epoch + int(np.clip(np.ceil(missing), 1, 10))
    total = gap + slack
    return DualSolution(problem.coef, problem.intercept(), value, total, epoch)


class _Dual:
    def __init__(self, rows: SparseRows, risk: Risk, l2: float, free_intercept: bool, start: Floats | None) -> None:
        assert risk.logistic_weights is not None
        a, b = risk.logistic_weights
        self.rows, self.risk, self.l2, self.free = rows, risk, l2, free_intercept
        self.target, total = float(a.sum()), float(a.sum() + b.sum())
        # No stronger than the penalty of a weight, and always far weaker than the data.
        self.l2_bias = min(l2, 1e-4 * total)
        self.state, u, z = _aligned(4 * rows.n), np.empty(rows.n), None
        rate = float(np.clip(self.target / total, 1e-6, 1.0 - 1e-6))
        self.bias = np.array([np.log(rate / (1.0 - rate)) if free_intercept else 0.0, 0.0])
        if start is not None:
            self.bias[0] = start[-1] if free_intercept else 0.0
            z = rows.margins(start[None, : rows.shape[1]], self.bias[:1])[:, 0]
        dual_kernels.dual_start(a, b, rows.norms, z, _START, self.state, u)
        self.coef = rows.transpose_dot(u[:, None])[0] / (-2.0 * l2)
        self.bias[1] = -u.sum() / (2.0 * self.l2_bias) if free_intercept else 0.0

    def epoch(self, order: SmallInts, seed: int) -> None:
        dual_kernels.shuffle(order, seed)
        spread, bias_spread = 1.0 / (2.0 * self.l2), 1.0 / (2.0 * self.l2_bias) if self.free else 0.0
        dual_kernels.dual_epoch(*self.rows.layout, order, self.coef, self.bias, self.state, spread, bias_spread)

    def gap(self) -> tuple[float, float, float]:
        """The duality gap, what the intercept's freedom may add to it, and the objective."""
        intercept = float(self.bias.sum())
        margins = self.rows.margins(self.coef[None, :], np.array([intercept]))
        penalty = self.l2 * float(np.einsum("i,i->", self.coef, self.coef))
        value = self.risk.value_and_gradient(margins)[0] + penalty
        parts = np.empty((_PARTS, 2))
        dual_kernels.dual_sums(self.state, parts)
        entropy, mass = parts.sum(axis=0)
        left = float(mass - self.target) if self.free else 0.0
        return float(value + entropy + penalty - intercept * left), 0.1 * abs(left), value

    def recentre(self, gap: float) -> None:
        """Move the centre towards the intercept, by as much as the gap allows; the intercept then moves as far again."""
        self.bias[0] += np.clip(self.bias[1], -2.0 * np.sqrt(gap), 2.0 * np.sqrt(gap))

    def intercept(self) -> float:
        """The best intercept for the weights found: sum c sigmoid(z) = sum a, by Newton's method kept in bounds."""
        if not self.free:
            return 0.0
        z = self.rows.margins(self.coef[None, :], np.zeros(1))[:, 0]
        shift, parts = float(self.bias.sum()), np.empty((_PARTS, 2))
        for _ in range(50):
            dual_kernels.shifted_shares(z, self.state, shift, parts)
            total, slope = parts.sum(axis=0)
            step = float(np.clip((total - self.target) / max(slope, 1e-300), -1.0, 1.0))
            shift -= step
            if abs(step) < 1e-9:
                break
        return shift


def _aligned(size: int) -> Floats:
    """An empty array that begins on a line of the cache."""
    raw = np.empty(size + 8)
    return raw[(-raw.ctypes.data % 64) // 8 :][:size]
