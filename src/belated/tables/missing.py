"""Which values count as missing: one rule for files of every kind and for tables in memory.

A value is missing where the table says so, and where it is empty text. Other words are values: the country code of Namibia
is ``NA``. Whoever uses a word for nothing says which (``--na NA``). Only in columns of numbers and of times, where they can
mean nothing else, are the usual words for nothing missing without being named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from belated.tables.frames import is_text

EMPTY_TEXT = ("",)
WORDS_FOR_NOTHING = (
    "",
    "NA",
    "N/A",
    "n/a",
    "<NA>",
    "NaN",
    "nan",
    "NULL",
    "Null",
    "null",
    "None",
    "none",
    "NaT",
    "nat",
    "\\N",
)


NEVER_DATES = ("0000-00-00", "0000-00-00 00:00:00")


_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def mark_missing(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """The table with empty text, and these words, as missing values; a word that is a number also where it is a number.

    >>> mark_missing(pa.table({"country": ["NA", "", "NL"], "age": [1, None, 3]}), ["NL"]).to_pydict()
    {'country': ['NA', None, None], 'age': [1, None, 3]}
    """
    numbers = [float(word) for word in words if _NUMBER.fullmatch(word)]
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        marked = missing_words(column, [*EMPTY_TEXT, *words])
        if numbers and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            found = pc.is_in(column.cast(pa.float64(), safe=False), value_set=pa.array(numbers))
            marked = pc.if_else(found, pa.scalar(None, column.type), column)
        if marked is not column:
            table = table.set_column(place, name, marked)
    return table


def missing_words(column: pa.Array | pa.ChunkedArray, words: Sequence[str]) -> pa.Array | pa.ChunkedArray:
    """A column of text with these words as missing values; any other column as it is."""
    kind = column.type
    text = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not is_text(text) or not words:
        return column
    values = column.cast(pa.large_string()) if pa.types.is_dictionary(kind) else column
    found = pc.is_in(values, value_set=pa.array(words, values.type))
    return pc.if_else(found, pa.scalar(None, values.type), values) if pc.any(found).as_py() else column


def words_of(na: Sequence[str] | str) -> tuple[str, ...]:
    """Words for missing values, as an argument gives them."""
    if isinstance(na, str) or not all(isinstance(word, str) for word in na):
        raise ValueError(f"na={na!r} must be a list of words, such as ['NA', 'null'].")
    return tuple(dict.fromkeys(na))
