"""TableEncoder: from a table of categories and numbers to a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, _check_sample_weight, check_is_fitted

from belated.features.column_encodings import (
    BucketColumn,
    CategoryColumn,
    EncodedColumn,
    HashedColumn,
    NumberColumn,
    is_category,
    read_feature,
)
from belated.tables.frames import open_table, require
from belated.tables.missing import EMPTY_TEXT, missing_words, words_of
from belated.typing import Floats

Matrix: TypeAlias = Any  # a float64 array or a CSR matrix

_DENSE_ABOVE = 0.5
BEFORE_NA = ("NA", "NaN", "nan", "NULL", "null", "None")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a pandas, polars or pyarrow table; every column gives at most one entry a row.

    - Text, categories and booleans: one column for each value seen, or hashed when there are more than ``max_categories``
      of them. A value not seen in training has no entry.
    - Numbers: one column for each of ``buckets`` quantile ranges, so that a linear model can bend; or one standardised
      column with ``numbers="standardise"``.
    - A missing value is a category of its own, also for numbers. Empty text is missing, and so are the words of ``na``.
    - Dates and nested values are refused: say what about them matters.

    A category that is written as a number (an id) must be converted to text or to a categorical type first, or it is
    taken as a number. Columns are found by name, so their order does not matter, and others are ignored.

    Parameters
    ----------
    max_categories : int
    hash_columns : int
        Columns that all hashed fields share; :mod:`belated.features.hashing` says where a value goes.
    numbers : {"buckets", "standardise"}
    buckets : int
    na : sequence of str
        Words that mean a missing value where they are text, beside empty text.

    Attributes
    ----------
    columns_ : dict
        How each column of the table is encoded.
    n_columns_ : int
        Columns of the matrix.
    feature_names_in_ : array of str
    n_features_in_ : int

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"device": ["phone", "desktop", "phone"], "price": [1.0, 2.0, 3.0]})
    >>> encoder = TableEncoder(buckets=2).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['device=desktop', 'device=phone', 'device missing', 'price <= 2', 'price above', 'price missing']
    >>> encoder.transform(table).toarray().tolist()[0]
    [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    """

    na: Sequence[str] = BEFORE_NA  # of an encoder in a model file from before there was this parameter

    def __init__(
        self,
        max_categories: int = 1000,
        hash_columns: int = 2**18,
        numbers: str = "buckets",
        buckets: int = 10,
        na: Sequence[str] = (),
    ) -> None:
        self.max_categories = max_categories
        self.hash_columns = hash_columns
        self.numbers = numbers
        self.buckets = buckets
        self.na = na

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> TableEncoder:
        """Learn the encoding of a table; ``y`` is not looked at, and weights count as repetitions."""
        self._check()
        frame = open_table(X, "X")
        rows = np.zeros(len(frame))
        weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        columns: dict[str, EncodedColumn] = {}
        offset = 0
        for name in frame.columns:
            values = missing_words(read_feature(frame, name), [*EMPTY_TEXT, *words_of(self.na)])
            columns[name] = column = self._learn(values, name, weight, offset)
            offset += column.size
        self._set_columns(columns, offset)
        return self

    def _set_columns(self, columns: dict[str, EncodedColumn], offset: int) -> None:
        hashed = [column for column in columns.values() if isinstance(column, HashedColumn)]
        for field in hashed:
            field.offset = offset
        self.columns_ = columns
        self.n_columns_ = offset + (self.hash_columns if hashed else 0)
        self.feature_names_in_ = np.array(list(columns), dtype=object)
        self.n_features_in_ = len(columns)

    def fit_transform(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Matrix:
        """Learn the encoding of a table, and apply it."""
        return self.fit(X, y, sample_weight=sample_weight).transform(X)

    def transform(self, X: Any) -> Matrix:
        """Encode a table as a matrix: CSR, or an array where more than half of it would be filled."""
        check_is_fitted(self, "columns_")
        return self._transform(open_table(X, "X"))

    def _transform(self, frame: nw.DataFrame[Any]) -> Matrix:
        require(frame, list(self.columns_), "X")
        n, k = len(frame), len(self.columns_)
        indices, values = np.zeros((n, k), dtype=np.int32), np.zeros((n, k))
        for j, (name, column) in enumerate(self.columns_.items()):
            # A word that was a value in training stays one.
            words = [word for word in (*EMPTY_TEXT, *self.na) if word not in getattr(column, "categories", ())]
            column.encode(missing_words(read_feature(frame, name), words), name, indices[:, j], values[:, j])
        matrix = sparse.csr_array(
            (values.ravel(), indices.ravel(), np.arange(0, n * k + 1, max(k, 1), dtype=np.int32)[: n + 1]),
            shape=(n, self.n_columns_),
        )
        matrix.eliminate_zeros()
        return matrix.toarray() if k > _DENSE_ABOVE * self.n_columns_ else matrix

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """A name for each column of the matrix; ``input_features``, if given, must be the table's own names."""
        check_is_fitted(self, "columns_")
        _check_feature_names_in(self, input_features)
        names = [part for name, column in self.columns_.items() for part in column.names(name)]
        names += [f"hash {i}" for i in range(self.n_columns_ - len(names))]
        return np.array(names, dtype=object)

    def _check(self) -> None:
        if self.numbers not in ("standardise", "buckets"):
            raise ValueError(f"numbers={self.numbers!r} is not known; choose 'standardise' or 'buckets'.")
        for name in ("max_categories", "hash_columns", "buckets"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a whole number of at least 1.")

    def _learn(self, values: Any, name: str, weight: Floats, offset: int) -> EncodedColumn:
        if not is_category(values):
            if self.numbers == "standardise":
                return NumberColumn.learn(values, name, weight, offset)
            return BucketColumn.learn(values, name, weight, offset, self.buckets)
        column = CategoryColumn.learn(values, offset)
        return column if len(column.categories) <= self.max_categories else HashedColumn(name, self.hash_columns)
