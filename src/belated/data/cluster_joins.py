"""Arrivals and outcomes in two tables of a cluster, joined there: the first outcome at or after each arrival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from belated.data.log_columns import OutcomeWarning, check_arrivals, read_keys, read_time_column, table_and_counts
from belated.data.times import TimeFormat
from belated.notices import warn
from belated.tables.frames import open_table, to_arrow
from belated.tables.refusal import refuse

KEY, ARRIVAL, OUTCOME, FACTS = "belated key", "belated arrival", "belated outcome", "belated facts"


@dataclass(frozen=True)
class JoinColumns:
    """What of two tables is joined: their columns, which outcomes count, and how times are written."""

    key: str
    arrival: str
    outcome: str
    features: list[str]
    where: str | None = None
    how: TimeFormat = TimeFormat()  # noqa: RUF009 (frozen)

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
class Joined:
    """A frame of features with arrival and first outcome in microseconds, and what was found on the way."""

    frame: Any
    outcomes: int
    unmatched: int
    early: int
    repeated: int  # rows whose key came before
    example: dict[str, Any]  # a key of each kind
    latest: int  # of all outcomes that count
    facts: set[str]  # how times were understood

    def check(self, key: str) -> None:
        """Refuse repeated keys, and warn of outcomes that could not be used."""
        if self.repeated:
            rows = "1 row is" if self.repeated == 1 else f"{self.repeated} rows are"
            raise ValueError(
                f"column {key!r}: {rows} a repeat of an earlier key, one of them {self.example['repeated']!r}. Keep one row for each key."
            )
        for name, one, many in (
            ("unmatched", "matches no arrival", "match no arrival"),
            ("early", "comes before its arrival", "come before their arrival"),
        ):
            count = getattr(self, name)
            if count:
                warn(
                    f"{count} of {self.outcomes} outcomes {f'{one} and was' if count == 1 else f'{many} and were'} left out, one of them with "
                    f"{key}={self.example[name]!r}.",
                    OutcomeWarning,
                    stacklevel=4,
                )


def arrivals_as_numbers(table: Any, asked: JoinColumns) -> pa.Table:
    """Features, keys as text and arrivals in microseconds; on a worker."""
    frame = open_table(table, "the table of arrivals", may_be_empty=True)
    native = frame.select(asked.features).to_arrow()
    if not len(frame):
        return _with(native, [], [], "")
    start = read_time_column(frame, asked.arrival, asked.how)
    check_arrivals(start, asked.arrival)
    keys = read_keys(to_arrow(frame, asked.key), asked.key)
    nulls = np.asarray(keys.is_null())
    refuse(
        nulls,
        asked.key,
        "{count} missing in the table of arrivals",
        ["missing"] * len(nulls),
        "Drop these rows or give them keys.",
    )
    return _with(native, keys.cast(pa.large_string()), start.micros, _facts(start))


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
        "Drop them.",
    )
    keys = read_keys(to_arrow(frame, asked.key), asked.key).cast(pa.large_string())
    return _with(empty, keys, end.micros, _facts(end), OUTCOME)


def _facts(column: Any) -> str:
    return f"{column.clock}|{column.zoned}|{column.note}"


def _with(table: pa.Table, keys: Any, micros: Any, facts: str, name: str = ARRIVAL) -> pa.Table:
    columns = {
        KEY: pa.array(keys, pa.large_string()),
        name: pa.array(micros, pa.int64()),
        FACTS: pa.array([facts] * len(micros), pa.large_string()),
    }
    return pa.table({**{name: table[name] for name in table.column_names}, **columns})
