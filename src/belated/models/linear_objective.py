"""A risk as a function of one long vector: weights by margins, intercepts, shared parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from belated.arrays import column_sums, dot, filled, namespace
from belated.risks.base import Risk
from belated.solvers.device_rows import DeviceRows
from belated.solvers.dual import minimise_dual
from belated.solvers.long_vector_lbfgs import minimise_long
from belated.solvers.preconditioned_lbfgs import minimise_preconditioned
from belated.solvers.preconditioner import Preconditioner
from belated.solvers.rows import PlainRows, SparseRows
from belated.solvers.stopping import Solution, gap_is_small
from belated.threads import parts_of
from belated.typing import Floats

Design: TypeAlias = PlainRows | SparseRows | DeviceRows

DENSE_BLOCK = 1000  # columns; up to here the curvature is a whole matrix, beyond it a diagonal
_MAX_EPOCHS = 60
_LOOSE = (
    1e-5  # L-BFGS reaches this in a few passes; for smaller tolerances dual ascent is faster, and has a certificate
)


def objective_of(rows: Any, risk: Risk, l2: float, fit_intercept: bool) -> LinearObjective:
    """Of rows that are elsewhere, they know themselves what it is."""
    made: Any = getattr(rows, "objective", None)
    return LinearObjective(rows, risk, l2, fit_intercept) if made is None else made(risk, l2, fit_intercept)


class LinearObjective:
    """J(X W + intercepts, shared) + l2 ||W||^2 as a function of theta = (W by margins, intercepts, shared).

    Arrays are NumPy's, or torch's where the rows are on a device.
    """

    def __init__(self, rows: Design, risk: Risk, l2: float, fit_intercept: bool) -> None:
        self.rows = rows
        self.risk = risk
        self.l2 = l2
        # fit_intercept is about the first margin, the classifier's. Another one's level sets a scale (of time, say) and stays.
        wanted = [free and (fit_intercept or k > 0) for k, free in enumerate(risk.intercepts)]
        self.free = [k for k, free in enumerate(wanted) if free]

    def unpack(self, theta: Any) -> tuple[Any, Any, Any]:
        """W (m, columns), intercepts (m,) with 0 where a margin has none, and shared parameters (s,)."""
        m, columns, k = self.risk.n_margins, self.rows.shape[1], len(self.free)
        xp = namespace(theta)
        intercept = filled(m, 0.0, like=theta)
        intercept[self.free] = theta[m * columns : m * columns + k]
        return xp.reshape(theta[: m * columns], (m, columns)), intercept, theta[m * columns + k :]

    def split(self, theta: Floats) -> list[Floats]:
        """Of risks that share nothing, the theta of each."""
        coef, intercept, _ = self.unpack(theta)
        return [np.append(coef[k], intercept[k]) if k in self.free else coef[k] for k in range(len(coef))]

    def join(self, solutions: list[Solution]) -> Solution:
        """The inverse, of solutions."""
        columns = self.rows.shape[1]
        theta = np.concatenate([s.theta[:columns] for s in solutions] + [s.theta[columns:] for s in solutions])
        return Solution(
            theta,
            max(s.n_iter for s in solutions),
            max(s.gradient_norm for s in solutions),
            sum(s.value for s in solutions),
            sum(s.gap for s in solutions),
        )

    def margins(self, theta: Any) -> Any:
        coef, intercept, _ = self.unpack(theta)
        return self.rows.margins(coef, intercept)

    def value_and_gradient(self, theta: Any) -> tuple[float, Any]:
        if isinstance(self.rows, SparseRows) and self.risk.logistic_weights is not None and self.rows.center is None:
            return self.rows.logistic_pass(theta, self.risk.logistic_weights, self.l2, self._work)
        xp = namespace(theta)
        coef, intercept, shared = self.unpack(theta)
        value, d_margins, d_shared = self.risk.value_and_gradient(self.rows.margins(coef, intercept), shared)
        d_coef = self.rows.transpose_dot(d_margins) + 2.0 * self.l2 * coef
        gradient = xp.concat([xp.reshape(d_coef, (-1,)), column_sums(d_margins)[self.free], d_shared])
        weights = xp.reshape(coef, (-1,))
        return value + self.l2 * float(dot(weights, weights)), gradient

    @cached_property
    def _work(self) -> Floats:
        return np.empty((parts_of(self.rows.size), 2 * self.rows.shape[1]))

    def start(self) -> Floats:
        levels, shared = self.risk.start()
        weights = np.zeros(self.risk.n_margins * self.rows.shape[1])
        return np.concatenate([weights, levels[self.free], shared])

    def solve(self, start: Floats | None, tol: float, max_iter: int) -> Solution:
        """By the solver that suits the rows: preconditioned L-BFGS, dual ascent, or L-BFGS for long vectors."""
        if self.rows.device is not None:
            return self._solve_on_device(self.start() if start is None else start, tol, max_iter)
        if not self.rows.wide:
            return self._solve_narrow(self.start() if start is None else start, tol, max_iter)
        epochs = 0
        if tol < _LOOSE and self._suits_dual():
            solution = self._solve_dual(start, tol)
            if gap_is_small(solution.gap, solution.value, tol):
                return solution
            start, epochs = solution.theta, solution.n_iter
        solution = self._solve_long(self.start() if start is None else start, tol, max_iter)
        return replace(solution, n_iter=epochs + solution.n_iter)

    def _solve_narrow(self, start: Floats, tol: float, max_iter: int) -> Solution:
        return minimise_preconditioned(self.value_and_gradient, self.precondition, start, tol, max_iter)

    def _solve_long(self, start: Any, tol: float, max_iter: int) -> Solution:
        risk = self.risk
        of_ones = self._of_ones if risk.has_dual and self.rows.row_sum is not None else None
        return minimise_long(
            self.value_and_gradient, self.diagonal, start, tol, max_iter, risk.scale, risk.stiff, of_ones
        )

    def _solve_on_device(self, start: Floats, tol: float, max_iter: int) -> Solution:
        """The same problem with its rows and arrays on the device."""
        assert isinstance(self.rows, DeviceRows)
        there = LinearObjective(self.rows.for_tolerance(tol), self.risk.moved(self.rows.put), self.l2, 0 in self.free)
        solution = there._solve_long(self.rows.put(start), tol, max_iter)
        return replace(solution, theta=solution.theta.cpu().numpy())

    def _suits_dual(self) -> bool:
        """A risk with a dual, regularised well enough for dual ascent to be fast."""
        if not self.risk.has_dual or self.risk.logistic_weights is None or self.rows.center is not None:
            return False
        a, b = self.risk.logistic_weights
        return 4.0 * self.l2 * len(a) >= float((a + b).sum())

    def _solve_dual(self, start: Floats | None, tol: float) -> Solution:
        assert isinstance(self.rows, SparseRows)
        free = bool(self.free)
        dual = minimise_dual(self.rows, self.risk, self.l2, free, tol, _MAX_EPOCHS, start)
        theta = np.append(dual.coef, dual.intercept) if free else dual.coef
        return Solution(theta, dual.n_epochs, dual.gap, dual.value, dual.gap)

    def _curvature(self, theta: Any) -> Any:
        """Of curvature that may be negative, the size is what counts."""
        return abs(self.risk.curvature(self.margins(theta), self.unpack(theta)[2]))

    def _diagonal(self, in_coef: Any, level: Any) -> Any:
        xp, s = namespace(in_coef), self.risk.n_shared
        shared = filled(s, float(level[-1]) / max(s, 1), like=in_coef)
        return xp.concat([xp.reshape(in_coef + 2.0 * self.l2, (-1,)), level[self.free], shared])

    def diagonal(self, theta: Any) -> Any:
        """An estimate of the Hessian's diagonal."""
        return self._diagonal(*self.diagonal_parts(theta))

    def diagonal_parts(self, theta: Any) -> tuple[Any, Any]:
        """What it is made of, in weights (m, columns) and in levels (m,): sums over rows."""
        curvature = self._curvature(theta)
        return self.rows.transpose_dot(curvature, squared=True), curvature.sum(axis=0)

    def _of_ones(self, diagonal: Any) -> Any:
        """The Hessian's product with a vector of ones: if all weights grow by 1, all margins grow by the same."""
        assert self.rows.row_sum is not None
        columns, growth = self.rows.shape[1], self.rows.row_sum + len(self.free)
        product = growth * diagonal
        product[:columns] -= (growth - 1) * 2.0 * self.l2
        return product

    def precondition(self, theta: Floats) -> Preconditioner:
        """From the curvature at theta, on a sample of rows: a whole block for each margin while that is small."""
        return self._preconditioner(*self.curvatures(theta))

    def curvatures(self, theta: Floats) -> tuple[Floats, tuple[tuple[Floats, Floats], ...], Floats]:
        """What the preconditioner is made of, sums over rows: of levels (m,), of weights by margins, and their diagonals where there are many."""
        assert isinstance(self.rows, PlainRows)
        m, columns = self.risk.n_margins, self.rows.shape[1]
        curvature = self._curvature(theta)
        sample, step = self.rows.sample
        curvature = step * curvature[::step]
        dense = tuple(sample.second_moments(curvature[:, k]) for k in range(m) if columns <= DENSE_BLOCK)
        in_coef = sample.transpose_dot(curvature, squared=True) if columns > DENSE_BLOCK else np.zeros((m, columns))
        return curvature.sum(axis=0), dense, in_coef

    def _preconditioner(
        self, level: Floats, dense: tuple[tuple[Floats, Floats], ...], in_coef: Floats
    ) -> Preconditioner:
        m, columns = self.risk.n_margins, self.rows.shape[1]
        blocks = []
        for k, (hessian, border) in enumerate(dense):
            index = np.arange(k * columns, (k + 1) * columns)
            hessian[np.diag_indices(columns)] += 2.0 * self.l2
            if k in self.free:
                hessian = np.block([[hessian, border[:, None]], [border[None, :], level[k]]])
                index = np.append(index, m * columns + self.free.index(k))
            blocks.append((index, hessian))
        shared = self.risk.shared_curvature()
        if shared is not None:
            blocks.append((m * columns + len(self.free) + np.arange(len(shared)), shared))
        return Preconditioner.of(self._diagonal(in_coef, level), blocks)
