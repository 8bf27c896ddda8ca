"""LinearModel: margins that are linear in the features, at the exact minimum of a regularised risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from belated.arrays import look_up
from belated.cluster.sharded import by_rows
from belated.features.cluster_table import ClusterTable
from belated.features.encoder import TableEncoder
from belated.features.field_matrix import FieldMatrix
from belated.models.base import Model, require_risk, require_setting
from belated.models.cluster_rows import encode_on_cluster
from belated.models.linear_objective import DENSE_BLOCK, Design, LinearObjective, objective_of
from belated.models.solver_checkpoints import SolverCheckpoint, forget
from belated.models.sparse_coefficients import SparseCoefficients
from belated.notices import warn
from belated.risks.base import Risk
from belated.solvers.device_rows import DeviceRows, resolve_device
from belated.solvers.kinked_risks import minimise_non_negative, minimise_rounded
from belated.solvers.rows import PlainRows, SparseRows
from belated.solvers.stopping import Solution
from belated.threads import threads
from belated.typing import Bools, Floats, Ints

# Floating point cannot always reach `tol`; a gradient this small is no reason to warn.
_GOOD_ENOUGH = 1e-5
_TRIAL_TOL = 1e-3
_TOO_LARGE = 1e100
_OUTWEIGHED = 1000.0  # times the curvature of the data, a penalty leaves nothing of a weight


class LinearModel(Model):
    """Minimise J(margins) + l2 ||W||^2 over margins X W + intercepts; intercepts and shared parameters are free.

    Parameters
    ----------
    l2 : float, optional
        In terms of scikit-learn's C on n rows, 1 / (2 n C). None: chosen in fit, by cross-validation over blocks of arrival
        time, on the method's own risk.
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
    checkpoint : path, optional
        The beginning of the names of files in which a long fit by L-BFGS on the CPU keeps how far it is (dual ascent, of which most fits on one machine
        are, keeps nothing). One whose program was killed goes on from there when the same is asked again; at the end they are removed.

    Attributes
    ----------
    coef_ : array of shape (m, n_columns)
    intercept_ : array of shape (m,)
        0 for a margin without an intercept, unless a column far from zero was centred.
    shared_ : array of shape (s,)
    objective_ : float
        The minimum.
    n_iter_ : int
    converged_ : bool
        Whether the fit reached ``tol``, or what floating point allows of it; a warning says so where it did not.
    gap_ : float
        A bound on how far ``objective_`` is from the minimum, where the fit ended with one, else NaN.

    Examples
    --------
    >>> from belated import DelayedFeedbackClassifier, LinearModel
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(model=LinearModel(l2=1e-3)).fit_snapshot(snap)
    >>> clf.model_.converged_, clf.coef_.shape[0]
    (True, 2)
    """

    checkpoint: str | Path | None = None  # of a model in a file from before there was this parameter
    setting = "l2"
    grid = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    takes_groups = True
    takes_kinks = True

    def __init__(
        self,
        l2: float | None = 1e-5,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 2000,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        checkpoint: str | Path | None = None,
    ) -> None:
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.encoder = encoder
        self.device = device
        self.checkpoint = checkpoint

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "checkpoint": None if self.checkpoint is None else str(self.checkpoint)}

    def encode(self, X: Any, weight: Floats) -> Design:
        if isinstance(X, ClusterTable):
            return encode_on_cluster(self, X, weight)  # type: ignore[return-value]
        self.encoder_, self._hashed = None, isinstance(X, FieldMatrix)
        if nw.dependencies.is_into_dataframe(X):
            self.encoder_ = TableEncoder() if self.encoder is None else clone(self.encoder)
            # A matrix, whatever scikit-learn is configured to give people.
            self.encoder_.set_output(transform="default")
            X = self.encoder_.fit_transform(X, sample_weight=weight)
        device = resolve_device(self.device)
        rows: PlainRows | SparseRows
        if isinstance(X, FieldMatrix) or (sparse.issparse(X) and X.shape[1] > DENSE_BLOCK):
            rows = SparseRows.compact(X, self.fit_intercept)
        else:
            rows = PlainRows.of(sparse.csr_array(X) if sparse.issparse(X) else X, self.fit_intercept)
        return rows if device == "cpu" else DeviceRows.of(rows, device)

    def fit(self, encoded: Design, risk: Risk) -> LinearModel:
        require_risk(self, risk)
        self._fit(encoded, _laid_out(encoded, risk), risk, None)
        forget(self.checkpoint)
        return self

    def simplest_first(self, values: Sequence[float]) -> list[float]:
        return sorted(values, reverse=True)

    def path(self, encoded: Design, risk: Risk, values: Sequence[float]) -> Iterator[LinearModel]:
        """Copies of this model, fitted at each value of l2: from the largest down, each from where the last one ended."""
        theta, rows = None, _laid_out(encoded, risk)
        for value in self.simplest_first(values):
            model = clone(self).set_params(l2=value)
            model.encoder_, model._hashed = self.encoder_, self._hashed
            theta = model._fit(encoded, rows, risk, theta)
            yield model

    def check_fitted(self) -> None:
        coef = self._coef
        weights = coef.weights if isinstance(coef, SparseCoefficients) else coef
        levels = self.intercept_.shape
        if weights.ndim != 2 or weights.dtype != np.float64 or (len(weights) > 1 and levels != weights.shape[:1]):
            raise ValueError("its weights and intercepts do not fit together")
        if isinstance(coef, SparseCoefficients):
            coef.check()

    def for_trials(self) -> LinearModel:
        return self.unattended().set_params(tol=max(self.tol, _TRIAL_TOL))

    def _fit(self, encoded: Design, rows: Design, risk: Risk, start: Floats | None) -> Floats:
        """Fit on rows as they occur; what is learned is said of rows as they were encoded."""
        if encoded.largest_entry[1] > _TOO_LARGE:
            raise ValueError(f"LinearModel cannot be fitted: the sums overflow. {_suspect(encoded)} Use another unit.")
        self._warn_of_tiny_columns(encoded)
        problem, solution = self._solve(rows, risk if risk.occurrences is None else risk.occurrences.risk, start)
        weights, self.intercept_, self.shared_ = problem.unpack(solution.theta)
        if risk.occurrences is not None:  # the weights of groups become as many intercepts
            count = risk.occurrences.count
            weights, self.intercept_ = weights[:, :-count], self.intercept_ + weights[0, -count:]
        if encoded.center is not None:
            self.intercept_ = self.intercept_ - weights @ encoded.center
        self._coef = weights if encoded.columns is None else SparseCoefficients.of(weights, encoded)
        # A risk with kinks was minimised through smooth stand-ins, whose values differ from its own.
        self.objective_ = solution.value if risk.smooth else problem.value_and_gradient(solution.theta)[0]
        self.n_iter_, self.gap_ = solution.n_iter, solution.gap
        return solution.theta

    @property
    def coef_(self) -> Floats:
        return self._coef.dense() if isinstance(self._coef, SparseCoefficients) else self._coef

    def transform(self, X: Any) -> Any:
        return X if self.encoder_ is None or not nw.dependencies.is_into_dataframe(X) else self.encoder_.transform(X)

    def margins(self, X: Any) -> Floats:
        if isinstance(X, ClusterTable):
            return by_rows(_margins, self, X.rows)
        matrix = self.transform(X)
        # With several levels of one margin (ages, say) there are more intercepts than lines of weights.
        if isinstance(self._coef, SparseCoefficients):
            several = len(self.intercept_) > len(self._coef.weights)
            level = np.zeros(1) if several else self.intercept_
            return self._coef.margins(matrix, level) + (self.intercept_ if several else 0.0)
        return np.asarray(matrix @ self._coef.T) + self.intercept_

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """A name for each column of ``coef_``; ``input_features`` are those of an array, which has no names of its own."""
        if self.encoder_ is not None:
            return self.encoder_.get_feature_names_out(input_features)
        count = self._coef.n_columns if isinstance(self._coef, SparseCoefficients) else self._coef.shape[1]
        if input_features is not None:
            if len(input_features) != count:
                raise ValueError(f"input_features has {len(input_features)} names, but there are {count} columns.")
            return np.asarray(input_features, dtype=object)
        if self._hashed:
            raise ValueError("hashed columns have no names: which values share one is not kept.")
        return np.array([f"x{j}" for j in range(count)], dtype=object)

    def auxiliary_margin(self, encoded: Design, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        count = int(max(groups.max(), new_groups.max())) + 1
        among_all = risk.spread(rows) if isinstance(encoded, DeviceRows) else None
        if among_all is None:
            some = encoded.take(rows).with_groups(groups, count)
        else:  # on a device, passing over rows that cost nothing is faster than making a matrix without them
            everywhere = np.zeros(len(rows), dtype=np.int64)
            everywhere[rows] = groups
            some, risk = encoded.with_groups(everywhere, count), among_all
        problem, solution = self._solve(some, risk)
        coef, intercept, _ = problem.unpack(solution.theta)
        features, levels = coef[:, :-count], coef[0, -count:]
        return encoded.margins(features, intercept)[:, 0] + look_up(levels, new_groups)

    def _solve(self, rows: Design, risk: Risk, start: Floats | None = None) -> tuple[LinearObjective, Solution]:
        l2 = self._check(risk)

        def solve(smooth: Risk, start: Floats | None, intercept: bool = self.fit_intercept) -> Solution:
            problem = objective_of(rows, smooth, l2, intercept)
            if not smooth.parts:
                problem = problem if kept is None else kept.watch(problem)
                return problem.solve(start, self.tol, self.max_iter)
            starts = [None] * len(smooth.parts) if start is None else problem.split(start)
            free = [k in problem.free for k in range(len(smooth.parts))]
            return problem.join([solve(*part) for part in zip(smooth.parts, starts, free, strict=True)])

        problem = objective_of(rows, risk, l2, self.fit_intercept)
        kept = (
            None if self.checkpoint is None or rows.device is not None else SolverCheckpoint(self.checkpoint, problem)
        )
        start = start if kept is None or start is not None else kept.start()
        # A step that goes too far is taken back, and what ends in no number is refused below; NumPy need not warn of either.
        with threads(rows.size), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if risk.non_negative:
                solution = minimise_non_negative(risk, solve, problem.margins, self.tol, start)
            else:
                solution = minimise_rounded(risk, solve, start)
        if np.isnan(solution.gradient_norm) or not (np.isfinite(solution.value) and np.isfinite(solution.theta).all()):
            raise ValueError(f"LinearModel cannot be fitted: the sums overflow. {_suspect(rows)}")
        self.converged_ = bool(solution.gradient_norm <= max(self.tol, _GOOD_ENOUGH))
        if not self.converged_:
            warn(
                f"LinearModel stopped after {solution.n_iter} iterations with a gradient of {solution.gradient_norm:.1e} "
                f"(tol={self.tol:g}). Raise max_iter or l2, or standardise the features. {_suspect(rows)}",
                ConvergenceWarning,
                stacklevel=4,
            )
        return problem, solution

    def _warn_of_tiny_columns(self, rows: Design) -> None:
        """A column in tiny units has a large weight or none, and a penalty decides for none."""
        column, spread = rows.least_spread
        if self.l2 is not None and spread**2 / 4.0 < 2.0 * self.l2 / _OUTWEIGHED:
            warn(
                f"column {column} varies by {spread:.1g} only, so at l2={self.l2:g} the penalty keeps it from having any influence. "
                f"Standardise the features, with StandardScaler for one, or lower l2.",
                stacklevel=4,
            )

    def _check(self, risk: Risk) -> float:
        l2 = require_setting(self)
        if not isinstance(self.l2, Real) or isinstance(self.l2, bool) or not 0 <= self.l2 < np.inf:
            raise ValueError(f"l2={self.l2!r} must be a finite number of at least 0.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter={self.max_iter!r} must be at least 1.")
        return float(l2)


def _margins(model: LinearModel, X: Any) -> Floats:
    """Of a partition, which may have no rows."""
    return model.margins(X) if len(X) else np.zeros((0, len(model.intercept_)))


def _laid_out(encoded: Design, risk: Risk) -> Design:
    """Rows as often as they occur, each with its group as one more category."""
    found = risk.occurrences
    return encoded if found is None else encoded.take(found.row).with_groups(found.group, found.count)


def _suspect(rows: Design) -> str:
    """The column most likely to make a fit hard: the one with the largest values."""
    column, largest = rows.largest_entry
    return f"The largest values are in column {column}, up to {largest:.3g}." if largest > 100 else ""
