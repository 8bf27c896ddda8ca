"""JSON: a record a line, or one list of records."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.json as pjson

from belated.tables.files import DataFile, content_of, first_line


def read_json(file: DataFile) -> pa.Table:
    """Text is text, also where it looks like a time: what it means, and in which zone, is decided where times are read."""
    content = content_of(file.path)
    try:
        if content.lstrip()[:1] == b"[":
            return read_plainly(file)
        table = _read_lines(content, None)
        if not any(pa.types.is_timestamp(field.type) for field in table.schema):
            return table
        kinds = [f.with_type(pa.string()) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        return _read_lines(content, pa.schema(kinds))
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(
            f"{file.name}: cannot be read as JSON ({first_line(error)}). Write one record a line, as in "
            f'{{"click_time": "2024-03-01", "price": 3.5}}.'
        ) from None


def _read_lines(content: bytes, schema: pa.Schema | None) -> pa.Table:
    size = min(max(len(content) + 1, 1 << 20), 2**31 - 1)
    return pjson.read_json(
        io.BytesIO(content), pjson.ReadOptions(block_size=size), pjson.ParseOptions(explicit_schema=schema)
    )


def read_plainly(file: DataFile) -> pa.Table:
    """The same with nothing guessed: dates stay text, and whole numbers of any length are kept, as text where they are long."""
    content = content_of(file.path)
    listed = content.lstrip()[:1] == b"["
    lines = [line for line in content.decode().split("\n") if line.strip()]
    records = _records(json.loads(content) if listed else [json.loads(line) for line in lines])
    return pa.table({name: _plain_column([record[name] for record in records]) for name in records[0]})


def _plain_column(values: list[object]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and all(not isinstance(v, int) or abs(v) < 2**63 for v in values):
        return pa.array(values, pa.float64() if float in kinds else pa.int64())
    if kinds <= {str} or kinds <= {bool}:
        return pa.array(values)
    return pa.array([v if v is None or isinstance(v, str) else json.dumps(v) for v in values], pa.large_string())


def _records(found: object) -> list[dict[str, object]]:
    if not isinstance(found, list) or not found or not all(isinstance(record, dict) for record in found):
        raise ValueError("a list of records is wanted")
    names = dict.fromkeys(name for record in found for name in record)
    return [{name: record.get(name) for name in names} for record in found]
