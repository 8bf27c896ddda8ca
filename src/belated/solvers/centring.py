"""Columns far from zero, such as years or seconds since 1970: what to take off them so that nothing is lost in rounding.

A margin with a free intercept does not change when a column is shifted, but the sums behind it do: beside a column of
2024 +- 1 everything else is rounding. Solvers see such columns with their mean taken off; a model puts it back into
the intercept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from belated.typing import Bools, Floats

FAR = 3.0  # a column is far from zero where its mean exceeds this many standard deviations


def far_centre(X: Any) -> Floats | None:
    """The mean of each column that is far from zero, 0 for the others; None where there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = _moments(X)
        far = np.abs(mean) > FAR * np.sqrt(variance)
    if not far.any():
        return None
    # The mean of equal numbers may be off by rounding, and what were left of them would count as a column.
    return np.where(far, np.where(_is_constant(X), _first_row(X), mean), 0.0)


def without_constants(X: sparse.csr_array, center: Floats) -> tuple[sparse.csr_array, Floats | None]:
    """A CSR matrix with zeros for columns that are constant and far from zero, and the centre of the others.

    Such a column says nothing that an intercept does not; taken off in products, rounding would remain of it.
    """
    constant = (center != 0) & _is_constant(X)
    if not constant.any():
        return X, center
    center = np.where(constant, 0.0, center)
    return with_zeros(X, constant), center if center.any() else None


def with_zeros(X: sparse.csr_array, columns: Bools) -> sparse.csr_array:
    """The same CSR matrix with zeros in some columns."""
    X = X.copy()
    X.data[columns[X.indices]] = 0.0
    return X


def _is_constant(X: Any) -> Bools:
    if not sparse.issparse(X):
        return np.asarray((X[0] == X).all(axis=0))
    same = X.data == _first_row(X)[X.indices]
    return np.bincount(X.indices, same, X.shape[1]) == X.shape[0]


def _first_row(X: Any) -> Floats:
    return X[0] if not sparse.issparse(X) else X[:1].toarray()[0]


def _moments(X: Any) -> tuple[Floats, Floats]:
    if not sparse.issparse(X):
        mean = X.mean(axis=0)
        return mean, X.var(axis=0)
    n, columns = X.shape
    # A column with zeros in a tenth of its rows or more cannot be far.
    count = np.bincount(X.indices, minlength=columns)
    if not (count > 0.89 * n).any():
        return np.zeros(columns), np.ones(columns)
    mean = np.bincount(X.indices, X.data, columns) / n
    off = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, columns) + (n - count) * mean**2
    return mean, off / n
