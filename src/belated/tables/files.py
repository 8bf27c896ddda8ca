"""Tables in files: Parquet, or text separated by commas or tabs, also gzipped, or a folder of such files.

What can go wrong with a file is said here, once, in terms of the file.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from belated.tables.frames import is_text

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
_KINDS = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
PARQUET = {".parquet", ".pq"}


def read_table(path: str | Path, kinds: Mapping[str, str] | None = None) -> pa.Table:
    """Read a file, or all files of a folder, as one table.

    ``kinds`` says of columns whether they hold ``"text"``, ``"number"`` or ``"boolean"`` (see :func:`belated.tables.frames.kinds_of`); a text file
    cannot say so itself, and what its other columns hold is guessed from them.
    """
    path, kinds = Path(path), kinds or {}
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return _read(path, kinds)
    files = sorted(f for f in path.iterdir() if kind_of_file(f) and not f.name.startswith((".", "_")))
    if not files:
        raise ValueError(f"{path}: the folder holds no file that ends in {_known()}.")
    tables = [_read(file, kinds) for file in files]
    for file, table in zip(files[1:], tables[1:], strict=True):
        if table.column_names != tables[0].column_names:
            differ = sorted(set(table.column_names) ^ set(tables[0].column_names)) or ["their order"]
            raise ValueError(f"{path}: the columns of {file.name} and {files[0].name} differ in {', '.join(differ)}.")
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path}: the files do not fit together: {error}.") from None


def kind_of_file(path: Path) -> str:
    """``".parquet"``, or the suffix of a text file before any ``.gz``; empty where it is neither."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return ".parquet" if last in PARQUET else last if last in DELIMITERS else ""


def _known() -> str:
    return ", ".join([*sorted(PARQUET), *sorted(DELIMITERS)]) + " (text also with .gz)"


def _read(path: Path, kinds: Mapping[str, str]) -> pa.Table:
    kind = kind_of_file(path)
    if not kind:
        raise ValueError(f"{path.name}: its name must end in {_known()}, so that it is clear how to read it.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name}: the file is empty.")
    table = _read_parquet(path) if kind == ".parquet" else _read_text(path, DELIMITERS[kind], kinds)
    if table.num_rows == 0:
        raise ValueError(f"{path.name}: the file has columns but no rows.")
    names = table.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"{path.name}: several columns are named {', '.join(map(repr, repeated))}. Rename or drop them."
        )
    return table.cast(pa.schema([f.with_type(pa.large_string()) if is_text(f.type) else f for f in table.schema]))


def _read_parquet(path: Path) -> pa.Table:
    try:
        table = pq.read_table(path)
        table.validate(full=True)  # of damaged text, which nobody else looks at
        list(table.column_names)
        return table
    except (pa.ArrowInvalid, pa.ArrowException, OSError, ValueError) as error:
        raise ValueError(
            f"{path.name}: not a whole Parquet file ({_first_line(error)}). Was it cut off while copying? Write it again."
        ) from None


def _read_text(path: Path, delimiter: str, kinds: Mapping[str, str]) -> pa.Table:
    header = _header(path)
    if delimiter not in header:
        other = max((d for d in ",;\t|" if d != delimiter), key=header.count)
        if header.count(other):
            names = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
            raise ValueError(
                f"{path.name}: the first line has no {names[delimiter]}, but {header.count(other)} {names[other]}. Separate "
                f"columns by commas (.csv) or tabs (.tsv)."
            )
    try:
        table = pcsv.read_csv(
            io.BytesIO(_bytes(path)) if path.suffix == ".gz" else path,
            parse_options=pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                column_types={name: _KINDS[kind] for name, kind in kinds.items()},
                strings_can_be_null=True,
                null_values=["", "NA", "NaN", "nan", "NULL", "null", "None"],
            ),
        )
    except pa.ArrowInvalid as error:
        text = _first_line(error)
        if "Expected" in text and "columns" in text:
            advice = "Every line must have as many fields as the first; quote fields that hold the separator."
        else:
            advice = "Is it text in columns?"
        raise ValueError(f"{path.name}: cannot be read ({text}). {advice}") from None
    try:
        list(table.column_names)
    except UnicodeDecodeError:
        raise ValueError(f"{path.name}: the names of its columns are not UTF-8. Save the file as UTF-8.") from None
    bytes_ = [field.name for field in table.schema if pa.types.is_binary(field.type)]
    if bytes_:
        raise ValueError(
            f"{path.name}: column {bytes_[0]!r} holds text that is not UTF-8, perhaps from several sources. Save the file as UTF-8."
        )
    return table


def _bytes(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            return file.read()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path.name}: not a whole gzip file ({_first_line(error)}). Compress it again.") from None


def _header(path: Path) -> str:
    if path.suffix == ".gz":
        line = _bytes(path).split(b"\n", 1)[0]
    else:
        with path.open("rb") as file:
            line = file.readline()
    if b"\x00" in line:
        raise ValueError(f"{path.name}: holds binary data, or text that is not UTF-8. Save it as UTF-8.")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path.name}: the first line is not UTF-8. Save the file as UTF-8.") from None


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")
