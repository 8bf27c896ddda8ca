"""How one column of a table is encoded: as a number, as ranges of a number, as categories, or hashed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.features.hashing import field_starts, hash_column
from belated.features.quantiles import weighted_quantiles
from belated.tables.frames import decoded, is_text, to_arrow
from belated.tables.refusal import refuse
from belated.typing import Floats, SmallInts


class EncodedColumn:
    """A column of a table as ``size`` columns of a matrix, from ``offset`` on; each row has at most one entry in them."""

    offset: int
    size: int

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        """Write the column and the value of each row's entry; 0 is no entry."""
        raise NotImplementedError

    def names(self, name: str) -> list[str]:
        """A name for each of the columns."""
        raise NotImplementedError


@dataclass
class NumberColumn(EncodedColumn):
    """(value - mean) / spread in one column, 1 in the next where it is missing."""

    offset: int
    mean: float
    spread: float
    size: int = 2

    @classmethod
    def learn(cls, values: pa.Array, name: str, weight: Floats, offset: int) -> NumberColumn:
        numbers = read_numbers(values, name)
        known = ~np.isnan(numbers)
        if not known.any():
            return cls(offset, 0.0, 1.0)
        mean = float(np.average(numbers[known], weights=weight[known]))
        spread = float(np.sqrt(np.average((numbers[known] - mean) ** 2, weights=weight[known])))
        return cls(offset, mean, spread if spread > 1e-12 * max(abs(mean), 1e-300) else 1.0)

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        numbers = read_numbers(values, name)
        missing = np.isnan(numbers)
        indices[:] = self.offset + missing
        out[:] = np.where(missing, 1.0, (numbers - self.mean) / self.spread)

    def names(self, name: str) -> list[str]:
        return [name, f"{name} missing"]


@dataclass
class BucketColumn(EncodedColumn):
    """1 in the column of the value's range; the last column is for missing values."""

    offset: int
    edges: Floats

    @classmethod
    def learn(cls, values: pa.Array, name: str, weight: Floats, offset: int, count: int) -> BucketColumn:
        numbers = read_numbers(values, name)
        known = ~np.isnan(numbers)
        return cls(offset, weighted_quantiles(numbers[known], weight[known], count))

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.edges) + 2

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        numbers = read_numbers(values, name)
        indices[:] = self.offset + np.where(np.isnan(numbers), self.size - 1, np.searchsorted(self.edges, numbers))
        out[:] = 1.0

    def names(self, name: str) -> list[str]:
        return [f"{name} <= {edge}" for edge in _told_apart(self.edges)] + [f"{name} above", f"{name} missing"]


@dataclass
class CategoryColumn(EncodedColumn):
    """1 in the column of the value; the last column is for missing values."""

    offset: int
    categories: list[str]

    @classmethod
    def learn(cls, values: pa.Array, offset: int) -> CategoryColumn:
        seen = values.cast(pa.large_string()).unique().to_pylist()
        return cls(offset, sorted(value for value in seen if value is not None))

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.categories) + 1

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        text = read_categories(values, name)
        found = pc.index_in(text, value_set=pa.array(self.categories, pa.large_string()))
        known = np.asarray(found.is_valid())
        missing = np.asarray(text.is_null())
        indices[:] = self.offset + np.where(missing, self.size - 1, np.asarray(found.fill_null(0)))
        out[:] = known | missing

    def names(self, name: str) -> list[str]:
        return [f"{name}={category}" for category in self.categories] + [f"{name} missing"]


@dataclass
class HashedColumn(EncodedColumn):
    """1 in the column to which the value hashes."""

    field: str
    columns: int
    offset: int = 0
    size: int = 0

    def encode(self, values: pa.Array, name: str, indices: SmallInts, out: Floats) -> None:
        start = field_starts([self.field], seed=0)[0]
        indices[:] = self.offset + hash_column(read_categories(values, name), name, start, self.columns)
        out[:] = 1.0

    def names(self, name: str) -> list[str]:
        return []


def _told_apart(edges: Floats) -> list[str]:
    """Numbers as text, with as many digits as it takes to tell them apart."""
    for digits in range(6, 17):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return texts


def read_feature(frame: nw.DataFrame[Any], name: str) -> pa.Array:
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


def is_category(values: pa.Array) -> bool:
    return not _is_number(values.type)


def read_categories(values: pa.Array, name: str) -> pa.Array:
    """A column of categories as text."""
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.large_string())
    if not is_category(values):
        raise ValueError(
            f"feature column {name!r} held categories in training but holds {values.type} now. Convert it to text."
        )
    return values.cast(pa.large_string())


def read_numbers(values: pa.Array, name: str) -> Floats:
    """A column of numbers, NaN where they are missing."""
    if is_category(values) and values.null_count < len(values):
        raise ValueError(
            f"feature column {name!r} held numbers in training but holds {values.type} now. Convert it to numbers."
        )
    numbers = np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan))
    refuse(np.isinf(numbers), name, "{count} infinite", numbers, "Replace them by finite numbers or by missing values.")
    return numbers
