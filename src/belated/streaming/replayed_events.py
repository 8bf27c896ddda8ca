"""ReplayedEvents: the events of a log in the order in which they happened, for a replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.data.event_log import EventLog
from belated.data.times import NEVER
from belated.features.column_encodings import read_numbers
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FieldMatrix
from belated.features.quantiles import weighted_quantiles
from belated.tables.frames import kinds_of, open_table, to_arrow
from belated.typing import Ints

_COLUMNS, _BUCKETS = 2**20, 10


@dataclass(frozen=True)
class ReplayedEvents:
    """The events of a log in order of arrival, with features as fields."""

    log: EventLog
    X: Any
    arrival: Ints
    outcome: Ints
    by_outcome: Ints  # rows that have one, in its order
    outcome_times: Ints

    @property
    def first(self) -> int:
        return int(self.arrival[0])

    @classmethod
    def of(cls, log: EventLog, known_until: int) -> ReplayedEvents:
        """``known_until``: the ranges of numbers come from rows that have arrived by then."""
        X = log.frame if isinstance(log.frame, FieldMatrix) else _fields(log, known_until)
        arrival, outcome = log.times
        if (np.diff(arrival) < 0).any():
            order = np.argsort(arrival, kind="stable")
            arrival, outcome, X = arrival[order], outcome[order], X[order]
        log = EventLog(X, arrival, outcome, log.clock, True, log.until)
        turned = np.flatnonzero(outcome != NEVER)
        turned = turned[np.argsort(outcome[turned], kind="stable")]
        return cls(log, X, arrival, outcome, turned, outcome[turned])

    def arrivals(self, after: int, until: int) -> Ints:
        """Rows that arrive after one instant, and not after another."""
        return np.arange(*np.searchsorted(self.arrival, [after, until], side="right"))

    def outcomes(self, after: int, until: int) -> Ints:
        """Rows that turn positive between the two."""
        return self.by_outcome[slice(*np.searchsorted(self.outcome_times, [after, until], side="right"))]

    def final(self, rows: Ints, horizon: int) -> Any:
        """Whether rows are positive in the end."""
        outcome = self.outcome[rows]
        return (outcome != NEVER) & (outcome - self.arrival[rows] <= horizon)


def _fields(log: EventLog, known_until: int) -> FieldMatrix:
    """The features of a table as hashed fields: categories as they are, numbers by ranges that are known by then."""
    table = open_table(log.frame, "the log")
    known = log.times[0] <= known_until
    edges = {}
    for name, kind in kinds_of(log.frame).items():
        if kind == "number":
            values = read_numbers(to_arrow(table, name), name)
            values = values[known & ~np.isnan(values)]
            edges[name] = weighted_quantiles(values, np.ones(len(values)), _BUCKETS) if len(values) else np.zeros(0)
    return FieldEncoder(table.columns, edges, _COLUMNS, na=log.na).transform(log.frame)
