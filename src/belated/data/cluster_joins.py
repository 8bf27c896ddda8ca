"""Arrivals and outcomes in two tables of a cluster, joined there: the first outcome at or after each arrival."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from belated.data.log_columns import (
    OutcomeWarning,
    TimeNote,
    check_arrivals,
    only_known,
    read_keys,
    read_time_column,
    refuse_unlike_keys,
    table_and_counts,
)
from belated.data.times import TimeColumn, TimeFormat
from belated.notices import warn
from belated.tables.frames import open_table, to_arrow
from belated.tables.refusal import refuse

KEY, ARRIVAL, OUTCOME, FACTS = "belated key", "belated arrival", "belated outcome", "belated facts"
MOST_KEYS = 10_000  # that are looked at where none matches


@dataclass(frozen=True)
class JoinColumns:
    """What of two tables is joined: their columns, which outcomes count, and how times are written."""

    key: str
    arrival: str
    outcome: str
    features: list[str]
    where: str | None = None
    how: TimeFormat = TimeFormat()  # noqa: RUF009 (frozen)

    def in_unit_of(self, arrived: Facts | None) -> JoinColumns:
        """The same, with numbers of outcomes read in the unit in which arrivals were."""
        unit = None if arrived is None else arrived.unit or None
        return replace(self, how=replace(self.how, unit=self.how.unit or unit))

    def check(self, arrivals: Any, outcomes: Any) -> None:
        """Refuse tables without these columns."""
        for table, kind, names in (
            (arrivals, "arrivals", (self.key, self.arrival, *self.features)),
            (outcomes, "outcomes", (self.key, self.outcome)),
        ):
            for name in names:
                if name not in table.columns:
                    raise ValueError(f"the table of {kind} has no column {name!r}; it has {', '.join(table.columns)}.")


@dataclass(frozen=True)
class Facts:
    """How the times and keys of a table were read; one row of a table carries it as text."""

    clock: str
    zoned: bool
    read: str  # how numbers were understood as times
    unit: str
    keys: str  # "numbers" or "text"

    @classmethod
    def of(cls, column: TimeColumn, keys: pa.Array) -> Facts:
        kind = "numbers" if pa.types.is_integer(keys.type) else "text"
        return cls(column.clock, column.zoned, column.note, column.unit or "", kind)

    def __str__(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def agreed(cls, found: Iterable[str], what: str) -> Facts | None:
        """What all partitions of a table that have times agree on; None where none has."""
        known = {cls(**json.loads(text)) for text in found if text}
        known = {one for one in known if one.clock != "empty"}
        if len({(one.clock, one.zoned, one.read) for one in known}) > 1:
            raise unlike_times(what, {(one.clock, one.zoned) for one in known})
        return min(known, key=lambda one: one.keys, default=None)


def unlike_times(what: str, kinds: Iterable[tuple[str, bool]]) -> ValueError:
    names = ", ".join(sorted({f"{clock}{' with a zone' if zoned else ''}" for clock, zoned in kinds}))
    return ValueError(
        f"partitions {what}do not agree on what their times are ({names}). Say so: time_unit= for numbers, time_format= for text."
    )


@dataclass(frozen=True)
class Joined:
    """A frame of features with arrival and first outcome in microseconds, and what was found on the way."""

    frame: Any
    outcomes: int
    unmatched: int
    early: int
    same_day: int  # of the early ones
    repeated: int  # rows whose key came before
    example: dict[str, Any]  # a key of each kind
    latest: int  # of all outcomes that count
    arrived: Facts | None
    came: Facts | None
    first: tuple[int | None, int | None]  # arrival and outcome
    by_the_day: tuple[bool, bool]  # whether all arrivals, and all outcomes, are at midnight
    some_keys: tuple[list[str | None], list[str | None]]  # of arrivals and of outcomes, where none matches
    free: Callable[[], Any]  # lets go of what was kept for the join

    def check(self, asked: JoinColumns) -> None:
        """Refuse what a local log refuses, and warn of outcomes that could not be used."""
        key = asked.key
        if self.arrived is None:
            raise ValueError("the table of arrivals has no rows.")
        if self.came is not None and (self.arrived.clock, self.arrived.zoned) != (self.came.clock, self.came.zoned):
            kinds = [(one.clock, one.zoned) for one in (self.arrived, self.came)]
            raise unlike_times(f"of {asked.arrival!r} and {asked.outcome!r} ", kinds)
        if self.repeated:
            rows = "1 row is" if self.repeated == 1 else f"{self.repeated} rows are"
            raise ValueError(
                f"column {key!r}: {rows} a repeat of an earlier key, one of them {self.example['repeated']!r}. Keep one row for each key."
            )
        if self.outcomes and self.came is not None and self.unmatched == self.outcomes:
            ours, theirs = (pa.array(keys, pa.large_string()) for keys in self.some_keys)
            mine, their = (", ".join(map(repr, keys[:3])) for keys in self.some_keys)
            shown = f"{mine} ({self.arrived.keys}) in the table of arrivals and {their} ({self.came.keys}) in the table of outcomes"
            refuse_unlike_keys(key, ours, theirs, self.arrived.keys == self.came.keys, shown)
        self._warn("unmatched", key, "matches no arrival", "match no arrival")
        if self.same_day and self.by_the_day[1] and not self.by_the_day[0]:
            rows = "1 row is" if self.same_day == 1 else f"{self.same_day} rows are"
            raise ValueError(
                f"column {asked.outcome!r}: {rows} stamped by the day and would come before an arrival of that day. Stamp arrivals by the day as well, or "
                f"outcomes with their time."
            )
        self._warn("early", key, "comes before its arrival", "come before their arrival")

    def _warn(self, name: str, key: str, one: str, many: str) -> None:
        count = getattr(self, name)
        if count:
            warn(
                f"{count} of {self.outcomes} outcomes {f'{one} and was' if count == 1 else f'{many} and were'} left out, one of them with "
                f"{key}={self.example[name]!r}.",
                OutcomeWarning,
                stacklevel=5,
            )

    def notes(self, asked: JoinColumns) -> list[TimeNote]:
        """How numbers were understood as times."""
        return [
            TimeNote(name, facts.read, None if facts.clock == "seconds" else first)
            for name, facts, first in zip(
                (asked.arrival, asked.outcome), (self.arrived, self.came), self.first, strict=True
            )
            if facts is not None and facts.read
        ]


def arrivals_as_numbers(table: Any, asked: JoinColumns) -> pa.Table:
    """Features, keys as text and arrivals in microseconds; on a worker."""
    frame = open_table(table, "the table of arrivals", may_be_empty=True)
    native = frame.select(asked.features).to_arrow()
    if not len(frame):
        return _with(native, [], [], "")
    start = read_time_column(frame, asked.arrival, asked.how)
    check_arrivals(start, asked.arrival)
    keys = read_keys(to_arrow(frame, asked.key), asked.key)
    facts = Facts.of(start, keys)
    nulls = np.asarray(keys.is_null())
    refuse(
        nulls,
        asked.key,
        "{count} missing in the table of arrivals",
        ["missing"] * len(nulls),
        "Drop these rows or give them keys.",
    )
    return _with(native, keys.cast(pa.large_string()), start.micros, str(facts))


def outcomes_as_numbers(table: Any, asked: JoinColumns) -> pa.Table:
    """Keys as text and outcomes in microseconds; on a worker."""
    frame, counts = table_and_counts(table, "the table of outcomes", asked.where, may_be_empty=True)
    if len(frame) and not counts.all():
        frame = frame.filter(counts.tolist())
    empty = pa.table({})
    if not len(frame):
        return _with(empty, [], [], "", OUTCOME)
    end = read_time_column(frame, asked.outcome, asked.how)
    refuse(
        end.missing,
        asked.outcome,
        "{count} missing in the table of outcomes",
        ["missing"] * len(end.missing),
        only_known(asked.outcome),
    )
    keys = read_keys(to_arrow(frame, asked.key), asked.key)
    return _with(empty, keys.cast(pa.large_string()), end.micros, str(Facts.of(end, keys)), OUTCOME)


def told_where(work: Callable[[Any, JoinColumns], pa.Table], table: Any, asked: JoinColumns, where: str) -> pa.Table:
    """A complaint names where its rows are."""
    try:
        return work(table, asked)
    except ValueError as error:
        raise ValueError(f"{where}: {error}" if where else str(error)) from None


def _with(table: pa.Table, keys: Any, micros: Any, facts: str, name: str = ARRIVAL) -> pa.Table:
    columns = {
        KEY: pa.array(keys, pa.large_string()),
        name: pa.array(micros, pa.int64()),
        FACTS: pa.array([facts] * len(micros), pa.large_string()),
    }
    return pa.table({**{name: table[name] for name in table.column_names}, **columns})
