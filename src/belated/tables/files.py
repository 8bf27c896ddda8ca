"""Tables in files: Parquet, or text separated by commas or tabs, also gzipped, or a folder of such files.

What can go wrong with a file is said here, once, in terms of the file.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import narwhals as nw
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from belated.data.times import read_times, show_instant
from belated.tables.frames import is_text, to_arrow
from belated.tables.refusal import refuse

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".tab": "\t"}
_KINDS = {"text": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
_PARQUET = {".parquet", ".pq"}
_ARRIVAL = r"(arriv\w*|click\w*|book(ed|ing)\w*|creat\w*|order\w*|purchas\w*|impress\w*|visit\w*|admi\w*|discharg\w*|paid|payment\w*|sign_?up\w*|install\w*)"
_OUTCOME = r"(outcome\w*|conver\w*|cancel\w*|charge_?back\w*|readmi\w*|return\w*|refund\w*|churn\w*|default\w*|fraud\w*|label\w*)"
_TIME = r"(_?(time|date|at|on|ts|timestamp|day|datetime))?"


def read_table(path: str | Path, kinds: Mapping[str, str] | None = None) -> pa.Table:
    """Read a file, or all files of a folder, as one table.

    ``kinds`` says of columns whether they hold ``"text"``, ``"number"`` or ``"boolean"`` (see :func:`kinds_of`); a text file
    cannot say so itself, and what its other columns hold is guessed from them.
    """
    path, kinds = Path(path), kinds or {}
    if not path.exists():
        raise ValueError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return _read(path, kinds)
    files = sorted(f for f in path.iterdir() if _kind(f) and not f.name.startswith((".", "_")))
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


def _kind(path: Path) -> str:
    """``".parquet"``, or the suffix of a text file before any ``.gz``; empty where it is neither."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    last = suffixes[-1] if suffixes else ""
    return ".parquet" if last in _PARQUET else last if last in _DELIMITERS else ""


def _known() -> str:
    return ", ".join([*sorted(_PARQUET), *sorted(_DELIMITERS)]) + " (text also with .gz)"


def _read(path: Path, kinds: Mapping[str, str]) -> pa.Table:
    kind = _kind(path)
    if not kind:
        raise ValueError(f"{path.name}: its name must end in {_known()}, so that it is clear how to read it.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name}: the file is empty.")
    table = _read_parquet(path) if kind == ".parquet" else _read_text(path, _DELIMITERS[kind], kinds)
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
        return pq.read_table(path)
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


def guess_columns(table: pa.Table) -> dict[str, str]:
    """Names of the columns of arrivals and outcomes, where exactly one has an obvious name and holds times.

    >>> guess_columns(pa.table({"click_time": ["2024-01-01"], "converted_at": ["2024-01-02"], "campaign": ["a"]}))
    {'arrival': 'click_time', 'outcome': 'converted_at'}
    """
    found = {}
    for role, words in (("arrival", _ARRIVAL), ("outcome", _OUTCOME)):
        pattern = re.compile(words + _TIME, re.IGNORECASE)
        names = [name for name in table.column_names if pattern.fullmatch(name) and _may_be_time(table[name])]
        if len(names) == 1:
            found[role] = names[0]
    return found


def kinds_of(table: pa.Table) -> dict[str, str]:
    """Of each column that is text, numbers or booleans, which of them."""
    kinds = {}
    for field in table.schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if is_text(kind):
            kinds[field.name] = "text"
        elif pa.types.is_boolean(kind):
            kinds[field.name] = "boolean"
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            kinds[field.name] = "number"
    return kinds


def _may_be_time(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind):
        return True
    if is_text(kind):
        sample = column.drop_null()[:5].to_pylist()
        return bool(sample) and all(re.match(r"\d{4}-\d\d-\d\d", value.strip()) for value in sample)
    return (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and len(column.drop_null()[:50].unique()) > 2


def refuse_future(table: pa.Table, names: list[str]) -> None:
    """Refuse datetimes after tomorrow: a log holds what has happened."""
    limit = (datetime.now(UTC) + timedelta(days=1)).timestamp() * 1e6
    frame = nw.from_native(table, eager_only=True)
    for name in names:
        times = read_times(to_arrow(frame, name), name)
        late = ~times.missing & (times.micros > limit) & (times.clock == "datetime")
        advice = "Correct these times, or empty the outcome where it means 'never'."
        refuse(
            late,
            name,
            "{count} in the future",
            [show_instant(int(m), "datetime") for m in times.micros[late][:1]] * len(late),
            advice,
        )


def check_writable_kind(path: Path) -> str:
    kind = _kind(path)
    if not kind or path.suffix == ".gz":
        raise ValueError(f"{path.name}: its name must end in {', '.join([*sorted(_PARQUET), *sorted(_DELIMITERS)])}.")
    return kind


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write Parquet, CSV or TSV by the file's name; the name appears only when all is written."""
    kind = check_writable_kind(Path(path))

    def write(file: IO[bytes]) -> None:
        if kind == ".parquet":
            pq.write_table(table, file)
        else:
            pcsv.write_csv(table, file, pcsv.WriteOptions(delimiter=_DELIMITERS[kind]))

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
