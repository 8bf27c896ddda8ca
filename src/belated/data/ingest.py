"""From a large file to hashed fields and times on disk, in batches: memory does not grow with the file.

The result is a folder that :meth:`belated.EventLog.open` reads without loading it: ``indices.npy``, ``fields.json`` (a
:class:`FieldMatrix`), ``arrival.npy`` and ``outcome.npy`` (microseconds) and ``log.json``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.progress import track

from belated.data.times import NEVER, TimeColumn, read_times
from belated.features.field_matrix import FieldMatrix
from belated.tables.frames import require, to_arrow
from belated.tables.refusal import refuse
from belated.typing import SmallInts

_BATCH = 262_144  # rows of Parquet at a time
_HEADER = 128  # bytes; room for the header of any .npy file that is written here


def ingest_parquet(
    path: str | Path,
    out: str | Path,
    *,
    arrival: str,
    outcome: str,
    features: Sequence[str] | None = None,
    n_columns: int = 2**24,
    seed: int = 0,
    progress: bool = True,
) -> None:
    """Read a Parquet file into the folder ``out``, hashing every feature column as a category."""
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    chosen = [name for name in names if name not in (arrival, outcome)] if features is None else list(features)
    require(nw.from_native(file.schema_arrow.empty_table(), eager_only=True), [arrival, outcome, *chosen], str(path))
    texts = [name for name in chosen if pa.types.is_string(file.schema_arrow.field(name).type)]
    file = pq.ParquetFile(path, read_dictionary=texts)
    batches = file.iter_batches(batch_size=_BATCH, columns=[arrival, outcome, *chosen])
    total = -(-file.metadata.num_rows // _BATCH)
    with LogWriter(out, len(chosen), n_columns) as writer:
        for batch in track(batches, f"Reading {Path(path).name}", total=total, disable=not progress):
            table = nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
            fields = FieldMatrix.from_frame(pa.Table.from_batches([batch]).select(chosen), n_columns, seed)
            start, end = (read_times(to_arrow(table, name), name) for name in (arrival, outcome))
            writer.add(fields.indices, start, end, (arrival, outcome))


class LogWriter:
    """Appends rows to the files of a folder, which takes its name only when everything is there."""

    def __init__(self, out: str | Path, n_fields: int, n_columns: int) -> None:
        self.out, self.n_fields, self.n_columns = Path(out), n_fields, n_columns
        self.beside = self.out.with_name(self.out.name + ".partial")
        self.n, self.clock, self.zoned = 0, "", False
        self.latest = -NEVER

    def __enter__(self) -> LogWriter:
        shutil.rmtree(self.beside, ignore_errors=True)
        self.beside.mkdir(parents=True)
        self.files = {name: (self.beside / f"{name}.npy").open("wb") for name in ("indices", "arrival", "outcome")}
        for file in self.files.values():
            file.write(b" " * _HEADER)
        return self

    def add(self, indices: SmallInts, start: TimeColumn, end: TimeColumn, names: tuple[str, str]) -> None:
        missing = ["missing"] * len(start.missing)
        refuse(start.missing, names[0], "{count} missing, and every row must have arrived", missing, "Drop these rows.")
        early = ~end.missing & (end.micros < start.micros)
        refuse(early, names[1], "{count} before the arrival", end.micros / 1e6, "Correct or drop these rows.")
        clocks = {column.clock for column in (start, end)} - {"empty"} | ({self.clock} if self.clock else set())
        if len(clocks) > 1:
            raise ValueError(
                f"columns {names[0]!r} and {names[1]!r} mix {' and '.join(sorted(clocks))}: use one kind of time."
            )
        self.clock, self.zoned, self.n = start.clock, start.zoned, self.n + len(indices)
        outcome = np.where(end.missing, NEVER, end.micros)
        known = end.micros[~end.missing]
        self.latest = max(self.latest, int(start.micros.max()), int(known.max(initial=-NEVER)))
        for name, array in (("indices", indices), ("arrival", start.micros), ("outcome", outcome)):
            np.ascontiguousarray(array).tofile(self.files[name])

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for file in self.files.values():
            file.close()
        if kind is not None or self.n == 0:
            shutil.rmtree(self.beside, ignore_errors=True)
            if kind is None:
                raise ValueError("the file holds no rows.")
            return
        for name, kind_, shape in (
            ("indices", "<i4", (self.n, self.n_fields)),
            ("arrival", "<i8", (self.n,)),
            ("outcome", "<i8", (self.n,)),
        ):
            with (self.beside / f"{name}.npy").open("r+b") as again:
                np.lib.format.write_array_header_1_0(again, {"descr": kind_, "fortran_order": False, "shape": shape})
                assert again.tell() == _HEADER
        (self.beside / "fields.json").write_text(json.dumps({"n_columns": self.n_columns}))
        (self.beside / "log.json").write_text(
            json.dumps({"clock": self.clock, "zoned": self.zoned, "until": self.latest})
        )
        shutil.rmtree(self.out, ignore_errors=True)
        os.replace(self.beside, self.out)
