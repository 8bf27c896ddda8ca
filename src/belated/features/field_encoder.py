"""FieldEncoder: from a table to hashed fields, the same for every batch of rows and for rows to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from belated.features.column_encodings import read_numbers
from belated.features.field_matrix import FieldMatrix
from belated.features.hashing import field_starts, hash_column
from belated.tables.frames import open_table, require, to_arrow
from belated.tables.missing import EMPTY_TEXT, missing_words, words_of
from belated.typing import Floats


class FieldEncoder:
    """Which columns of a table become fields, and how: categories as they are, numbers by the range in which they lie.

    Parameters
    ----------
    columns : sequence of str
    edges : mapping of str to array, optional
        Of columns of numbers, where each range ends and the next begins.
    n_columns : int
        Columns that all fields share; :mod:`belated.features.hashing` says where a value goes.
    seed : int
    na : sequence of str, optional
        Words of text that are missing, beside empty text. By default no text is, not even that.

    Examples
    --------
    >>> encoder = FieldEncoder(["campaign", "price"], {"price": np.array([5.0, 9.5])}, n_columns=1000)
    >>> encoder.transform(pa.table({"price": [4.5, 7.25, 8.0], "campaign": ["a", "b", "b"]})).indices.tolist()
    [[548, 294], [198, 54], [198, 54]]
    """

    def __init__(
        self,
        columns: Sequence[str],
        edges: dict[str, Floats] | None = None,
        n_columns: int = 2**24,
        seed: int = 0,
        na: Sequence[str] | None = None,
    ) -> None:
        self.columns = list(columns)
        self.edges = {name: np.asarray(line, dtype=np.float64) for name, line in (edges or {}).items()}
        self.n_columns = n_columns
        self.seed = seed
        self.na = None if na is None else words_of(na)

    @property
    def kinds(self) -> dict[str, str]:
        """Of each column, whether it is taken for text or for numbers."""
        return {name: "number" if name in self.edges else "text" for name in self.columns}

    def transform(self, frame: Any) -> FieldMatrix:
        """Hash a pandas, polars or pyarrow table that has these columns; others are ignored."""
        table = open_table(frame, "the table")
        require(table, self.columns, "the table")
        starts = field_starts(self.columns, self.seed)
        indices = np.empty((len(table), len(self.columns)), dtype=np.int32)
        for j, name in enumerate(self.columns):
            values = to_arrow(table, name)
            if self.na is not None:
                values = missing_words(values, [*EMPTY_TEXT, *self.na])
            if name in self.edges:
                numbers = read_numbers(values, name)
                missing = np.isnan(numbers)
                values = pa.array(np.searchsorted(self.edges[name], numbers), mask=missing)
            indices[:, j] = hash_column(values, name, starts[j], self.n_columns)
        matrix = FieldMatrix._trusted(indices, self.n_columns)
        matrix.encoder = self
        return matrix

    def as_plain_data(self) -> dict[str, Any]:
        edges = {name: line.tolist() for name, line in self.edges.items()}
        na = None if self.na is None else list(self.na)
        return {"columns": self.columns, "edges": edges, "n_columns": self.n_columns, "seed": self.seed, "na": na}
