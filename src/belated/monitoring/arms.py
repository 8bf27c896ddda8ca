"""The rows of an experiment: in which arm each is, what is known of it, and which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog
from belated.data.snapshot import Snapshot
from belated.features.field_matrix import FieldMatrix
from belated.tables.frames import decoded, open_table, require, to_arrow
from belated.tables.missing import EMPTY_TEXT, missing_words
from belated.tables.refusal import counted, refuse
from belated.typing import Bools, Floats, Ints

FEWEST = 20  # positives of an arm in rows that have reached an age, to say anything of that age
_MOST_ARMS = 20
_CONTROLS = ("control", "baseline", "a", "0", "false", "off")
_DAYS = 15  # of arrival, from which on they are clusters
_CLUSTERS = 5


@dataclass(frozen=True)
class ArmRows:
    """Arrays of shape (n,); times in days. The control is arm 0."""

    arm: Ints
    names: tuple[str, ...]
    y: Bools
    delay: Floats  # NaN where y is not
    elapsed: Floats
    cluster: Ints
    clusters: str  # what they are
    horizon: float
    as_of: str

    @classmethod
    def of(cls, log: EventLog, treatment: str, control: Any, cluster: str | None, horizon: Any, as_of: Any) -> ArmRows:
        if log.on_cluster:
            raise ValueError("lift wants its rows here: collect the log first.")
        if isinstance(log.frame, FieldMatrix):
            raise ValueError(f"treatment={treatment!r}: a log of hashed fields has no named columns.")
        if cluster == treatment:
            raise ValueError(
                f"cluster={cluster!r} is the treatment: name what was drawn into an arm, such as the user."
            )
        limit = parse_duration(horizon, "horizon", log.clock)
        snapshot = log.latest(None, limit) if as_of is None else log.snapshot(as_of, horizon=horizon)
        arm, names = _arms(_values(snapshot, treatment), treatment, control)
        code, clusters = _clusters(snapshot, cluster)
        y, delay, elapsed = snapshot.y == 1, snapshot.delay, snapshot.elapsed
        return cls(arm, names, y, delay, elapsed, code, clusters, limit / DAY, snapshot.as_of)

    @cached_property
    def positive(self) -> list[Ints]:
        """Of each arm, which rows are positive."""
        return [np.flatnonzero(self.y & (self.arm == k)) for k in range(len(self.names))]

    @cached_property
    def count(self) -> Ints:
        """Rows of each arm."""
        return np.bincount(self.arm, minlength=len(self.names))

    def within(self, age: float) -> ArmRows:
        """The same, where only outcomes up to an age count."""
        y = self.y & (np.where(self.y, self.delay, np.inf) <= age * (1 + 1e-12))
        return replace(self, y=y, delay=np.where(y, self.delay, np.nan), horizon=age)

    def reached(self) -> float:
        """The oldest age, up to the horizon, that enough rows of every arm have reached."""
        found = self.horizon
        for name, mine in zip(self.names, self.positive, strict=True):
            delay, age = np.sort(self.delay[mine]), np.sort(self.elapsed[mine])
            by_then = np.searchsorted(delay, age * (1 + 1e-12), side="right") - np.arange(len(age))
            enough = np.flatnonzero(by_then >= FEWEST)
            if not len(enough):
                raise ValueError(
                    f"arm {name!r} has {counted(len(mine), 'positive')} so far, and at no age {FEWEST} of them in rows that have reached it: too few to say how its labels are "
                    f"delayed. Wait for more, or leave the arm out."
                )
            found = min(found, float(age[enough[-1]]))
        return found


def _values(snapshot: Snapshot, name: str) -> pa.Array:
    """A column as text; every row needs a value."""
    table = open_table(snapshot.X, "the log")
    require(table, [name], "the log")
    values = missing_words(decoded(to_arrow(table, name)), EMPTY_TEXT)
    advice = "Every row needs one; leave rows out that took no part in the experiment."
    refuse(np.asarray(pc.is_null(values, nan_is_null=True)), name, "{count} missing", values, advice)
    return values.cast(pa.large_string())


def _arms(values: pa.Array, treatment: str, control: Any) -> tuple[Ints, tuple[str, ...]]:
    """The number of each row's arm, and the arms, the control first."""
    coded = values.dictionary_encode()
    found = coded.dictionary.to_pylist()
    if not 2 <= len(found) <= _MOST_ARMS:
        raise ValueError(
            f"column {treatment!r} has {counted(len(found), 'value')}, such as {found[0]!r}; an experiment has 2 to {_MOST_ARMS} arms."
        )
    first = _control(sorted(found), treatment, control)
    names = (first, *sorted(name for name in found if name != first))
    number = np.array([names.index(name) for name in found])
    return number[np.asarray(coded.indices)], names


def _control(names: Sequence[str], treatment: str, control: Any) -> str:
    listed = ", ".join(map(repr, names))
    if control is None:
        likely = [name for name in names if name.casefold() in _CONTROLS]
        if len(likely) != 1:
            raise ValueError(f"column {treatment!r} has the arms {listed}: say which of them is the control.")
        return likely[0]
    asked = str(control).lower() if isinstance(control, bool | np.bool_) else str(control)
    if asked not in names:
        raise ValueError(f"control={control!r} is no arm of column {treatment!r}, whose arms are {listed}.")
    return asked


def _clusters(snapshot: Snapshot, name: str | None) -> tuple[Ints, str]:
    """Which rows belong together: those of a cluster, of a day where there are enough of them, or none."""
    if name is not None:
        coded = _values(snapshot, name).dictionary_encode()
        if len(coded.dictionary) < _CLUSTERS:
            raise ValueError(
                f"cluster={name!r} has {counted(len(coded.dictionary), 'value')}: how far results vary between so few cannot be "
                f"told. Name what was drawn into an arm, such as the user."
            )
        return np.asarray(coded.indices, dtype=np.int64), name
    days, code = np.unique((snapshot.as_of_micros - snapshot.elapsed_micros) // DAY, return_inverse=True)
    if len(days) >= _DAYS:
        return code, "days of arrival"
    return np.arange(len(snapshot)), "rows"
