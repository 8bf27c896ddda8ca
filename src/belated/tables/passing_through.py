"""A file with one column more: everything else comes out as it went in, byte for byte where the kind of file stays the same."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from belated.tables.files import DELIMITERS, DataFile, content_of, is_text_kind
from belated.tables.json_files import read_json
from belated.tables.sources import FileSource, read_typed
from belated.tables.text_files import TextFormat, read_as_text
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
    content = _same_bytes(source, name, values, kind)
    target = Path("/dev/stdout") if str(out) == STANDARD_OUTPUT else out
    if content is None:
        tables = [_as_written(file, source.how) for file in source.files]
        table = pa.concat_tables(tables, promote_options="permissive")
        write_table(table.append_column(name, pa.array(values)), target, kind)
        return

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_beside(target, write)


def _same_bytes(source: FileSource, name: str, values: Floats, kind: str) -> bytes | None:
    """The one file that was read with a field more in each line; None where a file of another kind is wanted."""
    file, how = source.files[0], source.how
    if len(source.files) > 1 or file.of_folders:
        return None
    if kind == file.kind == ".jsonl":
        return _json_lines(content_of(file.path), name, values)
    if not (is_text_kind(kind) and is_text_kind(file.kind)) or how.delimiter(file) != (how.sep or DELIMITERS[kind]):
        return None
    content = content_of(file.path)
    wide = not "a,".encode(how.encoding).endswith(b"a,")  # UTF-16 and the like: more than a byte a letter
    if wide:
        content = content.decode(how.encoding).encode()
    longer = _longer_lines(content, how.delimiter(file), _field(name, how.delimiter(file)), values, how.decimal)
    return longer.decode().encode(how.encoding) if longer and wide else longer


def _longer_lines(content: bytes, delimiter: str, header: str, values: Floats, decimal: str) -> bytes | None:
    """Each record with a field more; None where its lines cannot be told for sure."""
    data = np.frombuffer(content, np.uint8)
    line_ends, quotes = np.flatnonzero(data == 10), np.flatnonzero(data == 34)
    # A line feed ends a record where an even number of quotes came before it.
    ends = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0] + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    records = [content[a:b] for a, b in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]
    filled = sum(record.strip(b"\r\n") != b"" for record in records)
    if filled != len(values) + 1:
        return None
    fields = iter([header.encode(), *(repr(v).replace(".", decimal).encode() for v in values.tolist())])
    mark, longer = delimiter.encode(), []
    for record in records:
        body = record.rstrip(b"\r\n")
        longer.append(body + mark + next(fields) + record[len(body) :] if body else record)
    return b"".join(longer)


def _json_lines(content: bytes, name: str, values: Floats) -> bytes | None:
    lines = content.splitlines(keepends=True)
    if sum(bool(line.strip()) for line in lines) != len(values) or content.lstrip()[:1] == b"[":
        return None
    key, numbers, longer = json.dumps(name), iter(values.tolist()), []
    for line in lines:
        body = line.rstrip()
        if not body:
            longer.append(line)
            continue
        comma = b"" if body[:-1].strip() == b"{" else b", "
        longer.append(body[:-1] + comma + f"{key}: {next(numbers)!r}}}".encode() + line[len(body) :])
    return b"".join(longer)


def _as_written(file: DataFile, how: TextFormat) -> pa.Table:
    """All columns of a file; of text, the text itself."""
    if is_text_kind(file.kind):
        return read_as_text(file, how)
    return read_json(file) if file.kind == ".jsonl" else read_typed(file, None)


def _field(name: str, delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow([name])
    return text.getvalue()
