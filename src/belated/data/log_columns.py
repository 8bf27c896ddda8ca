"""The columns of a log: times, features and keys, read from tables and checked against each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.times import TimeColumn, read_times, refuse_zoneless, show_instant
from belated.notices import warn
from belated.tables.frames import decoded, is_text, require, to_arrow
from belated.tables.refusal import refuse
from belated.typing import Bools, Ints


class OutcomeWarning(UserWarning):
    """Some outcomes in the log could not be used; the message says how many and why."""


def read_time_column(table: nw.DataFrame[Any], name: str) -> TimeColumn:
    column = table.get_column(name)
    if column.dtype == nw.Object:
        _check_objects(column.to_list(), name)
    return read_times(to_arrow(table, name), name)


def _check_objects(values: list[Any], name: str) -> None:
    """Python dates, and datetimes with and without a zone, would silently become one kind."""
    days = np.array([isinstance(v, date) and not isinstance(v, datetime) for v in values])
    zoned = np.array([isinstance(v, datetime) and v.tzinfo is not None for v in values])
    naive = np.array([isinstance(v, datetime) and v.tzinfo is None and v == v for v in values])
    if zoned.any():
        refuse_zoneless(naive, name, values)
    if zoned.any() or naive.any():
        refuse(days, name, "{count} a date beside others that are times", values, "Write all of them as times.")


def feature_names(features: Any, table: nw.DataFrame[Any], others: Sequence[str], what: str) -> list[str]:
    if features is None:
        return [name for name in table.columns if name not in others]
    if isinstance(features, str):
        raise ValueError(f"features={features!r} must be a list of columns, such as [{features!r}].")
    require(table, features, what)
    used = [name for name in features if name in others]
    if used:
        raise ValueError(
            f"{', '.join(map(repr, used))} cannot be a feature: it is the arrival, the outcome or the key."
        )
    return list(dict.fromkeys(features))


class ShownInstants:
    """Instants as text, made only for the one that is shown."""

    def __init__(self, micros: Ints, clock: str) -> None:
        self.micros, self.clock = micros, clock

    def __getitem__(self, row: int) -> str:
        return show_instant(int(self.micros[row]), self.clock)


def check_arrivals(arrivals: TimeColumn, name: str) -> None:
    refuse(
        arrivals.missing,
        name,
        "{count} missing, and every row must have arrived",
        ["missing"] * len(arrivals.missing),
        "Drop these rows or fill them in.",
    )


def check_clocks(arrivals: TimeColumn, arrival: str, outcomes: TimeColumn, outcome: str) -> None:
    if outcomes.clock == "empty":
        return
    if arrivals.clock != outcomes.clock:
        raise ValueError(
            f"column {arrival!r} holds {arrivals.clock} but column {outcome!r} holds {outcomes.clock}: use one kind for both."
        )
    if arrivals.zoned != outcomes.zoned:
        with_zone, without = (arrival, outcome) if arrivals.zoned else (outcome, arrival)
        raise ValueError(
            f"column {with_zone!r} has a time zone and column {without!r} has none, so their clocks may disagree by hours. "
            f"Give {without!r} its zone (for example with dt.tz_localize or dt.replace_time_zone)."
        )


def match_keys(table: nw.DataFrame[Any], events: nw.DataFrame[Any], key: str) -> tuple[Ints, list[Any]]:
    """For each outcome the row of its arrival, or -1; and the outcomes' keys."""
    ours, theirs = (_keys(to_arrow(frame, key)) for frame in (table, events))
    nulls = np.asarray(ours.is_null())
    missing = ["missing"] * len(nulls)
    refuse(nulls, key, "{count} missing in the table of arrivals", missing, "Drop these rows or give them keys.")
    if theirs.null_count == len(theirs):
        theirs = theirs.cast(ours.type)
    if not ours.type.equals(theirs.type):
        raise ValueError(
            f"column {key!r} holds {ours.type} in the table of arrivals and {theirs.type} in the table of outcomes. Convert one of them."
        )
    first_row = np.asarray(pc.index_in(ours, value_set=ours))
    repeated = first_row != np.arange(len(first_row))
    refuse(
        repeated,
        key,
        "{count} a repeat of an earlier key",
        ours.to_pylist() if repeated.any() else [],
        "Keep one row for each key.",
    )
    found = pc.index_in(theirs, value_set=ours)
    row_of = np.asarray(found.fill_null(-1)).astype(np.int64)
    return row_of, theirs


def _keys(column: pa.Array) -> pa.Array:
    """Keys as whole numbers or as text."""
    column = decoded(column)
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        return column.cast(pa.int64())
    if is_text(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.large_string())
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.large_string())


def warn_left_out(rows: Bools, keys: Any, key: str, what: str) -> None:
    """Warn of outcomes that could not be used: how many, why, and the first of them."""
    count = int(rows.sum())
    if count:
        first = int(np.argmax(rows))
        warn(
            f"{count} of {len(rows)} outcomes {what} and were left out, the first at row {first} of the outcomes "
            f"({key}={keys[first].as_py()!r}).",
            OutcomeWarning,
            stacklevel=4,
        )
