"""The weights of a linear model on wide data: few columns out of very many, found by their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from belated.features.field_matrix import FieldMatrix
from belated.solvers.rows import SparseRows
from belated.typing import Floats, SmallInts

_FEW = 100  # looking up one entry takes about as long as writing so many zeros


@dataclass(frozen=True)
class SparseCoefficients:
    """Weights (m, d) of the d columns that occurred in training, out of ``n_columns``; all others are 0.

    ``columns`` are their numbers in increasing order, ``places`` where each one's weights are.
    """

    weights: Floats
    columns: SmallInts
    places: SmallInts
    n_columns: int

    @classmethod
    def of(cls, weights: Floats, rows: Any) -> SparseCoefficients:
        """From weights in the order of a solver's compacted rows."""
        columns, places = rows.by_number
        return cls(weights, columns, places, rows.n_columns)

    def check(self) -> None:
        """Refuse columns out of bounds, as a damaged file may hold: compiled code does not look at them again."""
        d = self.weights.shape[1]
        known = self.columns.shape == self.places.shape == (d,) and all(
            part.dtype == np.int32 for part in (self.columns, self.places)
        )
        if not known or (d and not (self.columns[0] >= 0 and self.columns[-1] < self.n_columns)):
            raise ValueError("its columns do not fit its weights")
        if (np.diff(self.columns) <= 0).any() or not np.array_equal(np.sort(self.places), np.arange(d)):
            raise ValueError("its columns are out of order")

    def dense(self) -> Floats:
        """All weights, of shape (m, n_columns)."""
        coef = np.zeros((len(self.weights), self.n_columns))
        coef[:, self.columns] = self.weights[:, self.places]
        return coef

    def margins(self, matrix: FieldMatrix | sparse.csr_array | Floats, intercept: Floats) -> Floats:
        """Margins (n, m) of rows. A few rows look their columns up; many are worth writing all weights out once."""
        if isinstance(matrix, np.ndarray):
            return matrix[:, self.columns] @ self.weights[:, self.places].T + intercept
        if matrix.indices.size * _FEW > self.n_columns:
            if isinstance(matrix, FieldMatrix):
                if matrix.n_columns != self.n_columns:
                    raise ValueError(f"{matrix!r} does not match weights of {self.n_columns} columns.")
                return SparseRows.of(matrix).margins(self.dense(), intercept)
            return np.asarray(matrix @ self.dense().T) + intercept
        found = self._look_up(matrix.indices)
        if isinstance(matrix, FieldMatrix):
            return found.sum(axis=-1).T + intercept
        summed = [np.bincount(_row_of(matrix), line * matrix.data, matrix.shape[0]) for line in found]
        return np.column_stack(summed) + intercept

    def _look_up(self, numbers: SmallInts) -> Floats:
        """The weights (m, ...) of columns by their numbers."""
        if not len(self.columns):
            return np.zeros((len(self.weights), *numbers.shape))
        near = np.minimum(np.searchsorted(self.columns, numbers), len(self.columns) - 1)
        known = self.columns[near] == numbers
        return np.where(known, self.weights[:, self.places[near]], 0.0)


def _row_of(matrix: sparse.csr_array) -> SmallInts:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
