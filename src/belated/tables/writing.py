"""Files that appear only when they are whole: written beside, then renamed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from belated.tables.files import DELIMITERS, PARQUET, kind_of_file


def check_writable_kind(path: Path) -> str:
    kind = kind_of_file(path)
    if not kind or path.suffix == ".gz":
        raise ValueError(f"{path.name}: its name must end in {', '.join([*sorted(PARQUET), *sorted(DELIMITERS)])}.")
    return kind


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write Parquet, CSV or TSV by the file's name; the name appears only when all is written."""
    kind = check_writable_kind(Path(path))

    def write(file: IO[bytes]) -> None:
        if kind == ".parquet":
            pq.write_table(table, file)
        else:
            pcsv.write_csv(table, file, pcsv.WriteOptions(delimiter=DELIMITERS[kind]))

    write_beside(path, write)


def write_beside(path: str | Path, write: Callable[[IO[bytes]], None]) -> None:
    """Let ``write`` fill a file beside ``path``, and give it the name when it is whole."""
    with beside(path) as partial, partial.open("wb") as file:
        write(file)


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    path = Path(path)
    if not path.parent.exists():
        raise ValueError(f"{path}: there is no folder {path.parent}.")
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
