"""Files: which ones a name means, of what kind they are, and what is in them where they are compressed.

A name is that of a file, of a folder (with all files in it, also in folders such as ``day=2024-03-01``), or a pattern such as
``clicks-*.csv``.
"""

from __future__ import annotations

import glob
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

import pyarrow as pa

from belated.notices import warn

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
_SUFFIXES = {".pq": ".parquet", ".parquet": ".parquet", ".arrow": ".arrow", ".feather": ".arrow", ".ipc": ".arrow"}
_SUFFIXES |= {".jsonl": ".jsonl", ".ndjson": ".jsonl", ".json": ".jsonl"} | {name: name for name in DELIMITERS}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """A file, its kind (``".parquet"``, ``".arrow"``, ``".jsonl"`` or that of a text file), and what its folders say of its rows."""

    path: Path
    kind: str
    of_folders: dict[str, str | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.path.name


def find_files(names: Sequence[str | Path], any_text: bool = False) -> list[DataFile]:
    """All files that the names mean; with ``any_text``, files whose names do not say what they are count as text."""
    found: list[DataFile] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            found += _in_folder(path)
        elif path.exists():
            found.append(_data_file(path, any_text))
        elif glob.has_magic(str(name)):
            matches = [Path(match) for match in sorted(glob.glob(str(name), recursive=True))]
            if not matches:
                raise ValueError(f"{name}: no file matches this.")
            fixed = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
            for match in matches:
                said = _said_by(match.relative_to(fixed).parent.parts)
                found += _in_folder(match) if match.is_dir() else [_data_file(match, any_text, said)]
        else:
            raise ValueError(f"{name}: there is no such file or folder.")
    places = [file.path.resolve() for file in found]
    twice = next((place for place in places if places.count(place) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice.name}: named twice, and its rows would count twice. Name it once.")
    return found


def kind_of_file(path: Path) -> str:
    """The kind that a file's name says, before any ``.gz`` and the like; empty where it says none."""
    suffixes = [s.lower() for s in path.suffixes]
    if is_compressed(path):
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1] if suffixes else "", "")


def is_text_kind(kind: str) -> bool:
    return kind in DELIMITERS


def is_compressed(path: Path) -> bool:
    return path.suffix.lower() in {*_COMPRESSED, ".zip"}


def known_suffixes() -> str:
    return ", ".join(sorted(_SUFFIXES))


def _data_file(path: Path, any_text: bool, of_folders: dict[str, str | None] | None = None) -> DataFile:
    kind = kind_of_file(path)
    if not kind and path.suffix.lower() == ".zip":
        kind = kind_of_file(Path(_only_member(path)))
    if not kind and not any_text:
        raise ValueError(
            f"{path.name}: its name must end in {known_suffixes()} (also with .gz, .zst, .bz2 or .zip after it), so that it is "
            f"clear how to read it. Of a text file, --sep says it too."
        )
    if not path.is_file():
        raise ValueError(f"{path}: is no plain file, and files are read more than once. Save it first.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name}: the file is empty.")
    return DataFile(path, kind or ".csv", of_folders or {})


def _in_folder(folder: Path) -> list[DataFile]:
    files, others = [], []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if not path.is_file() or any(part.startswith((".", "_")) for part in inside.parts):
            continue
        if kind_of_file(path) or path.suffix.lower() == ".zip":
            files.append(_data_file(path, False, _said_by(inside.parent.parts)))
        else:
            others.append(str(inside))
    if others and files:
        more = "" if len(others) == 1 else f" and {len(others) - 1} more"
        warn(f"{folder.name}: {others[0]}{more} left out, of a kind that is not read.", stacklevel=5)
    if not files:
        raise ValueError(
            f"{folder}: the folder holds no file that ends in {known_suffixes()} (also with .gz and the like)."
        )
    return files


def _said_by(folders: Sequence[str]) -> dict[str, str | None]:
    """What folders such as ``day=2024-03-01`` say of the rows in them.

    >>> _said_by(["day=2024-03-01", "more", "country=A%20B"])
    {'day': '2024-03-01', 'country': 'A B'}
    """
    pairs = [re.fullmatch(r"([^=]+)=(.*)", folder) for folder in folders]
    return {unquote(p[1]): None if p[2] == _NO_VALUE else unquote(p[2]) for p in pairs if p}


def content_of(path: Path, most: int = -1) -> bytes:
    """What is in a file, uncompressed; or ``most`` bytes of it."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".zip":
            with ZipFile(path) as archive, archive.open(_only_member(path)) as member:
                return member.read(most)
        if suffix == ".gz":
            with gzip.open(path, "rb") as file:
                return file.read(most)
        if suffix in _COMPRESSED:
            with pa.input_stream(str(path), compression=_COMPRESSED[suffix]) as stream:
                return stream.read(None if most < 0 else most)
        with path.open("rb") as plain:
            return plain.read(most)
    except (OSError, EOFError, zlib.error, BadZipFile, RuntimeError, NotImplementedError, pa.ArrowException) as error:
        if not is_compressed(path):
            raise
        raise ValueError(
            f"{path.name}: not a whole {_COMPRESSED.get(suffix, 'zip')} file ({first_line(error)}). Compress it again."
        ) from None


def _only_member(path: Path) -> str:
    """The name of the one file in an archive."""
    try:
        with ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX")]
    except BadZipFile as error:
        raise ValueError(f"{path.name}: not a whole zip file ({first_line(error)}). Compress it again.") from None
    if len(names) != 1:
        raise ValueError(
            f"{path.name}: holds {len(names)} files, and must hold one. Unpack it into a folder, and name that."
        )
    return names[0]


def first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
