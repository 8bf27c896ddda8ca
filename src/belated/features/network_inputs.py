"""What a network sees of rows: numbers by their quantiles, and categories as places in one table of embeddings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from belated.features.codes import CodeEncoder
from belated.features.field_matrix import FieldMatrix
from belated.features.quantiles import weighted_quantiles
from belated.typing import Floats, Ints, SmallInts

Singles = NDArray[np.float32]
_WIDE = 2000  # columns of a sparse matrix that are still written out


@dataclass
class NetworkInputs:
    """How rows become numbers (n, d) from 0 to 1, NaN where missing, and places (n, k) in a table of ``size`` embeddings.

    Attributes
    ----------
    encoder : CodeEncoder or None
        Of tables.
    edges : list of arrays
        For each number its quantiles. The share of them that it has passed is what the network sees, straight in between.
    offsets, kept : arrays of shape (k,)
        Where the places of each column of categories begin, and how many of its values have one of their own.
    size : int
        All places; more categories than that share them.
    lookup : array or None
        Of FieldMatrix, the place of each column (wrapped around, where there are more columns than that), 0 for rare ones.
    """

    encoder: CodeEncoder | None = None
    edges: list[Floats] = field(default_factory=list)
    offsets: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    kept: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    size: int = 0
    lookup: SmallInts | None = None

    @classmethod
    def learn(cls, X: Any, weight: Floats, rows: int, bins: int, rare: int) -> NetworkInputs:
        """From training rows, for a table of at most ``rows`` embeddings, and numbers in ``bins`` ranges.

        Values that occur less than ``rare`` times share a place; weights count as repetitions, whatever their scale.
        """
        times = weight * (len(weight) / weight.sum())
        if isinstance(X, FieldMatrix):
            often = np.zeros(min(rows, X.n_columns))
            for column in X.indices.T:
                often += np.bincount(column % len(often), times, minlength=len(often))
            lookup = np.where(often >= rare, np.cumsum(often >= rare), 0).astype(np.int32)
            offsets = np.zeros(X.n_fields, dtype=np.int64)
            return cls(offsets=offsets, size=int(lookup.max()) + 1, lookup=lookup)
        if sparse.issparse(X) and X.shape[1] > _WIDE:
            raise ValueError(
                f"NetworkModel takes sparse matrices of up to {_WIDE} columns, and X has {X.shape[1]}. Pass hashed categories as a "
                f"FieldMatrix."
            )
        found, numbers = cls(), None
        if nw.dependencies.is_into_dataframe(X):
            found.encoder = CodeEncoder().fit(X, sample_weight=weight)
            matrix, categorical = found.encoder.transform(X), found.encoder.categorical_
            numbers, codes = matrix[:, ~categorical], matrix[:, categorical].astype(np.int64)
            # One place for values that are rare or were never seen, then one for each other value and for a missing one.
            found.kept = np.array([(np.bincount(column, times) >= rare).sum() for column in codes.T], dtype=np.int64)
            sizes = (found.kept + 1).tolist()
            found.offsets = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64) if sizes else found.offsets
            found.size = min(int(sum(sizes)), rows)
        numbers = _numbers(X) if numbers is None else numbers
        found.edges = [_edges(column, weight, bins) for column in numbers.T]
        return found

    def transform(self, X: Any) -> tuple[Singles, Ints]:
        """Numbers, and places."""
        if self.lookup is not None:
            wrapped = X.indices % len(self.lookup) if X.n_columns > len(self.lookup) else X.indices
            return np.zeros((len(X), 0), dtype=np.float32), self.lookup[wrapped]
        if self.encoder is None:
            return self._positions(_numbers(X)), np.zeros((X.shape[0], 0), dtype=np.int64)
        matrix, categorical = self.encoder.transform(X), self.encoder.categorical_
        codes = matrix[:, categorical].astype(np.int64) + 1  # by frequency, so that the rare ones come last
        places = np.where(codes > self.kept, 0, codes) + self.offsets
        return self._positions(matrix[:, ~categorical]), places % self.size if self.size else places

    def _positions(self, numbers: Floats) -> Singles:
        """Where numbers lie between their quantiles, from 0 to 1; in double precision until then."""
        found = np.empty(numbers.shape, dtype=np.float32)
        for k, edges in enumerate(self.edges):
            found[:, k] = np.interp(numbers[:, k], edges, np.linspace(0.0, 1.0, len(edges)))
        return found


def _numbers(X: Any) -> Floats:
    return X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)


def _edges(column: Floats, weight: Floats, bins: int) -> Floats:
    """Quantiles from the least to the greatest value; of a constant, that and one more."""
    known = ~np.isnan(column)
    if not known.any():
        return np.array([0.0, 1.0])
    values = column[known]
    inner = weighted_quantiles(values, weight[known], bins)
    edges = np.unique([values.min(), *inner, values.max()])
    return edges if len(edges) > 1 else np.array([edges[0], edges[0] + 1.0])
