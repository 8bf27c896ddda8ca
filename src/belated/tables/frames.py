"""Tables of any kind (pandas, polars, pyarrow) at the edge of the library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from belated.tables.refusal import refuse
from belated.typing import Bools, Floats


def open_table(frame: Any, what: str, may_be_empty: bool = False) -> nw.DataFrame[Any]:
    """A narwhals view of a table, after the checks that every table has to pass.

    What only stands for a table (a lazy frame, a query, a stream of batches, a dataset) is read first.
    """
    frame = in_memory(frame)
    if nw.dependencies.is_into_dataframe(frame):
        names = column_names(frame)
        unnamed = [name for name in names if not isinstance(name, str)]
        if unnamed:
            raise ValueError(
                f"{what} has columns whose names are no strings, the first of them {unnamed[0]!r}. Rename them."
            )
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{what} has several columns named {', '.join(map(repr, repeated))}. Rename or drop them.")
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise ValueError(f"{what} must be a pandas, polars or pyarrow table, got {type(frame).__name__}.") from None
    if len(table) == 0 and not may_be_empty:
        raise ValueError(f"{what} is empty.")
    return table


def in_memory(frame: Any) -> Any:
    """What stands for a table, read; anything else as it is."""
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all()
    if nw.dependencies.is_polars_lazyframe(frame):
        return frame.collect()
    if nw.dependencies.is_into_dataframe(frame):
        return frame
    if isinstance(frame, ds.Dataset):
        return frame.to_table()
    return pa.table(frame) if hasattr(frame, "__arrow_c_stream__") else frame


def column_names(frame: Any) -> list[Any]:
    """The names as the table has them: pandas allows any object, and the same one twice."""
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def require(table: nw.DataFrame[Any], names: Sequence[str], what: str) -> None:
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise ValueError(
            f"{what} has no column {', '.join(map(repr, absent))}; its columns are {', '.join(map(str, table.columns))}."
        )


def to_arrow(table: nw.DataFrame[Any], name: str) -> pa.Array:
    """One column as an Arrow array, still a dictionary where it was one, and with one kind of text."""
    try:
        column = table.get_column(name).to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, UnicodeEncodeError) as error:
        raise ValueError(
            f"column {name!r} cannot be read: its values are of different or unknown types ({error}). Convert it first."
        ) from None
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # too large for a single chunk
        array = pa.concat_arrays(array.chunks)
    return array.cast(pa.large_string()) if is_text(array.type) else array


def as_text(table: nw.DataFrame[Any], name: str) -> pa.Array:
    """One column as text, missing values by that name; where a value is called so, by ``(missing)``."""
    values = decoded(to_arrow(table, name))
    try:
        text = values.cast(pa.large_string())
    except pa.ArrowNotImplementedError:
        raise ValueError(f"column {name!r} holds {values.type}, and groups are told by plain values.") from None
    if not text.null_count:
        return text
    taken = pc.any(pc.equal(text, "missing")).as_py()
    return text.fill_null("(missing)" if taken else "missing")


def as_numbers(table: nw.DataFrame[Any], name: str, what: str) -> Floats:
    """One column as numbers, NaN where there is none; ``what`` is what they should be."""
    column = decoded(to_arrow(table, name))
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(is_kind(column.type) for is_kind in kinds):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
    if is_text(column.type):
        words = column.to_pylist()
        strange = np.array([word is not None and not _is_number(word) for word in words], dtype=bool)
        if 2 * strange.sum() < len(words):
            advice = "Correct them, or say which words mean a missing value (na=, or --na)."
            refuse(strange, name, "{count} no number", words, advice)
    raise ValueError(f"column {name!r} must hold {what}, got {column.type}.")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def decoded(array: pa.Array) -> pa.Array:
    """A dictionary array as plain values."""
    if not pa.types.is_dictionary(array.type):
        return array
    if is_text(array.type.value_type):
        codes, words = array.indices, array.dictionary.cast(pa.large_string())
        return words.take(codes)
    return array.dictionary_decode()


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def array_as_table(X: Any) -> Any:
    """An array as a table with columns x0, x1, ...; anything else as it is. A table may have missing values."""
    if not isinstance(X, np.ndarray):
        return X
    missing = np.isnan(X)
    return pa.table({f"x{k}": pa.array(X[:, k], mask=missing[:, k]) for k in range(X.shape[1])})


def take_rows(frame: Any, keep: Bools) -> Any:
    """The rows of a native frame (or of a matrix) where ``keep``, as the same kind of frame."""
    if not nw.dependencies.is_into_dataframe(frame):
        return frame[keep]
    table = nw.from_native(frame, eager_only=True)
    if not table.columns:  # a table without columns has no rows to take
        return frame
    return table[np.flatnonzero(keep)].to_native()


def as_categories(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The same table with these columns as text, where they are whole numbers; with missing values those come as floats."""
    for name in names:
        column = table[name]
        if is_text(column.type):  # as text files have them, where others are missing
            column = pc.replace_substring_regex(column, r"^(\d+)\.0$", r"\1")
            table = table.set_column(table.column_names.index(name), name, column)
        if pa.types.is_floating(column.type):
            numbers = np.asarray(column.fill_null(np.nan))
            broken = ~np.isnan(numbers) & (numbers % 1.0 != 0.0)
            refuse(broken, name, "{count} no whole number", numbers, "A category is text or a whole number.")
            column = pa.chunked_array([pa.array(numbers, from_pandas=True).cast(pa.int64())])
        if pa.types.is_integer(column.type):
            table = table.set_column(table.column_names.index(name), name, column.cast(pa.large_string()))
    return table


def without_words(table: nw.DataFrame[Any], words: Sequence[str]) -> nw.DataFrame[Any]:
    """The same table with these words of text as missing values."""
    texts = [name for name, kind in table.schema.items() if kind in (nw.String, nw.Categorical, nw.Enum, nw.Object)]
    if not words or not texts:
        return table
    columns = [nw.col(name).cast(nw.String) if table.schema[name] != nw.String else nw.col(name) for name in texts]
    return table.with_columns(
        nw.when(~column.is_in(list(words))).then(column).otherwise(None).alias(name)
        for name, column in zip(texts, columns, strict=True)
    )


def kinds_of(frame: Any) -> dict[str, str]:
    """Of each column that is text, numbers or booleans, which of them.

    >>> kinds_of(pa.table({"device": ["phone"], "price": [1.5], "new": [True], "none": pa.nulls(1)}))
    {'device': 'text', 'price': 'number', 'new': 'boolean'}
    """
    table, kinds = open_table(frame, "the table"), {}
    for name in table.columns:
        kind = to_arrow(table, name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if is_text(kind):
            kinds[name] = "text"
        elif pa.types.is_boolean(kind):
            kinds[name] = "boolean"
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            kinds[name] = "number"
    return kinds
