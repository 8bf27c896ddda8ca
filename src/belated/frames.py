"""Tables of any kind (pandas, polars, pyarrow) at the edge of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def open_table(frame: Any, what: str, may_be_empty: bool = False) -> nw.DataFrame[Any]:
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(
            f"{what} must be a pandas, polars or pyarrow table, got {type(frame).__name__}. Collect a lazy frame first."
        ) from None
    if len(table) == 0 and not may_be_empty:
        raise ValueError(f"{what} is empty.")
    return table


def require(table: nw.DataFrame[Any], names: Sequence[str], what: str) -> None:
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise ValueError(
            f"{what} has no column {', '.join(map(repr, absent))}; its columns are {', '.join(map(str, table.columns))}."
        )


def to_arrow(table: nw.DataFrame[Any], name: str) -> pa.Array:
    """One column as Arrow, with a clear error where a pandas object column mixes types."""
    try:
        column = table.get_column(name).to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ValueError(
            f"column {name!r} holds values of different types ({error}). Convert it to one type first."
        ) from None
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def take_rows(frame: Any, keep: NDArray[np.bool_]) -> Any:
    """The rows of a native frame where ``keep``, as the same kind of frame."""
    table = nw.from_native(frame, eager_only=True)
    if not table.columns:  # a table without columns has no rows to take
        return frame
    return table[np.flatnonzero(keep)].to_native()
