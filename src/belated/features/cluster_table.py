"""ClusterTable: a table whose rows are on a cluster, and how its encoding is learned there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from belated.cluster.base import Part, Reduced
from belated.cluster.sharded import Sharded, add_up, by_rows, here
from belated.features.codes import CodeEncoder, weights_of_categories
from belated.features.column_encodings import (
    BucketColumn,
    CategoryColumn,
    EncodedColumn,
    HashedColumn,
    NumberColumn,
    is_category,
    read_feature,
    read_numbers,
)
from belated.features.encoder import TableEncoder
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FieldMatrix
from belated.features.quantiles import weighted_quantiles
from belated.tables.frames import decoded, kinds_of, open_table, take_rows, to_arrow
from belated.tables.missing import EMPTY_TEXT, missing_words, words_of


class ClusterTable:
    """Rows of features on a cluster: of tables with these columns, or of hashed fields; ``table["name"]`` is a column of numbers.

    ``rows`` stands for the table or FieldMatrix of each partition.
    """

    def __init__(self, rows: Sharded, columns: list[str], encoder: FieldEncoder | None = None) -> None:
        self.rows = rows
        self.columns = columns
        self.encoder = encoder  # of hashed fields: how they were made

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, keep: Any) -> ClusterTable:
        if isinstance(keep, str):
            return self._column(keep)
        if isinstance(keep, list):  # columns, as of a table
            return ClusterTable(by_rows(_columns, self.rows, keep), keep)
        return ClusterTable(by_rows(take_rows, self.rows, keep), self.columns, self.encoder)

    def _column(self, name: str) -> Any:
        """A column of numbers, as an array."""
        if self.hashed or name not in self.columns:
            listed = (
                "a log of hashed fields has no named columns" if self.hashed else f"it has {', '.join(self.columns)}"
            )
            raise ValueError(f"no column {name!r}: {listed}.")
        return by_rows(_numbers_of, self.rows, name)

    def kinds(self) -> dict[str, str]:
        """Of each column that is text, numbers or booleans, which of them."""
        if self.encoder is not None:
            return self.encoder.kinds
        return dict(sorted(add_up(_kinds, self.rows), reverse=True))

    @property
    def hashed(self) -> bool:
        return self.encoder is not None

    def kept(self) -> ClusterTable:
        """The same, with its rows made once."""
        return ClusterTable(self.rows.kept(), self.columns, self.encoder)


def collect_table(table: ClusterTable) -> Any:
    """The rows, brought here: as an Arrow table, or as hashed fields."""
    found = table.rows.cluster.total(_rows_on, table.rows)
    parts = [rows for _, rows in sorted(found, key=lambda pair: pair[0]) if len(rows)]
    if isinstance(parts[0], FieldMatrix):
        whole = FieldMatrix(np.concatenate([part.indices for part in parts]), parts[0].n_columns)
        whole.encoder = table.encoder
        return whole
    return pa.concat_tables(parts, promote_options="permissive")


def learn_encoder(encoder: TableEncoder, table: ClusterTable, weight: Any) -> TableEncoder:
    """Fit an encoder as if all rows were here."""
    encoder._check()
    words = [*EMPTY_TEXT, *words_of(encoder.na)]
    kinds, values = add_up(_seen, table.rows, table.columns, words, encoder.max_categories)
    columns: dict[str, EncodedColumn] = {}
    offset = 0
    for name, kind, seen in zip(table.columns, kinds, values, strict=True):
        column: EncodedColumn
        if "number" not in kind:
            many = len(seen) > encoder.max_categories
            column = HashedColumn(name, encoder.hash_columns) if many else CategoryColumn(offset, sorted(seen))
        else:
            numbers = by_rows(_numbers, table.rows, name, words)
            known = ~np.isnan(numbers)
            column = _of_numbers(encoder, numbers[known], weight[known], offset)
        columns[name] = column
        offset += column.size
    encoder._set_columns(columns, offset)
    return encoder


def learn_codes(encoder: CodeEncoder, table: ClusterTable, weight: Any) -> CodeEncoder:
    """The same of the order of categories."""
    words = [*EMPTY_TEXT, *words_of(encoder.na)]
    found: Reduced = add_up(_weights_of_categories, table.rows, weight, words)
    encoder.set_weights(found.value)
    return encoder


_BUCKETS = 10  # as many as ingest_parquet makes by default


def hashed(table: ClusterTable, n_columns: int, na: Any) -> ClusterTable:
    """Every column as a hashed field; those that hold fractions are numbers, told apart by the range in which they lie."""
    words = [*EMPTY_TEXT, *words_of(na)]
    kinds, _ = add_up(_seen, table.rows, table.columns, words, 0)
    edges = {}
    for name, kind in zip(table.columns, kinds, strict=True):
        if "number" in kind:
            numbers = by_rows(_numbers, table.rows, name, words)
            known = numbers[~np.isnan(numbers)]
            if (known % 1.0 != 0.0).any():
                edges[name] = weighted_quantiles(known, np.ones_like(known), _BUCKETS)
    encoder = FieldEncoder(table.columns, edges, n_columns, na=na)
    return ClusterTable(by_rows(_fields, table.rows, encoder), table.columns, encoder).kept()


def _of_numbers(encoder: TableEncoder, numbers: Any, weight: Any, offset: int) -> EncodedColumn:
    if encoder.numbers == "buckets":
        return BucketColumn(offset, weighted_quantiles(numbers, weight, encoder.buckets))
    total = float(weight.sum())
    if not total > 0:
        return NumberColumn(offset, 0.0, 1.0)
    mean = float((weight * numbers).sum()) / total
    spread = float(np.sqrt((weight * (numbers - mean) ** 2).sum() / total))
    return NumberColumn(offset, mean, spread if spread > 1e-12 * max(abs(mean), 1e-300) else 1.0)


# On a worker.


def _rows_on(part: Part, rows: Any) -> list[Any]:
    found = here(rows, part)
    if not isinstance(found, FieldMatrix):
        frame = open_table(found, "the table", may_be_empty=True)
        found = pa.table({name: _as_here(to_arrow(frame, name)) for name in frame.columns})
    return [(part.index, found)]


def _kinds(table: Any) -> set[tuple[str, str]]:
    return set(kinds_of(table).items()) if len(table) else set()


def _as_here(column: Any) -> Any:
    """Of categories their text, also where they are written as numbers."""
    plain = decoded(column)
    return plain.cast(pa.large_string()) if pa.types.is_dictionary(column.type) else plain


def _seen(table: Any, columns: list[str], words: list[str], most: int) -> tuple[Any, Any]:
    """What each column holds, and its categories, or as many as it takes to see that they are too many."""
    frame = open_table(table, "the table", may_be_empty=True)
    kinds: list[set[str]] = []
    values: list[set[str]] = []
    for name in columns:
        column = missing_words(read_feature(frame, name), words)
        if not len(column) or column.null_count == len(column):
            kinds.append(set())
            values.append(set())
        elif is_category(column):
            distinct = CategoryColumn.learn(column, 0).categories
            kinds.append({"category"})
            values.append(set(distinct[: most + 1]))
        else:
            kinds.append({"number"})
            values.append(set())
    return tuple(kinds), tuple(values)


def _weights_of_categories(X: Any, weight: Any, words: list[str]) -> Reduced | None:
    return Reduced(_merged, weights_of_categories(X, weight, words)) if len(X) else None


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Weights of categories by column; a column that holds numbers somewhere is one of numbers."""
    merged: dict[str, Any] = {}
    for name, mine in one.items():
        theirs = other[name]
        if mine is None or theirs is None:
            merged[name] = None
            continue
        merged[name] = dict(mine)
        for value, weight in theirs.items():
            merged[name][value] = merged[name].get(value, 0.0) + weight
    return merged


def _numbers(table: Any, name: str, words: list[str]) -> Any:
    frame = open_table(table, "the table", may_be_empty=True)
    return read_numbers(missing_words(read_feature(frame, name), words), name)


def _numbers_of(table: Any, name: str) -> Any:
    """The same of a column that may hold anything."""
    column = missing_words(read_feature(open_table(table, "the table", may_be_empty=True), name), EMPTY_TEXT)
    if is_category(column) and column.null_count < len(column):
        raise ValueError(f"column {name!r} holds {column.type}, and no numbers.")
    return read_numbers(column, name)


def _fields(table: Any, encoder: FieldEncoder) -> Any:
    if len(table):
        return encoder.transform(table)
    return FieldMatrix(np.zeros((0, len(encoder.columns)), dtype=np.int32), encoder.n_columns)


def _columns(table: Any, names: list[str]) -> Any:
    return open_table(table, "the table", may_be_empty=True).select(names).to_native()
