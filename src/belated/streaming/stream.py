"""Stream: a state machine that turns arrivals and outcomes into the records from which methods learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from belated.compiling import njit
from belated.data.durations import parse_duration
from belated.data.times import NEVER, show_instant
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FieldMatrix
from belated.streaming.growing_columns import GrowingColumn
from belated.streaming.key_map import KeyMap
from belated.streaming.methods import resolve_stream_method
from belated.streaming.methods.base import Moments, StreamMethod
from belated.streaming.stream_records import LATE, MATURE_EARLY, MATURE_LATE, MATURE_NEGATIVE, Records
from belated.streaming.telling import HowTold, read_instant, read_keys, read_rows, read_told
from belated.typing import Bools, Ints

_LONG_AGO = -(2**62)
_NONE = np.zeros(0, dtype=np.int64)
_PARTS = ("time", "row", "label", "delay", "kind")
_COUNTS = (
    "arrivals",  # rows taken in
    "repeated_arrivals",  # of a key that is known
    "late_arrivals",  # of these, later than the tolerance: they count as having come when they were known
    "expired_arrivals",  # older than the horizon when they were known: nothing could be learned from them
    "outcomes",  # that made a row positive
    "repeated_outcomes",  # of a row that is positive already
    "late_outcomes",  # of those that made a row positive, later than the tolerance, likewise
    "early_outcomes",  # before the arrival of their row
    "outcomes_beyond_horizon",
    "unmatched_outcomes",  # of no row that is known, or was within two horizons
)


class Stream:
    """Rows arrive, some turn positive, time goes on; out come records whose labels were known at their time.

    It has no clock and no thread: :meth:`arrive` and :meth:`outcome` say what happened, :meth:`advance` says how late it is, and
    :meth:`records` gives what has become known since it was last asked. Arrivals and outcomes may be told in any order, as
    long as each is told before ``advance`` passes its time by more than ``tolerance``. What comes later still is not lost: it
    counts as having happened when it became known. ``counts`` says how often each irregularity occurred.

    Parameters
    ----------
    methods : str, StreamMethod, or sequence or mapping of them
        For whom records are made.
    horizon : duration
        A row is positive if its outcome comes within this long.
    window : duration, optional
        How long methods wait for a first label; those with none do not need it.
    tolerance : duration, optional
        How far behind events may be told. Records wait as long.

    Examples
    --------
    >>> stream = Stream("es-dfm", window="1h", horizon="7d")
    >>> stream.arrive(["a", "b"], np.eye(2), ["2024-03-01T10:00", "2024-03-01T10:30"])
    >>> stream.outcome(["b"], ["2024-03-02T09:00"])
    >>> stream.advance("2024-03-03")
    >>> found = stream.records()
    >>> [(row, bool(label)) for row, label in zip(found.row.tolist(), found.label)]
    [(0, False), (1, False), (1, True)]
    """

    def __init__(
        self, methods: Any = "hazard-heads", *, horizon: Any, window: Any = None, tolerance: Any = None
    ) -> None:
        self.methods = _named(methods)
        self._horizon = parse_duration(horizon, "horizon", "seconds")
        self._window = None if window is None else parse_duration(window, "window", "seconds")
        self._tolerance = 0 if tolerance is None else parse_duration(tolerance, "tolerance", "seconds")
        self._moments = {name: method.moments(self._window, self._horizon) for name, method in self.methods.items()}
        self._keep = max([self._horizon, *(max(m.ages, default=0) for m in self._moments.values())])
        self.counts = dict.fromkeys(_COUNTS, 0)
        self._clock: HowTold | None = None
        self._now = _LONG_AGO
        self._key, self._time, self._delay = (GrowingColumn(np.zeros(0, dtype=np.int64)) for _ in range(3))
        self._X: GrowingColumn | None = None
        self._n_columns: int | None = None  # of FieldMatrix
        self._encoder: FieldEncoder | None = None
        self._map = KeyMap()
        # Events that have been told: key, time, true time, and features of arrivals.
        self._arriving: list[tuple[Any, ...]] = []
        self._turning: list[tuple[Any, ...]] = []
        self._waiting: tuple[Any, ...] = (_NONE, _NONE, _NONE)  # outcomes whose arrival is not known
        self._moved: dict[int, int] = {}  # rows whose arrival was told too late, and its true time
        self._made: dict[str, list[Records]] = {name: [] for name in self.methods}

    @property
    def now(self) -> int:
        """Up to when everything is known, in microseconds."""
        return self._now

    @property
    def pending(self) -> int:
        """How many rows have not reached the horizon."""
        return 0 if self._X is None else len(self._X)

    @property
    def nbytes(self) -> int:
        """The memory that pending rows take, and records that nobody has asked for."""
        columns = [self._key, self._time, self._delay, *([] if self._X is None else [self._X])]
        unread = [records.nbytes for made in self._made.values() for records in made]
        return sum(column.nbytes for column in columns) + self._map.nbytes + sum(unread)

    def __repr__(self) -> str:
        when = (
            "nothing yet"
            if self._now == _LONG_AGO
            else show_instant(self._now, self._clock.clock if self._clock else "datetime")
        )
        return f"Stream({', '.join(self.methods)}: known up to {when}, {self.pending} rows pending)"

    def moments(self, method: str) -> Moments:
        """When the records of a method are made."""
        return self._moments[method]

    def arrive(self, keys: Any, X: Any, times: Any) -> None:
        """Rows with their keys, features and times of arrival.

        X is a FieldMatrix, an array of numbers, or a table of categories, which is hashed (:meth:`FieldMatrix.from_frame`).
        """
        if not len(keys) and not len(times):
            return
        key, told, rows = read_keys(keys), read_told(times, self._clock), read_rows(X, self._encoder)
        if not len(key) == len(told.micros) == len(rows.values):
            raise ValueError(f"there are {len(key)} keys, {len(told.micros)} times and {len(rows.values)} rows of X.")
        if self._X is not None:
            rows.require_like(self._X.values, self._n_columns)
        # All is well, so from now on this is what the stream is like.
        self._clock, self._n_columns = told.how, rows.n_columns
        self._encoder = self._encoder or rows.encoder
        if self._X is None:
            self._X = GrowingColumn(rows.values[:0].copy())
        # A copy, since the caller may use its arrays again.
        self._arriving.append((key, self._not_before_now(told.micros), told.micros, rows.values.copy()))

    def outcome(self, keys: Any, times: Any) -> None:
        """Rows that turned positive, by their keys, and when."""
        if not len(keys) and not len(times):
            return
        key, told = read_keys(keys), read_told(times, self._clock)
        if len(key) != len(told.micros):
            raise ValueError(f"there are {len(key)} keys and {len(told.micros)} times.")
        self._clock = told.how
        self._turning.append((key, self._not_before_now(told.micros), told.micros))

    def advance(self, to: Any) -> None:
        """It is now ``to``: whatever happened before that, less the tolerance, has been told."""
        until = read_instant(to, self._clock) - self._tolerance
        before, self._now = self._now, max(self._now, until)
        self._take_arrivals(before)
        row, delay = self._take_outcomes()
        for name, method in self.methods.items():
            self._emit(name, method, before, row, delay)
        self._forget()

    def records(self, method: str | None = None) -> Records:
        """What one method is to learn, since it was last asked; with several methods, say which."""
        if method is None and len(self.methods) > 1:
            raise ValueError(f"this stream is for several methods: say which of {', '.join(self.methods)}.")
        name = next(iter(self.methods)) if method is None else method
        if name not in self._made:
            raise ValueError(f"method={name!r} is none of this stream's: {', '.join(self.methods)}.")
        made, self._made[name] = self._made[name], []
        return Records.joined(made) if made else self._gather(np.zeros(0, dtype=np.int64), [])

    # What a checkpoint keeps.

    def parameters(self) -> str:
        """What it was made with, in words."""
        made_for = ", ".join(f"{name}={one!r}" for name, one in self.methods.items())
        return f"Stream({made_for}, window={self._window}, horizon={self._horizon}, tolerance={self._tolerance})"

    def about(self) -> dict[str, Any]:
        """What it knows, apart from rows, as plain data."""
        encoder = None if self._encoder is None else self._encoder.as_plain_data()
        return {
            "now": self._now,
            "clock": None if self._clock is None else astuple(self._clock),
            "counts": self.counts,
            "columns": self._n_columns,
            "encoder": encoder,
        }

    def state(self) -> dict[str, Any]:
        """Rows and events, as arrays."""
        found: dict[str, Any] = {"first": np.array(self._key.first), "waiting": np.stack(self._waiting)}
        found |= {"key": self._key.values, "time": self._time.values, "delay": self._delay.values}
        found["moved"] = np.array([*self._moved.items()], dtype=np.int64).reshape(-1, 2)
        if self._X is not None:
            found |= {"X": self._X.values, "X_first": np.array(self._X.first)}
        for name, batches in (("arriving", self._arriving), ("turning", self._turning)):
            if batches:
                columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
                found |= {f"{name}/{k}": column for k, column in enumerate(columns)}
        for name, made in self._made.items():
            if made:
                records = Records.joined(made)
                rows = records.X.indices if isinstance(records.X, FieldMatrix) else records.X
                found[f"made/{name}/X"] = rows
                found |= {f"made/{name}/{part}": getattr(records, part) for part in _PARTS}
        return found

    def restore(self, state: dict[str, Any], about: dict[str, Any]) -> None:
        """Become what :meth:`state` and :meth:`about` were taken of."""
        self._now, self.counts = about["now"], dict(about["counts"])
        self._clock = None if about["clock"] is None else HowTold(*about["clock"])
        self._n_columns = about["columns"]
        self._encoder = None if about["encoder"] is None else FieldEncoder(**about["encoder"])
        first = int(state["first"])
        self._key, self._time, self._delay = (GrowingColumn(state[name], first) for name in ("key", "time", "delay"))
        self._X = GrowingColumn(state["X"], int(state["X_first"])) if "X" in state else None
        self._waiting = tuple(state["waiting"])
        self._moved = {int(row): int(when) for row, when in state["moved"]}
        self._map = KeyMap()
        self._map.put(self._key.values, first, first, _NONE)
        batches = [
            [state[f"{name}/{k}"] for k in range(4) if f"{name}/{k}" in state] for name in ("arriving", "turning")
        ]
        self._arriving, self._turning = ([tuple(batch)] if batch else [] for batch in batches)
        for name in self.methods:
            self._made[name] = []
            if f"made/{name}/X" in state:
                X = state[f"made/{name}/X"]
                if self._n_columns is not None:
                    X = FieldMatrix._trusted(X, self._n_columns)
                    X.encoder = self._encoder
                self._made[name] = [Records(X, *(state[f"made/{name}/{part}"] for part in _PARTS))]

    # What follows reads events.

    def _not_before_now(self, micros: Ints) -> Ints:
        """When events count as having happened: what is told too late happens next."""
        return np.maximum(micros, self._now + 1)

    # What follows moves the clock.

    def _take_arrivals(self, before: int) -> None:
        ready, self._arriving = _split(self._arriving, self._now)
        if not ready:
            return
        key, time, true_time, X = _by_time([np.concatenate(parts) for parts in zip(*ready, strict=True)])
        moved = true_time < time
        too_old = moved & (true_time <= before - self._horizon)
        if too_old.any():
            self.counts["expired_arrivals"] += int(too_old.sum())
            key, time, true_time, X, moved = (v[~too_old] for v in (key, time, true_time, X, moved))
        first = self._key.first + len(self._key)
        known = self._map.put(key, first, self._key.first, self._key.values)
        new = known < 0
        self.counts["repeated_arrivals"] += int(len(new) - new.sum())
        self.counts["late_arrivals"] += int((moved & new).sum())
        self.counts["arrivals"] += int(new.sum())
        for place in np.flatnonzero(moved[new]):
            self._moved[first + int(place)] = int(true_time[new][place])
        self._key.add(key[new])
        self._time.add(time[new])
        self._delay.add(np.full(int(new.sum()), NEVER))
        assert self._X is not None
        self._X.add(X[new])

    def _take_outcomes(self) -> tuple[Ints, Ints]:
        """Rows that have turned positive, and after how long."""
        ready, self._turning = _split(self._turning, self._now)
        key, time, true_time = _by_time([np.concatenate(p) for p in zip(self._waiting, *ready, strict=True)])
        row = self._map.get(key, self._key.first)
        absent = row < 0
        old = absent & (time <= self._now - 2 * self._horizon)
        self.counts["unmatched_outcomes"] += int(old.sum())
        self._waiting = tuple(column[absent & ~old] for column in (key, time, true_time))
        row, time, true_time = row[~absent], time[~absent], true_time[~absent]
        arrived = self._time.values[row - self._key.first]
        early = true_time < arrived
        for place in np.flatnonzero(early) if self._moved else ():
            # An arrival that was told too late is older than it counts.
            if true_time[place] >= self._moved.get(int(row[place]), NEVER):
                early[place], time[place] = False, max(int(time[place]), int(arrived[place]))
        self.counts["early_outcomes"] += int(early.sum())
        row, time, late = row[~early], time[~early], (true_time < time)[~early]
        found = np.empty(len(row), dtype=np.int8)
        _turn(row - self._key.first, time, self._time.values, self._delay.values, self._horizon, found)
        self.counts["outcomes"] += int((found == 0).sum())
        self.counts["late_outcomes"] += int((late & (found == 0)).sum())
        self.counts["repeated_outcomes"] += int((found == 1).sum())
        self.counts["outcomes_beyond_horizon"] += int((found == 2).sum())
        row = row[found == 0]
        return row, self._delay.values[row - self._key.first]

    def _emit(self, name: str, method: StreamMethod, before: int, row: Ints, delay: Ints) -> None:
        """The records of one method that have become known since ``before``."""
        moments, parts = self._moments[name], []
        time, first = self._time.values, self._time.first
        for k, age in enumerate(moments.ages):
            mine = slice(*np.searchsorted(time, [before - age, self._now - age], side="right"))
            waited = self._delay.values[mine]
            kept, label, kind = method.at_age(k, waited, moments)
            parts.append(_part(np.arange(mine.start, mine.stop) + first, time[mine] + age, label, waited, kind, kept))
        if len(row):
            kept = method.at_outcome(delay, moments)
            if kept is not None:
                when = time[row - first] + delay
                parts.append(_part(row, when, np.ones(len(row), dtype=bool), delay, LATE, kept))
        parts.append(self._mature(before, moments, positives=not (method.has_auxiliary or method.sees_mature)))
        if any(len(part[0]) for part in parts):
            self._made[name].append(self._gather(*_in_order(parts)))

    def _mature(self, before: int, moments: Moments, positives: bool) -> tuple[Any, ...]:
        """Rows that have reached the horizon, for auxiliary models; or the positives among them, for their delays."""
        time, first = self._time.values, self._time.first
        edges = [before - self._horizon, self._now - self._horizon]
        mine = slice(*np.searchsorted(time, edges, side="right"))
        delay = self._delay.values[mine]
        kind = np.where(delay <= moments.window, MATURE_EARLY, np.where(delay != NEVER, MATURE_LATE, MATURE_NEGATIVE))
        positive, row = delay != NEVER, np.arange(mine.start, mine.stop) + first
        return _part(row, time[mine] + self._horizon, positive, delay, kind, positive if positives else None)

    def _gather(self, row: Ints, rest: Sequence[Any]) -> Records:
        """Records with their features."""
        X: Any = np.zeros((0, 0)) if self._X is None else self._X.values[row - self._X.first]
        if self._n_columns is not None:
            X = FieldMatrix._trusted(X, self._n_columns)
            X.encoder = self._encoder
        nothing = (_NONE, np.zeros(0, dtype=bool), _NONE, np.zeros(0, dtype=np.int16))
        time, label, delay, kind = rest or nothing
        return Records(X, time, row, label, delay, kind)

    def _forget(self) -> None:
        """Drop the features of rows whose last record is made, and the keys of those two horizons old."""
        time = self._time.values
        done, gone = np.searchsorted(
            time, [self._now - self._keep, self._now - self._keep - self._horizon], side="right"
        )
        if self._X is not None:
            self._X.drop(self._time.first + int(done))
        below = self._time.first + int(gone)
        for column in (self._key, self._time, self._delay):
            column.drop(below)
        self._moved = {row: when for row, when in self._moved.items() if row >= below}


def _named(methods: Any) -> dict[str, StreamMethod]:
    if isinstance(methods, str | StreamMethod):
        methods = [methods]
    if not methods:
        raise ValueError("methods is empty: name at least one.")
    if isinstance(methods, Mapping):
        return {name: resolve_stream_method(one) for name, one in methods.items()}
    found: dict[str, StreamMethod] = {}
    for one in methods:
        name = one if isinstance(one, str) else one.name
        if name in found:
            raise ValueError(
                f"two methods are called {name!r}: give them names, as in methods={{'one': ..., 'other': ...}}."
            )
        found[name] = resolve_stream_method(one)
    return found


def _by_time(columns: list[Any]) -> list[Any]:
    """Columns of events, the second of which is their time, in its order."""
    order = np.argsort(columns[1], kind="stable")
    return [column[order] for column in columns]


def _split(batches: list[tuple[Any, ...]], now: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What has happened by now, and what is still to happen."""
    ready, later = [], []
    for batch in batches:
        past = batch[1] <= now
        if past.all():
            ready.append(batch)
        elif not past.any():
            later.append(batch)
        else:
            ready.append(tuple(part[past] for part in batch))
            later.append(tuple(part[~past] for part in batch))
    return ready, later


@njit()
def _turn(row: Ints, time: Ints, start: Ints, delay: Ints, horizon: int, found: Any) -> None:
    """Mark rows as positive, in order of time: 0 done, 1 it was already, 2 beyond the horizon."""
    for i in range(row.size):
        waited = time[i] - start[row[i]]
        if delay[row[i]] != NEVER:
            found[i] = 1
        elif waited > horizon:
            found[i] = 2
        else:
            delay[row[i]], found[i] = waited, 0


def _part(row: Ints, time: Ints, label: Bools, delay: Ints, kind: Any, kept: Bools | None) -> tuple[Any, ...]:
    """Columns of records; delays that were not over at their time are not told."""
    known = np.where(label, delay, NEVER)
    columns = (row, time, label, known, np.broadcast_to(np.asarray(kind, dtype=np.int16), row.shape))
    return columns if kept is None else tuple(column[kept] for column in columns)


def _in_order(parts: list[tuple[Any, ...]]) -> tuple[Ints, list[Any]]:
    """Rows, and the other columns, by time; at the same time in the order in which they were made."""
    row, *rest = _by_time([np.concatenate(column) for column in zip(*parts, strict=True)])
    return row, rest
