"""What a forecast knows of the rows of a snapshot: labels, ages, when they arrived, what they are worth and which group they are in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from belated.data.event_log import EventLog
from belated.data.snapshot import Snapshot
from belated.features.field_matrix import FieldMatrix
from belated.forecasting.worth import ValueColumn, Worth, one_each
from belated.tables.frames import as_text, open_table, require, take_rows
from belated.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class KnownRows:
    """Rows as they are known at one instant; arrays of shape (n,)."""

    snapshot: Snapshot
    worth: Worth
    in_the_end: Floats  # what each is worth if it turns positive, as is known today
    group: Ints  # the number of the row's group
    groups: tuple[str, ...]

    @classmethod
    def of(
        cls, log: EventLog, at: int, lookback: int, horizon: int, values: ValueColumn | None, group: str | None
    ) -> KnownRows:
        snapshot = log.snapshot_at(at, lookback, horizon)
        n = len(snapshot)
        names, code = (("",), np.zeros(n, dtype=np.int64)) if group is None else _groups(snapshot, group)
        if values is None:
            return cls(snapshot, one_each(n), np.ones(n), code, names)
        age = at - log.times[0]
        mine = (age >= 0) & (age <= lookback)
        return cls(snapshot, values.at(mine, snapshot.y == 1, code), values.in_the_end(mine), code, names)

    @cached_property
    def y(self) -> Bools:
        return self.snapshot.y == 1

    @cached_property
    def elapsed(self) -> Floats:
        return self.snapshot.elapsed

    @cached_property
    def arrival(self) -> Ints:
        """In microseconds on the log's clock."""
        return self.snapshot.as_of_micros - self.snapshot.elapsed_micros

    @property
    def horizon(self) -> float:
        assert self.snapshot.horizon is not None
        return self.snapshot.horizon

    @cached_property
    def unripe(self) -> Bools:
        """Younger than the horizon, so that their labels are not final."""
        return self.elapsed < self.horizon * (1 - 1e-12)

    def take(self, keep: Bools) -> KnownRows:
        s = self.snapshot
        some = replace(
            s,
            X=take_rows(s.X, keep),
            elapsed_micros=s.elapsed_micros[keep],
            delay_micros=s.delay_micros[keep],
        )
        return replace(
            self,
            snapshot=some,
            worth=self.worth.take(keep),
            in_the_end=self.in_the_end[keep],
            group=self.group[keep],
        )


def _groups(snapshot: Snapshot, name: str) -> tuple[tuple[str, ...], Ints]:
    if isinstance(snapshot.X, FieldMatrix):
        raise ValueError(f"group={name!r}: a log of hashed fields has no named columns.")
    table = open_table(snapshot.X, "the log")
    require(table, [name], "the log")
    coded = as_text(table, name).dictionary_encode()
    return tuple(coded.dictionary.to_pylist()), np.asarray(coded.indices, dtype=np.int64)
