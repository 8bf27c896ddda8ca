"""TableEncoder: from a table of categories and numbers to a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from belated.data.labels import quantiles
from belated.features.hashing import field_starts, hash_column
from belated.tables.frames import decoded, is_text, open_table, to_arrow
from belated.tables.refusal import refuse
from belated.typing import Floats, SmallInts

Matrix: TypeAlias = Any  # a float64 array or a CSR matrix

_DENSE_ABOVE = 0.5


class TableEncoder(BaseEstimator):
    """Encode the columns of a pandas, polars or pyarrow table; every column gives at most one entry a row.

    - Text, categories and booleans: one column for each value seen, or hashed when there are more than ``max_categories``
      of them. A value not seen in training has no entry.
    - Numbers: one column for each of ``buckets`` quantile ranges, so that a linear model can bend; or one standardised
      column with ``numbers="standardise"``.
    - A missing value is a category of its own, also for numbers.
    - Dates and nested values are refused: say what about them matters.

    A category that is written as a number (an id) must be converted to text or to a categorical type first, or it is
    taken as a number.

    Parameters
    ----------
    max_categories : int
    hash_columns : int
        Columns that all hashed fields share; :mod:`belated.features.hashing` says where a value goes.
    numbers : {"buckets", "standardise"}
    buckets : int
    """

    def __init__(
        self, max_categories: int = 1000, hash_columns: int = 2**18, numbers: str = "buckets", buckets: int = 10
    ) -> None:
        self.max_categories = max_categories
        self.hash_columns = hash_columns
        self.numbers = numbers
        self.buckets = buckets

    def fit_transform(self, table: Any, weight: Floats) -> Matrix:
        """Learn the encoding of a table whose rows have the given weights, and apply it."""
        if self.numbers not in ("standardise", "buckets"):
            raise ValueError(f"numbers={self.numbers!r} is not known; choose 'standardise' or 'buckets'.")
        for name in ("max_categories", "hash_columns", "buckets"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r} must be a whole number of at least 1.")
        frame = open_table(table, "X")
        self.columns_: dict[str, _Number | _Buckets | _OneHot | _Hashed] = {}
        offset = 0
        for name in frame.columns:
            values = _read(frame, name)
            column: _Number | _Buckets | _OneHot | _Hashed
            if not _is_category(values):
                numbers = _numbers(values, name)
                plain = self.numbers == "standardise"
                column = (
                    _Number.learn(numbers, weight, offset)
                    if plain
                    else _Buckets.learn(numbers, weight, offset, self.buckets)
                )
            else:
                categories = _categories(values)
                column = (
                    _OneHot(offset, categories)
                    if len(categories) <= self.max_categories
                    else _Hashed(name, self.hash_columns)
                )
            self.columns_[name] = column
            offset += column.size
        hashed = [column for column in self.columns_.values() if isinstance(column, _Hashed)]
        for field in hashed:
            field.offset = offset
        self.n_columns_ = offset + (self.hash_columns if hashed else 0)
        return self.transform(table)

    def transform(self, table: Any) -> Matrix:
        frame = open_table(table, "X")
        n, k = len(frame), len(self.columns_)
        indices, values = np.zeros((n, k), dtype=np.int32), np.zeros((n, k))
        for j, (name, column) in enumerate(self.columns_.items()):
            column.encode(_read(frame, name), name, indices[:, j], values[:, j])
        matrix = sparse.csr_array(
            (values.ravel(), indices.ravel(), np.arange(0, n * k + 1, max(k, 1), dtype=np.int32)[: n + 1]),
            shape=(n, self.n_columns_),
        )
        matrix.eliminate_zeros()
        return matrix.toarray() if k > _DENSE_ABOVE * self.n_columns_ else matrix

    def get_feature_names_out(self) -> NDArray[np.object_]:
        """A name for each column of the matrix."""
        names = [label for name, column in self.columns_.items() for label in column.labels(name)]
        names += [f"hash {i}" for i in range(self.n_columns_ - len(names))]
        return np.array(names, dtype=object)


@dataclass
class _Number:
    """(value - mean) / spread in one column, 1 in the next where it is missing."""

    offset: int
    mean: float
    spread: float
    size: int = 2

    @classmethod
    def learn(cls, numbers: Floats, weight: Floats, offset: int) -> _Number:
        known = ~np.isnan(numbers)
        if not known.any():
            return cls(offset, 0.0, 1.0)
        mean = float(np.average(numbers[known], weights=weight[known]))
        spread = float(np.sqrt(np.average((numbers[known] - mean) ** 2, weights=weight[known])))
        return cls(offset, mean, spread if spread > 1e-12 * max(abs(mean), 1e-300) else 1.0)

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        numbers = _numbers(values, name)
        missing = np.isnan(numbers)
        indices[:] = self.offset + missing
        out[:] = np.where(missing, 1.0, (numbers - self.mean) / self.spread)

    def labels(self, name: str) -> list[str]:
        return [name, f"{name} missing"]


@dataclass
class _Buckets:
    """1 in the column of the value's range; the last column is for missing values."""

    offset: int
    edges: Floats

    @classmethod
    def learn(cls, numbers: Floats, weight: Floats, offset: int, count: int) -> _Buckets:
        known = ~np.isnan(numbers)
        return cls(offset, quantiles(numbers[known], weight[known], count))

    @property
    def size(self) -> int:
        return len(self.edges) + 2

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        numbers = _numbers(values, name)
        indices[:] = self.offset + np.where(np.isnan(numbers), self.size - 1, np.searchsorted(self.edges, numbers))
        out[:] = 1.0

    def labels(self, name: str) -> list[str]:
        return [f"{name} <= {edge:g}" for edge in self.edges] + [f"{name} above", f"{name} missing"]


