"""LinearModel: margins that are linear in the features, at the exact minimum of a regularised risk."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import narwhals as nw
import numba as nb
import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from belated.features.encoder import TableEncoder
from belated.features.fields import FieldMatrix
from belated.models.base import Model
from belated.risks.base import NonNegativeRisk, Risk, SeparateRisks, WeightedRisk
from belated.risks.losses import LogisticLoss
from belated.solvers import kernels
from belated.solvers.continuation import minimise_corrected, minimise_rounded
from belated.solvers.device_rows import DeviceRows, minimise_on_device, resolve_device
from belated.solvers.dual import minimise_dual
from belated.solvers.long_lbfgs import minimise_wide
from belated.solvers.preconditioned_lbfgs import Solution, minimise
from belated.solvers.preconditioner import Preconditioner
from belated.solvers.rows import PlainRows, SparseRows
from belated.typing import Bools, Floats, Ints

# Floating point cannot always reach `tol`; a gradient this small is no reason to warn.
_GOOD_ENOUGH = 1e-5

_SAMPLE = 50_000  # rows
_MAX_EPOCHS = 60
_LOOSE = 1e-5  # up to here L-BFGS is there in a few passes; beyond, dual ascent is faster, and certain
DENSE_BLOCK = 1000  # columns

Design: TypeAlias = PlainRows | SparseRows | DeviceRows


class LinearModel(Model):
    """Minimise J(margins) + l2 ||W||^2 over margins X W + intercepts; intercepts and shared parameters are free.

    Parameters
    ----------
    l2 : float
        In terms of scikit-learn's C on n rows, 1 / (2 n C).
    fit_intercept : bool
        Of the first margin; further ones (the delay of DFM, say) always have theirs.
    tol : float
        Up to 1,000 columns, stop when no entry of the gradient exceeds this in coordinates scaled to unit curvature. On
        wider sparse data, when the objective is within this share of its minimum: by the duality gap where the risk has
        a dual, else by what a Newton step promises. (Of DFM and Hazard, within this share of the labels' entropy.)
    max_iter : int
    encoder : TableEncoder, optional
        How tables become matrices. Arrays, CSR matrices and FieldMatrix are used as they are.
    device : {"cpu", "cuda", "auto"}
        Where to fit. On a GPU (through PyTorch) ``tol`` is relative to the objective, and from 1e-6 up matrix products are
        float32.

    Attributes
    ----------
    coef_ : array of shape (m, n_columns)
    intercept_ : array of shape (m,)
        0 for a margin without an intercept.
    shared_ : array of shape (s,)
    objective_ : float
        The minimum.
    n_iter_ : int
    gap_ : float
        A bound on how far ``objective_`` is from the minimum, where the fit ended with one, else NaN.
    """

    def __init__(
        self,
        l2: float = 1e-5,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 2000,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.encoder = encoder
        self.device = device

    def encode(self, X: Any, weight: Floats) -> Design:
        self.encoder_ = None
        if nw.dependencies.is_into_dataframe(X):
            self.encoder_ = TableEncoder() if self.encoder is None else clone(self.encoder)
            X = self.encoder_.fit_transform(X, weight)
        device = resolve_device(self.device)
        rows: PlainRows | SparseRows
        if isinstance(X, FieldMatrix) or (sparse.issparse(X) and X.shape[1] > DENSE_BLOCK):
            rows = SparseRows.compact(X)
        else:
            rows = PlainRows(sparse.csr_array(X) if sparse.issparse(X) else X)
        return rows if device == "cpu" else DeviceRows.of(rows, device)

    def fit(self, encoded: Design, risk: Risk) -> LinearModel:
        self._fit(encoded, risk, None)
        return self

    def path(self, encoded: Design, risk: Risk, l2: Sequence[float]) -> list[LinearModel]:
        """Copies of this model, fitted at each value of l2: from the largest down, each from where the last one ended."""
        models = [clone(self).set_params(l2=value) for value in l2]
        theta = None
        for k in np.argsort(l2)[::-1]:
            models[k].encoder_ = self.encoder_
            # Of a risk with several minima, the one that a fit of its own would find.
            theta = models[k]._fit(encoded, risk, theta if risk.convex else None)
        return models

    def _fit(self, encoded: Design, risk: Risk, start: Floats | None) -> Floats:
        problem, solution = self._solve(encoded, risk, start)
        weights, self.intercept_, self.shared_ = problem.unpack(solution.theta)
        self._weights, self._columns, self._n_columns = weights, encoded.columns, encoded.n_columns
        # A risk with kinks was solved through smooth ones, whose values are not its own.
        self.objective_ = solution.value if risk.smooth else problem.value_and_gradient(solution.theta)[0]
        self.n_iter_, self.gap_ = solution.n_iter, solution.gap
        return solution.theta

    @property
    def coef_(self) -> Floats:
        if self._columns is None:
            return self._weights
        coef = np.zeros((len(self._weights), self._n_columns))
        coef[:, self._columns] = self._weights
        return coef

    def transform(self, X: Any) -> Any:
        return X if self.encoder_ is None or not nw.dependencies.is_into_dataframe(X) else self.encoder_.transform(X)

    def margins(self, X: Any) -> Floats:
        matrix = self.transform(X)
        if isinstance(matrix, FieldMatrix):
            return SparseRows.of(matrix).margins(self.coef_, self.intercept_)
        return np.asarray(matrix @ self.coef_.T) + self.intercept_

    def side_margin(self, encoded: Design, risk: Risk, rows: Bools, groups: Ints, at: Ints) -> Floats:
        count = int(max(groups.max(), at.max())) + 1
        problem, solution = self._solve(encoded.take(rows).with_groups(groups, count), risk)
        coef, intercept, _ = problem.unpack(solution.theta)
        features, levels = coef[:, :-count], coef[0, -count:]
        return encoded.margins(features, intercept)[:, 0] + levels[at]

    def _solve(self, rows: Design, risk: Risk, start: Floats | None = None) -> tuple[_Problem, Solution]:
        if not isinstance(self.l2, int | float | np.floating) or not 0 <= self.l2 < np.inf:
            raise ValueError(f"l2={self.l2!r} must be a finite number of at least 0.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")
        if risk.minibatch_only:
            raise ValueError(
                "ascent=True is a rule for mini-batches, and LinearModel minimises over all rows at once: use ascent=False here."
            )

        def solve(smooth: Risk, start: Floats | None, intercept: bool = self.fit_intercept) -> Solution:
            problem = _Problem(rows, smooth, self.l2, intercept)
            if not isinstance(smooth, SeparateRisks):
                return problem.solve(start, self.tol, self.max_iter)
            starts = [None] * smooth.n_margins if start is None else problem.split(start)
            return problem.join(
                [solve(*part) for part in zip(smooth.risks, starts, problem.has_intercept, strict=True)]
            )

        problem = _Problem(rows, risk, self.l2, self.fit_intercept)
        with kernels.threads(rows.size):
            if isinstance(risk, NonNegativeRisk):
                solution = minimise_corrected(risk, solve, problem.margins, self.tol, start)
            else:
                solution = minimise_rounded(risk, solve, start)
        if solution.gradient_norm > max(self.tol, _GOOD_ENOUGH):
            warnings.warn(
                f"LinearModel stopped after {solution.n_iter} iterations with a gradient of {solution.gradient_norm:.1e} "
                f"(tol={self.tol:g}). Raise max_iter or l2, or standardise the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return problem, solution


def _is_logistic(risk: Risk) -> TypeGuard[WeightedRisk]:
    return type(risk) is WeightedRisk and isinstance(risk.loss, LogisticLoss)


class _Problem:
    """A risk as a function of theta = (W by margins, intercepts, shared), with the penalty on W."""

    def __init__(self, rows: Design, risk: Risk, l2: float, fit_intercept: bool) -> None:
        self.rows = rows
        self.risk = risk
        self.l2 = l2
        # The first margin is the classifier's; the level of another sets a scale, of time for one, and is never given up.
        self.has_intercept = np.array([wanted and (fit_intercept or k > 0) for k, wanted in enumerate(risk.intercepts)])

    def unpack(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        m, columns, k = self.risk.n_margins, self.rows.shape[1], int(self.has_intercept.sum())
        intercept = np.zeros(m)
        intercept[self.has_intercept] = theta[m * columns : m * columns + k]
        return theta[: m * columns].reshape(m, columns), intercept, theta[m * columns + k :]

    def split(self, theta: Floats) -> list[Floats]:
        """Of risks that share nothing, the theta of each."""
        coef, intercept, _ = self.unpack(theta)
        return [
            np.append(*part) if free else part[0]
            for *part, free in zip(coef, intercept, self.has_intercept, strict=True)
        ]

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

    def margins(self, theta: Floats) -> Floats:
        coef, intercept, _ = self.unpack(theta)
        return self.rows.margins(coef, intercept)

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        if isinstance(self.rows, SparseRows) and _is_logistic(self.risk):
            return self.rows.logistic(theta, self.risk, self.l2, self._work)
        coef, _, shared = self.unpack(theta)
        value, d_margins, d_shared = self.risk.value_and_gradient(self.margins(theta), shared)
        d_coef = self.rows.pull(d_margins) + 2.0 * self.l2 * coef
        gradient = np.concatenate([d_coef.ravel(), np.einsum("ij->j", d_margins)[self.has_intercept], d_shared])
        return value + self.l2 * float(np.einsum("ij,ij->", coef, coef)), gradient

    @cached_property
    def _work(self) -> Floats:
        return np.empty((nb.get_num_threads(), 2 * self.rows.shape[1]))

    def start(self) -> Floats:
        levels, shared = self.risk.start()
        weights = np.zeros(self.risk.n_margins * self.rows.shape[1])
        return np.concatenate([weights, levels[self.has_intercept], shared])

    def solve(self, start: Floats | None, tol: float, max_iter: int) -> Solution:
        """By the method that suits the shape: preconditioned L-BFGS, dual ascent, or L-BFGS for long vectors."""
        if isinstance(self.rows, PlainRows):
            first = self.start() if start is None else start
            return minimise(self.value_and_gradient, self.precondition, first, tol, max_iter)
        if isinstance(self.rows, DeviceRows):
            first = self.start() if start is None else start
            return minimise_on_device(self.rows, self.risk, self.l2, self.has_intercept, first, tol, max_iter)
        n_iter = 0
        if tol < _LOOSE and self._suits_dual(self.risk):
            free = bool(self.has_intercept[0])
            dual = minimise_dual(self.rows, self.risk.a, self.risk.b, self.l2, free, tol, _MAX_EPOCHS, start)
            start = np.append(dual.coef, dual.intercept) if free else dual.coef
            if dual.converged:
                return Solution(start, dual.n_epochs, dual.gap, dual.value, dual.gap)
            n_iter = dual.n_epochs
        first = self.start() if start is None else start
        solution = minimise_wide(
            self.value_and_gradient, self.diagonal, first, tol, max_iter, self.risk.scale, self.risk.stiff
        )
        return replace(solution, n_iter=n_iter + solution.n_iter)

    def _suits_dual(self, risk: Risk) -> TypeGuard[WeightedRisk]:
        """A convex logistic risk, regularised well enough for dual ascent to be fast."""
        if not (_is_logistic(risk) and risk.convex):
            return False
        return 4.0 * self.l2 * len(risk.a) >= float((risk.a + risk.b).sum())

    def _curvature(self, theta: Floats) -> Floats:
        """Of curvature that may be negative, the size is what counts."""
        return np.abs(self.risk.curvature(self.margins(theta), self.unpack(theta)[2]))

    def _diagonal(self, in_coef: Floats, level: Floats) -> Floats:
        shared = np.full(self.risk.n_shared, level[-1] / max(self.risk.n_shared, 1))
        return np.concatenate([(in_coef + 2.0 * self.l2).ravel(), level[self.has_intercept], shared])

    def diagonal(self, theta: Floats) -> Floats:
        """An estimate of the Hessian's diagonal."""
        curvature = self._curvature(theta)
        return self._diagonal(self.rows.pull(curvature, squared=True), curvature.sum(axis=0))

    def precondition(self, theta: Floats) -> Preconditioner:
        """From the curvature at theta, on a sample of rows: a whole block for each margin while that is small."""
        assert isinstance(self.rows, PlainRows)
        m, columns = self.risk.n_margins, self.rows.shape[1]
        curvature = self._curvature(theta)
        step = -(-len(curvature) // _SAMPLE)
        sample, curvature = PlainRows(self.rows.matrix[::step]), step * curvature[::step]
        level = curvature.sum(axis=0)
        blocks = []
        for k in range(m) if columns <= DENSE_BLOCK else ():
            hessian, border = sample.second_moments(curvature[:, k])
            index = np.arange(k * columns, (k + 1) * columns)
            hessian[np.diag_indices(columns)] += 2.0 * self.l2
            if self.has_intercept[k]:
                hessian = np.block([[hessian, border[:, None]], [border[None, :], level[k]]])
                index = np.append(index, m * columns + self.has_intercept[:k].sum())
            blocks.append((index, hessian))
        return Preconditioner.of(self._diagonal(sample.pull(curvature, squared=True), level), blocks)
