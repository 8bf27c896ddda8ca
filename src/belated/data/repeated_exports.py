"""Copies of one table from different days: when did each row turn positive, if no copy says so?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from belated.data.durations import DAY
from belated.data.log_columns import (
    ShownInstants,
    check_arrivals,
    check_clocks,
    notes_on,
    read_keys,
    read_time_column,
    refuse_unfit_keys,
    table_and_counts,
)
from belated.data.times import NEVER, TimeColumn, TimeFormat, parse_instant, show_instant
from belated.tables.frames import decoded, open_table, require, take_rows, to_arrow
from belated.tables.refusal import counted, refuse
from belated.typing import Bools, Ints

_DAY = r"(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)"
_TIME = r"(?:[T ](\d\d)[:_.-]?(\d\d)|[T _-]?(\d\d)[:_.-]?(\d\d)[:_.-]?(\d\d))?"  # _0001 is the number of a part
_DATE = re.compile(rf"{_DAY}{_TIME}(?!\d)")


@dataclass(frozen=True)
class History:
    """What several copies of a table say together: a row for each key, as it was when it was first seen."""

    table: nw.DataFrame[Any]
    arrivals: TimeColumn
    outcome: Ints
    until: int
    notes: list[str]


@dataclass(frozen=True)
class _Copy:
    """One copy of the table."""

    taken: int
    table: nw.DataFrame[Any]
    keys: pa.Array
    arrivals: TimeColumn
    positive: Bools


def read_snapshots(
    snapshots: Any,
    key: str,
    arrival: str,
    outcome: str | None,
    taken: str | None,
    outcome_where: str | None,
    how: TimeFormat,
) -> History:
    """Put copies of a table together; see :meth:`belated.EventLog.from_snapshots`."""
    if outcome is None and outcome_where is None:
        raise ValueError(
            "say which rows are positive: outcome= names a column of 0 and 1, outcome_where= gives a condition."
        )
    pairs = _by_column(snapshots, taken, how) if taken is not None else _pairs(snapshots)
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} snapshot is not enough: it takes two to see a row turn positive.")
    copies = [_read(when, frame, key, arrival, outcome, outcome_where, how) for when, frame in pairs]
    copies.sort(key=lambda copy: copy.taken)
    for copy in copies[1:]:
        one, other = f"{arrival} of the first snapshot", f"{arrival} of that of {show_instant(copy.taken, 'datetime')}"
        check_clocks(copies[0].arrivals, one, copy.arrivals, other)
    stamps = np.array([copy.taken for copy in copies])
    if (np.diff(stamps) == 0).any():
        same = show_instant(int(stamps[np.argmax(np.diff(stamps) == 0)]), "datetime")
        raise ValueError(f"two snapshots are of the same instant, {same}.")
    return _joined(copies, arrival)


def date_in_name(path: Path) -> datetime:
    """The date, and the time where there is one, in the name of a file or of the folders it is in.

    >>> date_in_name(Path("exports/leads-2024-03-01.csv")), date_in_name(Path("day=20240301/leads.parquet"))
    (datetime.datetime(2024, 3, 1, 0, 0), datetime.datetime(2024, 3, 1, 0, 0))
    """
    for part in (path.name, *reversed(path.parent.parts)):
        for start in re.finditer(r"(?<!\d)\d", part):
            found = _DATE.match(part, start.start())
            with suppress(ValueError):  # digits that are no date
                if found:
                    return datetime(*(int(number) for number in found.groups() if number))  # type: ignore[arg-type]
    raise ValueError(
        f"{path.name}: there is no date in its name, such as 2024-03-01, so it is not known when this snapshot was taken. Rename it, or "
        f"name a column that says so with --snapshot-time."
    )


def _pairs(snapshots: Any) -> list[tuple[Any, Any]]:
    pairs = list(snapshots.items() if isinstance(snapshots, Mapping) else snapshots)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ValueError(
            "snapshots must be a mapping from instants to tables, as in {'2024-03-01': df1, '2024-03-02': df2}; of a single table, "
            "taken= names the column that says when each row was copied."
        )
    return pairs


def _by_column(frame: Any, taken: str, how: TimeFormat) -> list[tuple[Any, Any]]:
    """One table cut into copies."""
    table = open_table(frame, "the table of snapshots")
    require(table, [taken], "the table of snapshots")
    times = read_time_column(table, taken, how)
    check_arrivals(times, taken)
    return [
        (np.datetime64(int(stamp), "us"), take_rows(table.to_native(), times.micros == stamp))
        for stamp in np.unique(times.micros)
    ]


def _read(
    when: Any, frame: Any, key: str, arrival: str, outcome: str | None, outcome_where: str | None, how: TimeFormat
) -> _Copy:
    what = f"the snapshot of {when}"
    table, positive = table_and_counts(frame, what, outcome_where)
    require(table, [key, arrival, *([] if outcome is None else [outcome])], what)
    if outcome is not None:
        positive = positive & _flags(to_arrow(table, outcome), outcome, what)
    keys = read_keys(to_arrow(table, key), key)
    refuse_unfit_keys(keys, key, what)
    arrivals = read_time_column(table, arrival, how)
    check_arrivals(arrivals, arrival)
    if arrivals.clock == "seconds":
        raise ValueError(
            f"column {arrival!r} counts seconds from an unknown origin, so it cannot be compared with snapshots' dates."
        )
    return _Copy(parse_instant(when, "snapshot", "datetime"), table, keys, arrivals, positive)


def _flags(column: pa.Array, name: str, what: str) -> Bools:
    column = decoded(column)
    if pa.types.is_boolean(column.type) or pa.types.is_null(column.type):
        return np.asarray(column.cast(pa.bool_()).fill_null(False))
    try:
        numbers = np.asarray(column.cast(pa.float64()).fill_null(0.0))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        some = ", ".join(repr(v) for v in column.drop_null().unique().slice(0, 3).to_pylist())
        raise ValueError(
            f"column {name!r} must hold truth values, or 0 and 1, and holds {some}. Say what is positive with a condition: "
            f"outcome_where='{name} == ...' (--outcome-where)."
        ) from None
    refuse(
        (numbers != 0) & (numbers != 1), name, f"{{count}} neither 0 nor 1 in {what}", numbers, "Correct these rows."
    )
    return numbers == 1


def _joined(copies: list[_Copy], arrival: str) -> History:
    stamps, notes = _stamps(copies, arrival)
    text = len({copy.keys.type for copy in copies}) > 1
    keys = pa.concat_arrays([copy.keys.cast(pa.large_string()) if text else copy.keys for copy in copies])
    codes = np.asarray(keys.dictionary_encode().indices)
    copy_of = np.repeat(np.arange(len(copies)), [len(copy.keys) for copy in copies])
    came = np.concatenate([copy.arrivals.micros for copy in copies])
    positive = np.concatenate([copy.positive for copy in copies])
    # Copies are in order of time, so the first place of a key is its first sight and the last its last.
    _, first = np.unique(codes, return_index=True)
    last = np.zeros(len(first), dtype=np.int64)
    last[codes] = np.arange(len(codes))
    outcome = np.full(len(first), NEVER)
    np.minimum.at(outcome, codes[positive], stamps[copy_of[positive]])
    gap = int(np.median(np.diff(stamps)))
    in_time = came[first] > stamps[0] - gap
    if not in_time.any():
        raise ValueError(f"all {len(in_time)} rows arrived before the first snapshot. Add later snapshots.")
    days = f"{gap / DAY:.3g} {'day' if gap == DAY else 'days'}"
    notes.append(
        f"Outcomes are dated by the first of {len(copies)} snapshots that shows them; the median gap is {days}."
    )
    early = int((~in_time).sum())
    if early:
        notes.append(
            f"{early:,} of {counted(len(in_time), 'row')} arrived before the first snapshot could have seen them arrive, so when they "
            f"turned positive is not known: they are left out."
        )
    gone = int(((copy_of[last] < len(copies) - 1) & (outcome == NEVER) & in_time).sum())
    if gone:
        are = "is" if gone == 1 else "are"
        notes.append(
            f"{counted(gone, 'row')} {are} missing from later snapshots without having turned positive: from then on that counts as negative."
        )
    back = int(((outcome != NEVER) & ~positive[last] & in_time).sum())
    if back:
        notes.append(f"{counted(back, 'row')} turned positive and back again: the first time counts.")
    order = np.sort(first[in_time])
    arrivals = replace(copies[0].arrivals, micros=came[order], missing=np.zeros(len(order), dtype=bool))
    return History(_rows(copies, copy_of, order), arrivals, outcome[codes[order]], int(stamps[-1]), notes)


def _stamps(copies: list[_Copy], arrival: str) -> tuple[Ints, list[str]]:
    """When each copy was taken, and how that and arrivals were understood; no row may have arrived later."""
    notes = [str(note) for note in notes_on({arrival: copies[0].arrivals})]
    stamps = np.array([copy.taken for copy in copies])
    of_its_day = [bool((copy.arrivals.micros > copy.taken).any()) for copy in copies]
    if (stamps % DAY == 0).all() and np.mean(of_its_day) > 0.5:  # a date that stands for the end of its day
        stamps = stamps + DAY
        notes.append("The date of a snapshot means the end of that day.")
    for copy, stamp in zip(copies, stamps.tolist(), strict=True):
        refuse(
            copy.arrivals.micros > stamp,
            arrival,
            f"{{count}} after the snapshot of {show_instant(copy.taken, 'datetime')}, which has them already",
            ShownInstants(copy.arrivals.micros, "datetime"),
            "Correct these times, or those of the snapshots.",
        )
    return stamps, notes


def _rows(copies: list[_Copy], copy_of: Ints, order: Ints) -> nw.DataFrame[Any]:
    """Rows by their place in all copies together, as the kind of table that the first copy is."""
    starts = np.concatenate([[0], np.cumsum([len(copy.keys) for copy in copies])])
    parts = []
    for number, copy in enumerate(copies):
        rows = order[copy_of[order] == number] - starts[number]
        if len(rows):
            parts.append(copy.table[rows.tolist()].to_arrow().select(copy.table.columns))
    try:
        joined = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"the snapshots do not fit together: {error}.") from None
    return nw.from_arrow(joined, backend=copies[0].table.implementation)
