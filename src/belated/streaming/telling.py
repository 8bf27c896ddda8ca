"""Events as a caller tells them: keys, times and features, checked, before a stream takes any of them in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from belated.data.times import TimeFormat, parse_instant, read_times
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FieldMatrix
from belated.features.hashing import field_starts, hash_column
from belated.tables.refusal import refuse
from belated.typing import Ints

_LARGEST = 1e15  # of a number: squares of larger ones would not fit into what is summed up
_STARTS = field_starts(["key", "and again"], 0)


@dataclass(frozen=True)
class HowTold:
    """How times were told: on which clock, with a zone or without, and where they are numbers in which unit."""

    clock: str
    zoned: bool
    unit: str | None


@dataclass(frozen=True)
class Told:
    """Times in microseconds, and how they were told."""

    micros: Ints
    how: HowTold


@dataclass(frozen=True)
class Rows:
    """Features as an array; of a FieldMatrix, how many columns it has and how it was made."""

    values: Any
    n_columns: int | None
    encoder: FieldEncoder | None

    def require_like(self, values: Any, n_columns: int | None) -> None:
        """Refuse features that are of another kind than those before."""
        if (self.n_columns, self.values.shape[1:]) != (n_columns, values.shape[1:]):
            raise ValueError(
                f"X is {kind_of_rows(self.n_columns)} with {self.values.shape[1]} features, and was {kind_of_rows(n_columns)} with "
                f"{values.shape[1]} before."
            )


def kind_of_rows(n_columns: int | None) -> str:
    """Features in words; None: numbers."""
    return "numbers" if n_columns is None else f"a FieldMatrix of {n_columns} columns"


def read_keys(keys: Any) -> Ints:
    """Keys as numbers of 62 bits: the same for a whole number and for its text."""
    if isinstance(keys, str | bytes) or np.ndim(keys) != 1:
        raise ValueError("keys must be a list, or a column, of one key for each row.")
    try:
        column = keys if isinstance(keys, pa.Array | pa.ChunkedArray) else pa.array(keys, from_pandas=True)
    except (pa.ArrowException, TypeError):
        raise ValueError("keys must be all whole numbers, or all text.") from None
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.cast(pa.large_string()) if pa.types.is_uint64(column.type) else column
    missing = np.asarray(column.is_null())
    refuse(missing, "keys", "{count} missing", ["missing"] * len(missing), "Every event needs the key of its row.")
    high, low = (hash_column(column, "key", start, 2**31 - 1).astype(np.int64) for start in _STARTS)
    return (high << 31) | low


def read_told(times: Any, known: HowTold | None) -> Told:
    """Times, read as those before were; one batch alone may look like something else."""
    if isinstance(times, str) or np.ndim(times) != 1:
        raise ValueError("times must be a list, or a column, of one time for each row.")
    array = np.asarray(times)
    unit = known.unit if known is not None and array.dtype.kind in "iuf" else None
    column = read_times(pa.array(array if array.dtype.kind in "iufM" else times), "times", TimeFormat(unit=unit))
    refuse(column.missing, "times", "{count} missing", ["missing"] * len(array), "Every event needs its time.")
    how = HowTold(column.clock, column.zoned, "s" if column.clock != "datetime" else column.unit)
    if known is None:
        return Told(column.micros, how)
    if {how.clock, known.clock} == {"seconds", "epoch"}:
        how = replace(how, clock=known.clock)
    if how.clock != known.clock:
        raise ValueError(f"times: this stream's clock is {known.clock!r}, and these times are {how.clock!r}.")
    if how.clock == "datetime" and how.zoned != known.zoned:
        which = (
            "these have a zone and those before had none"
            if how.zoned
            else "those before had a zone and these have none"
        )
        raise ValueError(f"times: {which}, so they may be hours apart. Write all of them in the same way.")
    return Told(column.micros, how)


def read_instant(value: Any, known: HowTold | None) -> int:
    """One instant, on the clock of the times so far."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    clock = known.clock if known is not None else "seconds" if is_number else "datetime"
    return parse_instant(value, "to", clock)


def read_rows(X: Any, encoder: FieldEncoder | None) -> Rows:
    """Features: a FieldMatrix, numbers, or a table, which is hashed as those before were."""
    if nw.dependencies.is_into_dataframe(X):
        X = FieldMatrix.from_frame(X) if encoder is None else encoder.transform(X)
    if isinstance(X, FieldMatrix):
        return Rows(X.indices, X.n_columns, X.encoder)
    values = np.asarray(X, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"X must be a FieldMatrix or a matrix of numbers, got shape {values.shape}.")
    wrong = np.asarray(~(np.abs(values) < _LARGEST).all(axis=1))
    what = f"{{count}} not finite, or beyond {_LARGEST:g}"
    refuse(wrong, "X", what, values, "Fill these in, or use another unit.")
    return Rows(values, None, None)
