"""From a large file to hashed fields and times on disk, in batches: memory does not grow with the file.

The result is a folder that :meth:`belated.EventLog.open` reads without loading it: ``indices.npy``, ``fields.json`` (a
:class:`FieldMatrix`), ``arrival.npy`` and ``outcome.npy`` (microseconds) and ``log.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from belated.data.log_columns import check_clocks
from belated.data.times import NEVER, TimeColumn, read_times
from belated.features.column_encodings import read_numbers
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FIELD_FILES
from belated.features.quantiles import weighted_quantiles
from belated.notices import progress_bar
from belated.tables.frames import require, to_arrow
from belated.tables.refusal import refuse
from belated.tables.writing import folder_beside
from belated.typing import Floats, SmallInts

_BATCH = 262_144  # rows of Parquet at a time
_SAMPLE = 1_000_000  # values of which quantiles are taken
_LOG_FILES = {"arrival.npy", "outcome.npy", "log.json"}
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
    numbers: Sequence[str] = (),
    buckets: int = 10,
    na: Sequence[str] = (),
) -> None:
    """Read a Parquet file into the folder ``out``, hashing every feature column as a category.

    Columns that hold fractions are numbers, and so are those that ``numbers`` names. They are put into ``buckets`` ranges
    between quantiles first, which a pass of their own over (at most a million of) their values finds. The folder keeps the
    ranges, and so does a classifier: rows to come are encoded in the same way. Other whole numbers are categories. Empty text is missing, and so are the
    words of ``na``.

    The folder must be new, empty, or hold an ingested log alone, which is replaced when the new one is whole.

    Parameters
    ----------
    path : path
        The Parquet file.
    out : path
        The folder to write; :meth:`belated.EventLog.open` reads it.
    arrival, outcome : str
        Columns of times.
    features : sequence of str, optional
        By default all other columns.
    n_columns : int
        Into how many columns values are hashed.
    seed : int
        Of the hash.
    progress : bool
        Show a progress bar, where somebody looks.
    numbers : sequence of str
        Whole numbers that are quantities.
    buckets : int
        How many ranges numbers are put into.
    na : sequence of str
        Words that mean a missing value, beside empty text.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> from belated import EventLog, ingest_parquet
    >>> from belated.datasets import simulate_clicks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(simulate_clicks(30, 200), f"{folder}/clicks.parquet")
    ...     names = {"arrival": "click_time", "outcome": "conversion_time"}
    ...     done = ingest_parquet(f"{folder}/clicks.parquet", f"{folder}/clicks.log", **names, progress=False)
    ...     print(EventLog.open(f"{folder}/clicks.log").snapshot("2024-01-24", horizon="7d").X)
    FieldMatrix(rows=4576, fields=4, columns=16777216)
    """
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    chosen = [name for name in names if name not in (arrival, outcome)] if features is None else list(features)
    require(nw.from_native(file.schema_arrow.empty_table(), eager_only=True), [arrival, outcome, *chosen], str(path))
    texts = [name for name in chosen if pa.types.is_string(file.schema_arrow.field(name).type)]
    file = pq.ParquetFile(path, read_dictionary=texts)
    batches = file.iter_batches(batch_size=_BATCH, columns=[arrival, outcome, *chosen])
    total = -(-file.metadata.num_rows // _BATCH)
    encoder = FieldEncoder(chosen, _edges(file, chosen, numbers, buckets), n_columns, seed, na)
    with (
        LogWriter(out, len(chosen), encoder.as_plain_data()) as writer,
        progress_bar(f"Reading {Path(path).name}", total, progress) as advance,
    ):
        for done, batch in enumerate(_ahead(batches), start=1):
            table = nw.from_native(pa.Table.from_batches([batch]), eager_only=True)
            fields = encoder.transform(table.to_native())
            start, end = (read_times(to_arrow(table, name), name) for name in (arrival, outcome))
            writer.add(fields.indices, start, end, (arrival, outcome))
            advance(done)


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, each read while the one before is being hashed."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch


def _edges(file: pq.ParquetFile, features: list[str], numbers: Sequence[str], buckets: int) -> dict[str, Floats]:
    """Quantiles of the columns that are numbers, between which their values are told apart."""
    unknown = [name for name in numbers if name not in features]
    if unknown:
        raise ValueError(f"numbers names {', '.join(map(repr, unknown))}, which is no feature.")
    if buckets < 2:
        raise ValueError(f"buckets={buckets!r} must be at least 2.")
    kinds = {name: file.schema_arrow.field(name).type for name in features}
    wrong = [name for name in numbers if not (pa.types.is_integer(kinds[name]) or pa.types.is_floating(kinds[name]))]
    if wrong:
        raise ValueError(f"numbers names {wrong[0]!r}, which holds {kinds[wrong[0]]}.")
    maybe = [n for n in features if n in numbers or pa.types.is_floating(kinds[n]) or pa.types.is_decimal(kinds[n])]
    if not maybe:
        return {}
    step = -(-file.metadata.num_rows // _SAMPLE)
    sample: dict[str, list[Floats]] = {name: [] for name in maybe}
    found, first = set(numbers), 0
    for batch in file.iter_batches(batch_size=_BATCH, columns=maybe):
        for name in maybe:
            values = read_numbers(batch.column(name), name)
            if name not in found and (values[~np.isnan(values)] % 1.0 != 0.0).any():
                found.add(name)
            values = values[-first % step :: step]
            sample[name].append(values[~np.isnan(values)])
        first += len(batch)
    every = {name: np.concatenate(parts) for name, parts in sample.items() if name in found}
    return {name: weighted_quantiles(line, np.ones(len(line)), buckets) for name, line in every.items()}


class LogWriter:
    """Appends rows to the files of a folder, which takes its name only when everything is there."""

    def __init__(self, out: str | Path, n_fields: int, about: dict[str, Any]) -> None:
        self.out, self.n_fields, self.about = Path(out), n_fields, about
        self.folder = folder_beside(self.out, {*FIELD_FILES, *_LOG_FILES})
        self.n, self.clock, self.zoned = 0, "", False
        self.latest = -NEVER

    def __enter__(self) -> LogWriter:
        self.beside = self.folder.__enter__()
        self.files = {name: (self.beside / f"{name}.npy").open("wb") for name in ("indices", "arrival", "outcome")}
        for file in self.files.values():
            file.write(b" " * _HEADER)
        return self

    def add(self, indices: SmallInts, start: TimeColumn, end: TimeColumn, names: tuple[str, str]) -> None:
        missing = ["missing"] * len(start.missing)
        refuse(start.missing, names[0], "{count} missing, and every row must have arrived", missing, "Drop these rows.")
        early = ~end.missing & (end.micros < start.micros)
        refuse(early, names[1], "{count} before the arrival", end.micros / 1e6, "Correct or drop these rows.")
        check_clocks(start, names[0], end, names[1])
        if self.n and (start.clock, start.zoned) != (self.clock, self.zoned):
            raise ValueError(
                f"column {names[0]!r} changes its kind after {self.n} rows, from {_kind(self.clock, self.zoned)} to "
                f"{_kind(start.clock, start.zoned)}: use one kind of time throughout."
            )
        self.clock, self.zoned, self.n = start.clock, start.zoned, self.n + len(indices)
        outcome = np.where(end.missing, NEVER, end.micros)
        known = end.micros[~end.missing]
        self.latest = max(self.latest, int(start.micros.max()), int(known.max(initial=-NEVER)))
        for name, array in (("indices", indices), ("arrival", start.micros), ("outcome", outcome)):
            np.ascontiguousarray(array).tofile(self.files[name])

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            for file in self.files.values():
                file.close()
            if kind is None:
                self._finish()
        except BaseException as late:
            self.folder.__exit__(type(late), late, late.__traceback__)
            raise
        self.folder.__exit__(kind, error, trace)

    def _finish(self) -> None:
        if self.n == 0:
            raise ValueError("the file holds no rows.")
        for name, kind, shape in (
            ("indices", "<i4", (self.n, self.n_fields)),
            ("arrival", "<i8", (self.n,)),
            ("outcome", "<i8", (self.n,)),
        ):
            with (self.beside / f"{name}.npy").open("r+b") as again:
                np.lib.format.write_array_header_1_0(again, {"descr": kind, "fortran_order": False, "shape": shape})
                assert again.tell() == _HEADER
        (self.beside / "fields.json").write_text(json.dumps(self.about))
        (self.beside / "log.json").write_text(
            json.dumps({"clock": self.clock, "zoned": self.zoned, "until": self.latest})
        )


def _kind(clock: str, zoned: bool) -> str:
    return clock if clock != "datetime" else f"datetime {'with' if zoned else 'without'} a zone"
