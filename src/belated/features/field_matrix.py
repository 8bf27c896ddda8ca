"""FieldMatrix: rows of hashed categories, every value 1."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from belated.tables.frames import open_table
from belated.tables.writing import folder_beside
from belated.typing import SmallInts

if TYPE_CHECKING:
    from belated.features.field_encoder import FieldEncoder

FIELD_FILES = {"indices.npy", "fields.json"}


class FieldMatrix:
    """n rows of k fields, each a column out of ``n_columns`` whose value is 1: four bytes an entry.

    Parameters
    ----------
    indices : int32 array of shape (n, k)
    n_columns : int

    Examples
    --------
    >>> fields = FieldMatrix(np.array([[0, 3], [1, 3]], dtype=np.int32), n_columns=4)
    >>> fields
    FieldMatrix(rows=2, fields=2, columns=4)
    >>> fields.to_csr().toarray().tolist()
    [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    """

    def __init__(self, indices: Any, n_columns: int) -> None:
        indices = np.asanyarray(indices)
        if indices.ndim != 2 or indices.dtype.kind not in "iu":
            raise ValueError(
                f"indices must be a matrix of whole numbers, got shape {indices.shape} of {indices.dtype}."
            )
        if not 0 < n_columns <= 2**31 - 1:
            raise ValueError(f"n_columns={n_columns} must be between 1 and 2^31 - 1.")
        if indices.size and not (indices.min() >= 0 and indices.max() < n_columns):
            row, field = np.argwhere((indices < 0) | (indices >= n_columns))[0]
            raise ValueError(
                f"indices must lie between 0 and n_columns={n_columns}; the first that does not is "
                f"{indices[row, field]}, at row {row} of field {field}."
            )
        self.indices: SmallInts = np.ascontiguousarray(indices, dtype=np.int32)
        self.n_columns = int(n_columns)
        self.encoder: FieldEncoder | None = None  # how it was made of a table, where that is known

    @classmethod
    def from_frame(cls, frame: Any, n_columns: int = 2**24, seed: int = 0) -> FieldMatrix:
        """Hash every column of a pandas, polars or pyarrow table; see :mod:`belated.features.hashing` for where a value goes.

        >>> import pyarrow as pa
        >>> table = pa.table({"campaign": ["a", "b", None], "device": [1, 2, 1]})
        >>> FieldMatrix.from_frame(table, n_columns=1000).indices.tolist()
        [[548, 619], [198, 485], [482, 619]]
        """
        from belated.features.field_encoder import FieldEncoder

        table = open_table(frame, "the table")
        return FieldEncoder(table.columns, n_columns=n_columns, seed=seed).transform(table.to_native())

    @classmethod
    def from_batches(cls, batches: Iterable[pa.RecordBatch], n_columns: int = 2**24, seed: int = 0) -> FieldMatrix:
        """The same from Arrow batches, one at a time."""
        parts = [cls.from_frame(batch, n_columns, seed) for batch in batches if len(batch)]
        if not parts:
            raise ValueError("there are no rows in the batches.")
        matrix = cls._trusted(np.concatenate([part.indices for part in parts]), n_columns)
        matrix.encoder = parts[0].encoder
        return matrix

    @classmethod
    def _trusted(cls, indices: SmallInts, n_columns: int) -> FieldMatrix:
        """Without looking at every entry, which would read a memory-mapped file from end to end."""
        matrix = cls.__new__(cls)
        matrix.indices, matrix.n_columns, matrix.encoder = indices, n_columns, None
        return matrix

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indices), self.n_columns

    @property
    def n_fields(self) -> int:
        return int(self.indices.shape[1])

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, rows: Any) -> FieldMatrix:
        """Some of the rows, by slice, mask or numbers."""
        some = FieldMatrix._trusted(np.ascontiguousarray(self.indices[rows]), self.n_columns)
        some.encoder = self.encoder
        return some

    def __repr__(self) -> str:
        return f"FieldMatrix(rows={len(self)}, fields={self.n_fields}, columns={self.n_columns})"

    def to_csr(self) -> sparse.csr_array:
        """The same matrix as CSR; two fields of a row in one column add up to 2 in products, and stay two entries.

        Indices have 32 bits while there are fewer than 2^31 entries: scikit-learn's solvers take no others.
        """
        n, k = self.indices.shape
        indptr = (np.arange(n + 1) * k).astype(np.int32 if n * k < 2**31 else np.int64)
        return sparse.csr_array((np.ones(n * k), self.indices.ravel(), indptr), shape=self.shape)

    def save(self, path: str | Path) -> None:
        """Write to a folder, which appears only when it is whole. It must be new, empty, or hold a saved matrix alone."""
        with folder_beside(path, FIELD_FILES) as folder:
            np.save(folder / "indices.npy", self.indices)
            about = {"n_columns": self.n_columns} if self.encoder is None else self.encoder.as_plain_data()
            (folder / "fields.json").write_text(json.dumps(about))

    @classmethod
    def open(cls, path: str | Path) -> FieldMatrix:
        """Open a saved matrix without loading it: pages are read when they are used."""
        from belated.features.field_encoder import FieldEncoder

        path = Path(path)
        try:
            about = json.loads((path / "fields.json").read_text())
            matrix = cls._trusted(np.load(path / "indices.npy", mmap_mode="r"), about["n_columns"])
            matrix.encoder = FieldEncoder(**about) if "columns" in about else None
            return matrix
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} holds no FieldMatrix ({error}). Write one with FieldMatrix.save.") from None
