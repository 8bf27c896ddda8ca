"""The columns of a log: times, features and keys, read from tables and checked against each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from shlex import quote
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import DAY
from belated.data.times import (
    TimeColumn,
    TimeFormat,
    parse_instant,
    read_times,
    refuse_zoneless,
    show_instant,
    whether_not_when,
)
from belated.notices import warn
from belated.tables.conditions import Condition
from belated.tables.frames import decoded, is_text, open_table, require, to_arrow
from belated.tables.refusal import refuse
from belated.typing import Bools, Ints

_MANY_UNMATCHED = 0.5  # of the outcomes: then the keys of both sides are shown


class OutcomeWarning(UserWarning):
    """Some outcomes in the log could not be used; the message says how many and why.

    Examples
    --------
    >>> import warnings
    >>> import pandas as pd
    >>> from belated import EventLog, OutcomeWarning
    >>> clicks = pd.DataFrame({"id": [1, 2], "clicked": ["2024-01-02", "2024-01-03"], "ad": ["a", "b"]})
    >>> sales = pd.DataFrame({"id": [2, 7], "sold": ["2024-01-05", "2024-01-06"]})  # nothing was clicked for 7
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", OutcomeWarning)
    ...     log = EventLog.from_frames(clicks, sales, key="id", arrival="clicked", outcome="sold")
    >>> [warning.category.__name__ for warning in caught]
    ['OutcomeWarning']
    """


def read_time_column(table: nw.DataFrame[Any], name: str, how: TimeFormat) -> TimeColumn:
    column = table.get_column(name)
    if column.dtype == nw.Object:
        _check_objects(column.to_list(), name)
    return read_times(to_arrow(table, name), name, how)


@dataclass(frozen=True)
class TimeNote:
    """How the numbers of a column were understood as times, and the first of them where they count from 1970."""

    column: str
    read: str
    first: int | None

    def __str__(self) -> str:
        first = "" if self.first is None else f", the first of them {show_instant(self.first, 'datetime')}"
        return f"Column {self.column!r} is read {self.read}{first} (--time-unit, or time_unit= in Python, to overrule)."


def notes_on(columns: dict[str, TimeColumn]) -> list[TimeNote]:
    """How numbers were understood as times."""
    return [
        TimeNote(name, column.note, None if column.clock == "seconds" else int(column.micros[~column.missing].min()))
        for name, column in columns.items()
        if column.note
    ]


def _check_objects(values: list[Any], name: str) -> None:
    """Python dates, and datetimes with and without a zone, would silently become one kind."""
    days = np.array([isinstance(v, date) and not isinstance(v, datetime) for v in values])
    zoned = np.array([isinstance(v, datetime) and v.tzinfo is not None for v in values])
    naive = np.array([isinstance(v, datetime) and v.tzinfo is None and v == v for v in values])
    if zoned.any():
        refuse_zoneless(naive, name, values)
    if zoned.any() or naive.any():
        refuse(days, name, "{count} a date beside others that are times", values, "Write all of them as times.")


def table_and_counts(
    frame: Any, what: str, outcome_where: str | None, may_be_empty: bool = False
) -> tuple[nw.DataFrame[Any], Bools]:
    """A table, and for each row whether its outcome counts."""
    table = open_table(frame, what, may_be_empty)
    if outcome_where is None:
        return table, np.ones(len(table), dtype=bool)
    condition = Condition(outcome_where, "outcome_where")
    require(table, condition.columns, what)
    columns = {name: to_arrow(table, name) for name in condition.columns}
    return table, condition.holds(pa.table(columns)) if len(table) else np.zeros(0, dtype=bool)


def feature_names(
    features: Any, table: nw.DataFrame[Any], others: Sequence[str], what: str, outcome_where: str | None = None
) -> list[str]:
    """The columns that were named, or all others; a condition on outcomes looks at what is known of them later."""
    if features is None:
        looked_at = [] if outcome_where is None else Condition(outcome_where).columns
        return [name for name in table.columns if name not in {*others, *looked_at}]
    chosen = chosen_features(features, others)
    require(table, chosen, what)
    return chosen


def chosen_features(features: Any, others: Sequence[str]) -> list[str]:
    """The columns that were named, each once; times and keys are none."""
    if isinstance(features, str):
        raise ValueError(f"features={features!r} must be a list of columns, such as [{features!r}].")
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
    if arrivals.clock != "seconds" and outcomes.clock == "seconds" and _are_flags(outcomes):
        raise whether_not_when(outcome, "0 and 1")
    if "seconds" in (arrivals.clock, outcomes.clock) and arrivals.clock != outcomes.clock:
        small = outcome if outcomes.clock == "seconds" else arrival
        numbers = (outcomes if outcomes.clock == "seconds" else arrivals).micros / 1e6
        raise ValueError(
            f"column {arrival!r} holds {arrivals.clock} but column {outcome!r} holds {outcomes.clock}: use one kind for both. Numbers such as "
            f"{numbers.min():g} in {small!r} are no times since 1970; where one means 'never', empty it, or name it with --na."
        )
    if arrivals.zoned != outcomes.zoned:
        with_zone, without = (arrival, outcome) if arrivals.zoned else (outcome, arrival)
        query = f"SELECT * REPLACE (\"{without}\" AT TIME ZONE 'Europe/Berlin' AS \"{without}\") FROM 'log.csv'"
        raise ValueError(
            f"column {with_zone!r} has a time zone and column {without!r} has none, so their clocks may disagree by hours. "
            f"Give {without!r} its zone: dt.tz_localize in pandas, dt.replace_time_zone in polars; of a file by --sql {quote(query)}."
        )


def _are_flags(column: TimeColumn) -> bool:
    return set(np.unique(column.micros[~column.missing])) <= {0, 1_000_000}


def match_keys(table: nw.DataFrame[Any], events: nw.DataFrame[Any], key: str) -> tuple[Ints, pa.Array]:
    """For each outcome the row of its arrival, or -1; and the outcomes' keys."""
    ours, theirs = (to_arrow(frame, key) for frame in (table, events))
    shown = f"{_examples(ours)} in the table of arrivals and {_examples(theirs)} in the table of outcomes"
    ours, theirs = read_keys(ours, key), read_keys(theirs, key)
    refuse_unfit_keys(ours, key, "the table of arrivals")
    if theirs.null_count == len(theirs):  # nothing, of whatever type
        theirs = pa.nulls(len(theirs), ours.type)
    alike = ours.type.equals(theirs.type)
    if not alike:  # numbers and text
        ours, theirs = ours.cast(pa.large_string()), theirs.cast(pa.large_string())
    found = pc.index_in(theirs, value_set=ours)
    if found.null_count == len(found) and len(theirs):
        refuse_unlike_keys(key, ours, theirs, alike, shown)
    unmatched = np.asarray(found.is_null())
    advice = f" Keys are {shown}." if unmatched.sum() > _MANY_UNMATCHED * len(unmatched) else ""
    warn_left_out(unmatched, theirs, key, "matches no arrival", "match no arrival", advice)
    return np.asarray(found.fill_null(-1)).astype(np.int64), theirs


