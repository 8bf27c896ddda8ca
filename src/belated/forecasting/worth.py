"""What a positive counts: one, or the value in a column, which may be known of all rows or of positives alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.data.event_log import EventLog
from belated.data.times import NEVER
from belated.features.field_matrix import FieldMatrix
from belated.tables.frames import as_numbers, open_table, require
from belated.tables.refusal import refuse
from belated.typing import Bools, Floats, Ints

_LARGEST = 1e100
_ENOUGH = 30  # positives of a group, from which on it has a mean of its own


@dataclass(frozen=True)
class Worth:
    """Of n rows as they are known at one instant.

    A row whose value is not known yet counts what positives of its group are worth on average; ``spread`` is how much these vary, and ``unsure`` the
    squared relative error of that average. Both are 0 where the value is known.
    """

    value: Floats
    spread: Floats
    unsure: Floats

    def variance(self, p: Floats) -> Floats:
        """Of what each row brings, if it turns positive with probability p."""
        found: Floats = self.value**2 * p * np.maximum(1.0 - p, 0.0) + self.spread * p
        return found

    def take(self, keep: Bools) -> Worth:
        return Worth(self.value[keep], self.spread[keep], self.unsure[keep])


@dataclass(frozen=True)
class ValueColumn:
    """The column of a log; ``of_positives`` where rows have none, or 0, until they turn positive."""

    name: str
    values: Floats
    of_positives: bool

    @classmethod
    def read(cls, log: EventLog, name: str) -> ValueColumn:
        if isinstance(log.frame, FieldMatrix):
            raise ValueError(f"value={name!r}: a log of hashed fields has no named columns.")
        table = open_table(log.frame, "the log")
        require(table, [name], "the log")
        values = as_numbers(table, name, "numbers to be summed up")
        positive = log.times[1] != NEVER
        advice = "Forecast gains and losses apart, each as a column of its own."
        refuse(values < 0, name, "{count} negative", values, advice)
        refuse(
            positive & np.isnan(values), name, "{count} positive without a value", values, "Every positive needs one."
        )
        refuse(values > _LARGEST, name, "{count} infinite, or too large to add up", values, "Correct them.")
        missing, given = ~positive & np.isnan(values), ~positive & (values > 0)
        if given.any():
            advice = "Other rows that have not turned positive have one. Give all of them a value, or none."
            refuse(missing, name, "{count} without a value", values, advice)
        return cls(name, values, bool(missing.any() or (not given.any() and (values[positive] > 0).any())))

    def at(self, rows: Bools, y: Bools, group: Ints) -> Worth:
        """Of some rows of the log, of which those with ``y`` are known to be positive."""
        values = self.values[rows]
        nothing = np.zeros(len(values))
        if not self.of_positives:
            return Worth(values, nothing, nothing)
        value, spread, unsure = (np.where(y, values, 0.0), nothing, nothing.copy())
        spread = nothing.copy()
        everywhere = values[y]
        for k in np.unique(group):
            mine = group == k
            known = values[y & mine]
            known = known if len(known) >= _ENOUGH else everywhere
            mean, varies = float(known.mean()), float(known.var())
            later = mine & ~y
            value[later], spread[later] = mean, varies
            unsure[later] = varies / len(known) / mean**2 if mean > 0 else 0.0
        return Worth(value, spread, unsure)

    def in_the_end(self, rows: Bools) -> Floats:
        """What each row is worth if it turns positive, as is known today."""
        return np.nan_to_num(self.values[rows])


def one_each(n: int) -> Worth:
    """Counts."""
    return Worth(np.ones(n), np.zeros(n), np.zeros(n))
