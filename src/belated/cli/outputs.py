"""Files that a command writes: whether it may, before the work rather than after it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from belated.extras import how_to_install


def may_write(inputs: Sequence[str | Path | None], *files: Path | None) -> None:
    """Refuse files that cannot be written, or that the command reads."""
    from belated.tables.writing import is_plain

    taken = {Path(file).resolve() for file in inputs if file is not None}
    for file in files:
        if file is None:
            continue
        if not file.parent.exists():
            raise ValueError(f"{file}: there is no folder {file.parent}.")
        if file.is_dir():
            raise ValueError(f"{file}: is a folder; name a file.")
        place = file.parent if is_plain(file) else file
        if not os.access(place, os.W_OK):
            raise ValueError(f"{file}: nothing can be written to {place}.")
        if is_plain(file) and file.resolve() in taken:
            raise ValueError(f"{file}: is read, or written, by this command already; name another file.")
        taken.add(file.resolve())


def may_keep(cache: Path | None) -> None:
    """Refuse a folder in which nothing can be kept."""
    if cache is None:
        return
    if cache.exists() and not cache.is_dir():
        raise ValueError(f"{cache}: is a file; name a folder.")
    place = next(one for one in (cache, *cache.absolute().parents) if one.exists())
    if not place.is_dir():
        raise ValueError(f"{cache}: {place} is a file; name another folder.")
    if not os.access(place, os.W_OK):
        raise ValueError(f"{cache}: nothing can be written to {place}.")


def missing_for_report() -> list[str]:
    """Libraries that a report needs and that are not there."""
    return [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]


def may_draw(report: Path | None) -> None:
    """Refuse a report whose libraries are missing."""
    missing = missing_for_report()
    if report is not None and missing:
        raise ValueError(f"a report needs {' and '.join(missing)}: {how_to_install('report')}.")


def write_text(path: Path, text: str) -> None:
    from belated.tables.writing import write_text

    write_text(path, text)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    """A table of rows with the same keys; what is None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_json(path: Path, summary: dict[str, Any]) -> None:
    write_text(path, json.dumps(summary, indent=1, allow_nan=False))
