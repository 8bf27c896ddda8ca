"""LinearModel: margins that are linear in the features, at the exact minimum of a regularised risk."""

from __future__ import annotations

import warnings
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from belated.features import Matrix, TableEncoder
from belated.models.base import Model
from belated.risk import NonNegativeRisk, Risk
from belated.solvers.continuation import minimise_corrected, minimise_rounded
from belated.solvers.lbfgs import Solution, minimise
from belated.solvers.preconditioner import Preconditioner

Floats = NDArray[np.float64]

# Floating point cannot always reach `tol`; a gradient this small is no reason to warn.
_GOOD_ENOUGH = 1e-5

_SAMPLE = 50_000  # rows
_DENSE_BLOCK = 1000  # columns


class LinearModel(Model):
    """Minimise J(margins) + l2 ||W||^2 over margins X W + intercepts; intercepts and shared parameters are free.

    Parameters
    ----------
    l2 : float
        In terms of scikit-learn's C on n rows, 1 / (2 n C).
    fit_intercept : bool
        Of the first margin; further ones (the delay of DFM, say) always have theirs.
    tol : float
        Stop when no entry of the gradient exceeds this, in coordinates scaled to unit curvature.
    max_iter : int
    encoder : TableEncoder, optional
        How tables become matrices. Arrays and CSR matrices are used as they are.

    Attributes
    ----------
    coef_ : array of shape (m, n_columns)
    intercept_ : array of shape (m,)
        0 for a margin without an intercept.
    shared_ : array of shape (s,)
    objective_ : float
        The minimum.
    n_iter_ : int
    """

    def __init__(
        self,
        l2: float = 1e-5,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 2000,
        encoder: TableEncoder | None = None,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.encoder = encoder

    def encode(self, X: Any, weight: Floats) -> Matrix:
        if not nw.dependencies.is_into_dataframe(X):
            self.encoder_ = None
            return sparse.csr_array(X) if sparse.issparse(X) else X
        self.encoder_ = TableEncoder() if self.encoder is None else clone(self.encoder)
        return self.encoder_.fit_transform(X, weight)

    def fit(self, encoded: Matrix, risk: Risk) -> LinearModel:
        problem, solution = self._solve(encoded, risk)
        self.coef_, self.intercept_, self.shared_ = problem.unpack(solution.theta)
        self.objective_ = problem.value_and_gradient(solution.theta)[0]
        self.n_iter_ = solution.n_iter
        return self

    def margins(self, X: Any) -> Floats:
        matrix = X if self.encoder_ is None else self.encoder_.transform(X)
        return np.asarray(matrix @ self.coef_.T) + self.intercept_

    def side_margin(
        self, encoded: Matrix, risk: Risk, rows: NDArray[np.bool_], groups: NDArray[np.int64], at: NDArray[np.int64]
    ) -> Floats:
        count = int(max(groups.max(), at.max())) + 1
        problem, solution = self._solve(_with_groups(encoded[rows], groups, count), risk)
        coef, intercept, _ = problem.unpack(solution.theta)
        features, levels = coef[0, :-count], coef[0, -count:]
        return np.asarray(encoded @ features) + levels[at] + intercept[0]

    def _solve(self, matrix: Matrix, risk: Risk) -> tuple[_Problem, Solution]:
        if not isinstance(self.l2, int | float | np.floating) or not 0 <= self.l2 < np.inf:
            raise ValueError(f"l2={self.l2!r} must be a finite number of at least 0.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")
        if risk.minibatch_only:
            raise ValueError(
                "ascent=True is a rule for mini-batches, and LinearModel minimises over all rows at once: use ascent=False here."
            )

        def solve(smooth: Risk, start: Floats | None) -> Solution:
            problem = _Problem(matrix, smooth, self.l2, self.fit_intercept)
            first = problem.start() if start is None else start
            return minimise(problem.value_and_gradient, problem.precondition, first, self.tol, self.max_iter)

        problem = _Problem(matrix, risk, self.l2, self.fit_intercept)
        if isinstance(risk, NonNegativeRisk):
            solution = minimise_corrected(risk, solve, problem.margins)
        else:
            solution = minimise_rounded(risk, solve)
        if solution.gradient_norm > max(self.tol, _GOOD_ENOUGH):
            warnings.warn(
                f"LinearModel stopped after {solution.n_iter} iterations with a gradient of {solution.gradient_norm:.1e} "
                f"(tol={self.tol:g}). Raise max_iter or l2, or standardise the features.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return problem, solution


def _with_groups(matrix: Matrix, groups: NDArray[np.int64], count: int) -> Matrix:
    """The matrix with one 0/1 column more for each group."""
    n = len(groups)
    one_hot = sparse.csr_array((np.ones(n), (np.arange(n), groups)), shape=(n, count))
    if sparse.issparse(matrix):
        return sparse.hstack([matrix, one_hot], format="csr")
    return np.hstack([matrix, one_hot.toarray()])


class _Problem:
    """A risk as a function of theta = (W by margins, intercepts, shared), with the penalty on W."""

    def __init__(self, matrix: Matrix, risk: Risk, l2: float, fit_intercept: bool) -> None:
        self.matrix = matrix
        self.risk = risk
        self.l2 = l2
        # The first margin is the classifier's; the level of another sets a scale, of time for one, and is never given up.
        self.has_intercept = np.array([wanted and (fit_intercept or k > 0) for k, wanted in enumerate(risk.intercepts)])

    def unpack(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        m, columns, k = self.risk.n_margins, self.matrix.shape[1], int(self.has_intercept.sum())
        intercept = np.zeros(m)
        intercept[self.has_intercept] = theta[m * columns : m * columns + k]
        return theta[: m * columns].reshape(m, columns), intercept, theta[m * columns + k :]

    def margins(self, theta: Floats) -> Floats:
        coef, intercept, _ = self.unpack(theta)
        return np.asarray(self.matrix @ coef.T) + intercept

    def value_and_gradient(self, theta: Floats) -> tuple[float, Floats]:
        coef, _, shared = self.unpack(theta)
        value, d_margins, d_shared = self.risk.value_and_gradient(self.margins(theta), shared)
        d_coef = np.asarray(self.matrix.T @ d_margins).T + 2.0 * self.l2 * coef
        gradient = np.concatenate([d_coef.ravel(), d_margins.sum(axis=0)[self.has_intercept], d_shared])
        return value + self.l2 * float((coef**2).sum()), gradient

    def precondition(self, theta: Floats) -> Preconditioner:
        """From the curvature at theta: a whole block for each margin while that is small, else the diagonal alone.

        A sample of the rows is enough for this, and of curvature that may be negative the size is.
        """
        m, columns = self.risk.n_margins, self.matrix.shape[1]
        curvature = np.abs(self.risk.curvature(self.margins(theta), self.unpack(theta)[2]))
        step = -(-len(curvature) // _SAMPLE)
        sample, curvature = self.matrix[::step], step * curvature[::step]
        level = curvature.sum(axis=0)
        squares = sample.multiply(sample) if sparse.issparse(sample) else sample**2
        diagonal = np.concatenate(
            [
                (np.asarray(squares.T @ curvature).T + 2.0 * self.l2).ravel(),
                level[self.has_intercept],
                np.full(self.risk.n_shared, level[-1] / max(self.risk.n_shared, 1)),
            ]
        )
        blocks = []
        for k in range(m) if columns <= _DENSE_BLOCK else ():
            weighted = (
                sample.multiply(curvature[:, [k]]).tocsr() if sparse.issparse(sample) else sample * curvature[:, [k]]
            )
            product = weighted.T @ sample
            hessian = product.toarray() if sparse.issparse(product) else product
            index = np.arange(k * columns, (k + 1) * columns)
            hessian[np.diag_indices(columns)] += 2.0 * self.l2
            if self.has_intercept[k]:
                border = np.asarray(weighted.sum(axis=0))
                hessian = np.block([[hessian, border[:, None]], [border[None, :], level[k]]])
                index = np.append(index, m * columns + self.has_intercept[:k].sum())
            blocks.append((index, hessian))
        return Preconditioner.of(diagonal, blocks)

    def start(self) -> Floats:
        levels, shared = self.risk.start()
        weights = np.zeros(self.risk.n_margins * self.matrix.shape[1])
        return np.concatenate([weights, levels[self.has_intercept], shared])