@dataclass
class _OneHot:
    """1 in the column of the value; the last column is for missing values."""

    offset: int
    categories: list[str]

    @property
    def size(self) -> int:
        return len(self.categories) + 1

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        text = _text(values, name)
        found = pc.index_in(text, value_set=pa.array(self.categories, pa.large_string()))
        known = np.asarray(found.is_valid())
        missing = np.asarray(text.is_null())
        indices[:] = self.offset + np.where(missing, self.size - 1, np.asarray(found.fill_null(0)))
        out[:] = known | missing

    def labels(self, name: str) -> list[str]:
        return [f"{name}={category}" for category in self.categories] + [f"{name} missing"]


@dataclass
class _Hashed:
    """1 in the column to which the value hashes."""

    field: str
    columns: int
    offset: int = 0
    size: int = 0

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        start = field_starts([self.field], seed=0)[0]
        indices[:] = self.offset + hash_column(_text(values, name), name, start, self.columns)
        out[:] = 1.0

    def labels(self, name: str) -> list[str]:
        return []


def _read(frame: nw.DataFrame[Any], name: str) -> pa.Array:
    """A feature column as large text (of categories of any kind), booleans, numbers or nothing but missing values."""
    values = to_arrow(frame, name)
    kind = values.type
    if pa.types.is_dictionary(kind):
        try:
            return decoded(values).cast(pa.large_string())
        except pa.ArrowNotImplementedError:
            kind = kind.value_type
    if is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind) or _is_number(kind):
        return values
    raise ValueError(
        f"feature column {name!r} holds {kind}, which has no encoding. Derive numbers or categories (as text) from it, or leave it out."
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _is_category(values: pa.Array) -> bool:
    return not _is_number(values.type)


def _text(values: pa.Array, name: str) -> pa.Array:
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.large_string())
    if not _is_category(values):
        raise ValueError(
            f"feature column {name!r} held categories in training but holds {values.type} now. Convert it to text."
        )
    return values.cast(pa.large_string())


def _numbers(values: pa.Array, name: str) -> Floats:
    if _is_category(values) and values.null_count < len(values):
        raise ValueError(
            f"feature column {name!r} held numbers in training but holds {values.type} now. Convert it to numbers."
        )
    numbers = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
    refuse(np.isinf(numbers), name, "{count} infinite", numbers, "Replace them by finite numbers or by missing values.")
    return numbers


def _categories(values: pa.Array) -> list[str]:
    return sorted(value for value in values.cast(pa.large_string()).unique().to_pylist() if value is not None)
