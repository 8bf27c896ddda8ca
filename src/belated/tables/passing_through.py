"""Files with one column more: everything else comes out as it went in, byte for byte where the kind of file stays the same."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from belated.tables.files import DELIMITERS, DataFile, content_of, is_text_kind
from belated.tables.json_files import read_plainly
from belated.tables.records import more_than_a_byte, records_of
from belated.tables.sources import FileSource, read_typed
from belated.tables.text_files import header_of, read_as_text
from belated.tables.writing import check_writable_kind, write_beside, write_table
from belated.typing import Floats

STANDARD_OUTPUT = "-"


def kind_of_output(source: FileSource, out: Path) -> str:
    """The kind of file to write: by its name, and on standard output that of what was read, if that is text."""
    if str(out) != STANDARD_OUTPUT:
        return check_writable_kind(out)
    kind = source.files[0].kind
    return kind if is_text_kind(kind) or kind == ".jsonl" else ".csv"


def write_with_column(source: FileSource, name: str, values: Floats, out: Path) -> None:
    """Write the rows of a source with a column of numbers after all others."""
    kind = kind_of_output(source, out)
    target = Path("/dev/stdout") if str(out) == STANDARD_OUTPUT else out
    content = _same_bytes(source, name, values) if kind == source.files[0].kind else None
    if content is None:
        same = kind == source.files[0].kind
        delimiter = source.how.delimiter(source.files[0]) if same and is_text_kind(kind) else DELIMITERS.get(kind)
        tables = [_as_written(file, source) for file in source.files]
        table = pa.concat_tables(tables, promote_options="permissive")
        write_table(table.append_column(name, pa.array(values)), target, kind, delimiter)
        return

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_beside(target, write)


def _same_bytes(source: FileSource, name: str, values: Floats) -> bytes | None:
    """The files that were read, with a field more in each record.

    None where records cannot be told for sure, or where files have their columns in different orders.
    """
    numbers = iter(values.tolist())
    kinds = {file.kind for file in source.files}
    if any(file.of_folders for file in source.files) or len(kinds) > 1:
        return None
    if kinds == {".jsonl"}:
        parts = [_longer_json(content_of(file.path), name, numbers) for file in source.files]
    elif is_text_kind(source.files[0].kind) and len({tuple(header_of(file, source.how)) for file in source.files}) == 1:
        parts = [_longer_text(file, source, name, numbers, first=k == 0) for k, file in enumerate(source.files)]
    else:
        return None
    if None in parts or next(numbers, None) is not None:
        return None
    whole = [part if part.endswith(b"\n") else part + b"\n" for part in parts[:-1] if part is not None]
    return b"".join([*whole, parts[-1] or b""])


def _longer_text(file: DataFile, source: FileSource, name: str, numbers: Iterator[float], first: bool) -> bytes | None:
    how, delimiter = source.how, source.how.delimiter(file)
    content = content_of(file.path)
    wide = more_than_a_byte(how.encoding)
    encoding = "utf-8" if wide else how.encoding
    if wide:
        content = content.decode(how.encoding).encode()

    def field(value: str) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, lineterminator="").writerow([value])
        return (delimiter + text.getvalue()).encode(encoding)

    try:
        header = field(name)
    except UnicodeEncodeError:
        raise ValueError(f"--column {name}: cannot be written in {how.encoding}. Name it in other letters.") from None
    longer, seen_header = [], False
    for record in records_of(content, delimiter):
        body = record.rstrip(b"\r\n")
        if not body:
            longer.append(record if first or seen_header else b"")
        elif not seen_header:
            seen_header = True
            longer.append(body + header + record[len(body) :] if first else b"")
        else:
            number = next(numbers, None)
            if number is None:
                return None
            longer.append(body + field(repr(number).replace(".", how.decimal)) + record[len(body) :])
    whole = b"".join(longer)
    return whole.decode().encode(how.encoding) if wide else whole


def _longer_json(content: bytes, name: str, numbers: Iterator[float]) -> bytes | None:
    if content.lstrip()[:1] == b"[":
        return None
    key, longer = json.dumps(name), []
    for line in content.splitlines(keepends=True):
        body = line.rstrip()
        if not body:
            longer.append(line)
            continue
        number = next(numbers, None)
        if number is None or not body.endswith(b"}"):
            return None
        comma = b"" if body[:-1].strip() == b"{" else b", "
        longer.append(body[:-1] + comma + f"{key}: {number!r}}}".encode() + line[len(body) :])
    return b"".join(longer)


def _as_written(file: DataFile, source: FileSource) -> pa.Table:
    """All columns of a file; of text, the text itself."""
    if is_text_kind(file.kind):
        table = read_as_text(file, source.how)
    else:
        table = read_plainly(file) if file.kind == ".jsonl" else read_typed(file, None)
    for column, said in file.of_folders.items():
        if column not in table.column_names:
            table = table.append_column(column, pa.array([said] * table.num_rows, pa.string()))
    return table
