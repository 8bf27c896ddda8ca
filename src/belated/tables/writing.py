"""Files and folders that appear only when they are whole: written beside, then renamed."""

from __future__ import annotations

import glob
import io
import json
import math
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from belated.tables.files import DELIMITERS, is_compressed, kind_of_file, known_suffixes

_STREAM = re.compile(r"/dev/(stdin|stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]+)")


def check_writable_kind(path: Path) -> str:
    kind = kind_of_file(path)
    if not kind or is_compressed(path):
        rest = "; compress it afterwards" if is_compressed(path) else ""
        raise ValueError(f"{path.name}: its name must end in {known_suffixes()}{rest}.")
    return kind


def write_table(table: pa.Table, path: str | Path, kind: str | None = None, delimiter: str | None = None) -> None:
    """Write Parquet, Arrow, text or JSON lines by the file's name; the name appears only when all is written."""
    kind = kind or check_writable_kind(Path(path))

    def write(file: IO[bytes]) -> None:
        if kind == ".parquet":
            pq.write_table(table, file)
        elif kind == ".arrow":
            feather.write_feather(table, file)
        elif kind == ".jsonl":
            for batch in table.to_batches():
                file.writelines((json.dumps(_plain(row), default=str) + "\n").encode() for row in batch.to_pylist())
        else:
            pcsv.write_csv(table, file, pcsv.WriteOptions(delimiter=delimiter or DELIMITERS[kind]))

    nested = [f.name for f in table.schema if pa.types.is_nested(f.type)]
    if nested and kind in DELIMITERS:
        raise ValueError(
            f"column {nested[0]!r} holds lists or records, which text cannot. Write Parquet, Arrow or JSON lines."
        )
    write_beside(path, write)


def write_text(path: str | Path, text: str) -> None:
    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_beside(path, write)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no word for what is no number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def write_beside(path: str | Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Let ``write`` fill a file beside ``path``, and give it the name when it is whole.

    What is no plain file (a device, a pipe, ``/dev/stdout``) is written to and stays what it is; a link stays a link.
    """
    path = Path(path)
    if is_plain(path):
        with beside(path) as partial, partial.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())  # a name must not appear before what it names, also where power fails
        return
    whole = io.BytesIO()
    write(whole)
    with _named(path), _open_special(path) as file:
        file.write(whole.getbuffer())


def is_plain(path: Path) -> bool:
    """Whether a file may be replaced by another of its name: it is a plain one, or not there yet."""
    return not _STREAM.fullmatch(str(path)) and (not path.exists() or path.is_file())


def _open_special(path: Path) -> IO[bytes]:
    stream = _STREAM.fullmatch(str(path))
    if stream is None:
        return path.open("wb")
    # Opened by name, a stream that goes to a file would be cut to nothing and begin anew.
    number = {"stdin": 0, "stdout": 1, "stderr": 2}.get(stream[1]) if stream[1] else int(stream[2])
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fdopen(os.dup(number), "wb")  # type: ignore[arg-type]


@contextmanager
def beside(path: str | Path) -> Iterator[Path]:
    """A name for a file beside ``path``, which takes its place at the end; nothing is left where something fails."""
    path = Path(path)
    if not path.parent.exists():
        raise ValueError(f"{path}: there is no folder {path.parent}.")
    place = Path(os.path.realpath(path))
    _remove_litter(place)
    partial = _name_beside(place)
    try:
        with _named(path):
            yield partial
            os.replace(partial, place)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_beside(path: str | Path, own: Collection[str]) -> Iterator[Path]:
    """A folder beside ``path`` to fill, which takes its place at the end.

    ``path`` must be new, empty, or hold nothing but files named ``own``: what an earlier call wrote.
    """
    path = Path(path)
    place = Path(os.path.realpath(path))
    _check_folder(path, own)
    partial = _name_beside(place)
    try:
        with _named(path):
            partial.mkdir(parents=True)
            yield partial
            _check_folder(path, own)
            former = _name_beside(place)
            if place.exists():
                os.replace(place, former)
            try:
                os.replace(partial, place)
            except OSError:
                if former.exists():
                    os.replace(former, place)
                raise
            shutil.rmtree(former, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check_folder(path: Path, own: Collection[str]) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path}: is a file; name a folder.")
    others = (
        sorted(file.name for file in path.iterdir() if file.name not in own or not file.is_file())
        if path.exists()
        else []
    )
    if others:
        raise ValueError(
            f"{path}: holds {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}, which would be lost. Name a new folder, or an "
            f"empty one."
        )


def _name_beside(path: Path) -> Path:
    """A name that no other process or thread takes."""
    return path.with_name(f".{path.name[:100]}.{os.getpid()}-{uuid.uuid4().hex[:12]}.partial")


def _remove_litter(path: Path) -> None:
    """Remove what processes that were killed left beside a file while they wrote it."""
    for partial in path.parent.glob(f".{glob.escape(path.name[:100])}.*.partial"):
        process = partial.name.removesuffix(".partial").rpartition(".")[2].partition("-")[0]
        if process.isdigit() and partial.is_file() and not _is_running(int(process)):
            partial.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say which file could not be written: a full disk does not."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(error.errno, f"{path}: could not be written ({why}). Nothing was left behind") from error