def refuse_unlike_keys(key: str, ours: pa.Array, theirs: pa.Array, alike: bool, shown: str) -> None:
    """Where no outcome matches an arrival: refuse keys that are written differently."""
    padded = len(_stripped(theirs) & _stripped(ours))
    hint = f"Without padding {padded} would match: write" if padded else "Write"
    if padded or not alike:
        raise ValueError(
            f"column {key!r}: no outcome matches an arrival. Keys are {shown}. {hint} both in the same way."
        )


def refuse_unfit_keys(keys: pa.Array, key: str, where: str) -> None:
    """Refuse keys that are missing, or there twice."""
    nulls = np.asarray(keys.is_null())
    refuse(nulls, key, f"{{count}} missing in {where}", ["missing"] * len(nulls), "Drop these rows or give them keys.")
    first_row = np.asarray(pc.index_in(keys, value_set=keys))
    repeated = first_row != np.arange(len(first_row))
    refuse(
        repeated,
        key,
        "{count} a repeat of an earlier key" + (f" in {where}" if "snapshot" in where else ""),
        keys.to_pylist() if repeated.any() else [],
        "Keep one row for each key.",
    )


def read_keys(column: pa.Array, name: str) -> pa.Array:
    """Keys as whole numbers where they are, else as text."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_floating(kind) and len(column):
        numbers = np.asarray(column.fill_null(np.nan), dtype=np.float64)
        known = numbers[~np.isnan(numbers)]
        if np.abs(known).max(initial=0.0) >= 2**53:
            raise ValueError(
                f"column {name!r} holds keys as floating-point numbers, such as {known[np.argmax(np.abs(known))]:.0f}, which have lost "
                f"digits. Read the column as text or as whole numbers."
            )
        if (known == np.rint(known)).all():
            return pa.array(numbers, from_pandas=True).cast(pa.int64())
    if pa.types.is_uint64(kind):
        small = column.null_count == len(column) or pc.max(column).as_py() < 2**63
        return column.cast(pa.int64()) if small else column.cast(pa.large_string())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if is_text(kind) or pa.types.is_null(kind):
        return column.cast(pa.large_string())
    # Whole numbers among others are written as whole numbers, so that they match those of a column without others.
    values = (int(v) if isinstance(v, float) and v.is_integer() else v for v in column.to_pylist())
    return pa.array([None if value is None or value != value else str(value) for value in values], pa.large_string())


def _examples(column: pa.Array) -> str:
    values = list(dict.fromkeys(value for value in column.slice(0, 100).to_pylist() if value is not None))[:3]
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return f"{', '.join(map(repr, values)) or 'all missing'} ({'text' if is_text(kind) else kind})"


def _stripped(keys: pa.Array) -> set[str]:
    """Keys without what padding adds: blanks, zeros in front, and the .0 of a number."""
    return {
        re.sub(r"\.0$", "", str(key).strip().lstrip("0"))
        for key in keys.slice(0, 100_000).to_pylist()
        if key is not None
    }


def refuse_days_among_times(arrived: Ints, came: Ints, early: Bools, outcome: str) -> None:
    """Refuse outcomes stamped by the day beside arrivals that are not: those of the same day would seem to come before."""
    same_day = early & (came // DAY == arrived // DAY)
    if same_day.any() and not (came % DAY).any() and (arrived % DAY).any():
        advice = "Stamp arrivals by the day as well, or outcomes with their time."
        instants = ShownInstants(came, "datetime")
        refuse(
            same_day,
            outcome,
            "{count} stamped by the day and would come before an arrival of that day",
            instants,
            advice,
        )


def warn_left_out(rows: Bools, keys: Any, key: str, one: str, many: str, advice: str = "") -> None:
    """Warn of outcomes that could not be used: how many, why, and the first of them."""
    count = int(rows.sum())
    if count:
        first = int(np.argmax(rows))
        warn(
            f"{count} of {len(rows)} outcomes {f'{one} and was' if count == 1 else f'{many} and were'} left out, the first at row "
            f"{first} of the outcomes ({key}={keys[first].as_py()!r}).{advice}",
            OutcomeWarning,
            stacklevel=4,
        )


def only_known(outcome: str) -> str:
    """What to do where some outcomes have no time."""
    return f"Drop them, or say which rows count: outcome_where='`{outcome}` is not None' (--outcome-where)."


def reach_of(until: Any, latest: int, clock: str) -> int:
    """How far a log reaches, in microseconds: to the latest time in it, or as far as is said."""
    reach = latest if until is None else parse_instant(until, "until", clock)
    if reach < latest:
        raise ValueError(f"until={until!r} is before the latest time in the log, {show_instant(latest, clock)}.")
    if clock != "seconds" and reach > max(latest, tomorrow()):
        raise ValueError(
            f"until={until!r} is in the future, and what happens until then is not known yet: labels would count as final that are "
            f"not. Leave it out, or give the time when the log was written."
        )
    return reach


def tomorrow() -> int:
    return (datetime.now(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) + DAY
