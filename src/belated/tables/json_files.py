"""JSON: a record a line, or one list of records."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.json as pjson

from belated.tables.files import DataFile, content_of, first_line


def read_json(file: DataFile) -> pa.Table:
    content = content_of(file.path)
    try:
        if content.lstrip()[:1] == b"[":
            return pa.Table.from_pylist(_records(json.loads(content)))
        return pjson.read_json(io.BytesIO(content), pjson.ReadOptions(block_size=max(len(content) + 1, 1 << 20)))
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(
            f"{file.name}: cannot be read as JSON ({first_line(error)}). Write one record a line, as in "
            f'{{"click_time": "2024-03-01", "price": 3.5}}.'
        ) from None


def _records(found: object) -> list[dict[str, object]]:
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise ValueError("a list of records is wanted")
    names = dict.fromkeys(name for record in found for name in record)
    return [{name: record.get(name) for name in names} for record in found]
