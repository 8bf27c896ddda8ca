"""EventLog: who arrived when, and who turned positive when."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from belated.cluster.sharded import Sharded, add_up, by_rows
from belated.data.durations import DAY, parse_duration
from belated.data.log_columns import (
    ShownInstants,
    TimeNote,
    check_arrivals,
    check_clocks,
    feature_names,
    match_keys,
    notes_on,
    only_known,
    reach_of,
    read_time_column,
    refuse_days_among_times,
    table_and_counts,
    tomorrow,
    warn_left_out,
)
from belated.data.repeated_exports import read_snapshots
from belated.data.snapshot import Snapshot
from belated.data.times import NEVER, TimeColumn, TimeFormat, parse_instant, show_instant
from belated.features.cluster_table import ClusterTable, collect_table
from belated.features.field_matrix import FieldMatrix
from belated.notices import logger
from belated.tables.frames import decoded, open_table, require, take_rows, to_arrow, without_words
from belated.tables.missing import words_of
from belated.tables.refusal import refuse
from belated.typing import Bools, Ints


def require_log(log: Any, asker: str) -> None:
    """Refuse a table, and say how a log is made of it."""
    if not isinstance(log, EventLog):
        raise TypeError(
            f"{asker} wants an EventLog, got {type(log).__name__}. Of a table: EventLog.from_frame(table, arrival=..., outcome=...)."
        )


class EventLog:
    """Facts about samples: features, the instant of arrival, and the instant of the outcome if there was one.

    Make one with :meth:`from_frame`, :meth:`from_frames` or :meth:`from_snapshots`; then :meth:`snapshot` gives what was known at an instant
    and :meth:`matured` the final labels. Times are datetimes (with a zone, or without one and then read as UTC), ISO
    8601 strings, or seconds as numbers. The rows need not be sorted. ``notes`` says how times were understood where they
    could be read in more than one way.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({
    ...     "campaign": ["a", "a", "b"],
    ...     "click_time": ["2024-03-01", "2024-03-02", "2024-03-04"],
    ...     "conversion_time": ["2024-03-03", None, "2024-03-09"],
    ... })
    >>> log = EventLog.from_frame(df, arrival="click_time", outcome="conversion_time")
    >>> log
    EventLog(rows=3, positive=2, features=['campaign'], from 2024-03-01 00:00:00+00:00 to 2024-03-09 00:00:00+00:00, times without a zone read as UTC)
    >>> snap = log.snapshot(as_of="2024-03-05", lookback="21d", horizon="30d")
    >>> snap.y.tolist(), snap.elapsed.tolist(), snap.delay.tolist()
    ([1, 0, 0], [4.0, 3.0, 1.0], [2.0, nan, nan])
    """

    def __init__(
        self,
        frame: Any,
        arrival: Ints,
        outcome: Ints,
        clock: str,
        zoned: bool,
        until: int,
        na: Sequence[str] = (),
        notes: Sequence[Any] = (),
    ) -> None:
        self._frame = frame
        self._arrival = arrival
        self._outcome = outcome
        self._clock = clock
        self._zoned = zoned
        self._until = until
        self.na = tuple(na)
        self.notes = [str(note) for note in notes]
        self.times_read = [note for note in notes if isinstance(note, TimeNote)]

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        arrival: str,
        outcome: str,
        features: Sequence[str] | None = None,
        until: Any = None,
        outcome_where: str | None = None,
        time_format: str | None = None,
        time_unit: str | None = None,
        na: Sequence[str] = (),
    ) -> EventLog:
        """Read a log from one table.

        Parameters
        ----------
        frame : table
            Of pandas, polars or pyarrow, or what Arrow can read: a lazy frame, a DuckDB relation, a stream of batches.
        arrival, outcome : str
            Columns of times. A missing outcome means none has been seen.
        features : sequence of str, optional
            Feature columns; by default all the others, but for those that ``outcome_where`` looks at.
        until : instant, optional
            How far the log reaches. By default the latest time in it.
        outcome_where : str, optional
            An outcome counts only where this holds, as in ``'status == "won"'``; see
            :class:`belated.tables.conditions.Condition`.
        time_format : str, optional
            How times are written as text, where that is not ISO 8601: ``"%d.%m.%Y"``, say, or ``"dayfirst"``.
        time_unit : {"s", "ms", "us", "ns"}, optional
            What times count where they are numbers. By default their size tells, and ``notes`` says what was understood.
        na : sequence of str
            Words that mean a missing value in features of text, beside empty text.
        """
        how = TimeFormat(time_format, time_unit)
        table, counts = table_and_counts(frame, "the log", outcome_where)
        require(table, [arrival, outcome], "the log")
        chosen = feature_names(features, table, (arrival, outcome), "the log", outcome_where)
        if arrival == outcome:
            raise ValueError(f"arrival and outcome name the same column, {arrival!r}.")
        arrivals = read_time_column(table, arrival, how)
        outcomes = read_time_column(table, outcome, how.in_unit_of(arrivals))
        check_arrivals(arrivals, arrival)
        check_clocks(arrivals, arrival, outcomes, outcome)
        missing = outcomes.missing | ~counts
        early = ~missing & (outcomes.micros < arrivals.micros)
        refuse(
            early,
            outcome,
            "{count} before the arrival",
            ShownInstants(outcomes.micros, arrivals.clock),
            "Correct these times, drop the rows, or empty the outcome if it belongs to something else.",
        )
        return cls._build(
            table,
            chosen,
            arrivals,
            np.where(missing, NEVER, outcomes.micros),
            int(outcomes.micros[~outcomes.missing].max(initial=-NEVER)),
            until,
            na,
            notes_on({arrival: arrivals, outcome: outcomes}),
        )

    @classmethod
    def from_frames(
        cls,
        arrivals: Any,
        outcomes: Any,
        *,
        key: str,
        arrival: str,
        outcome: str,
        features: Sequence[str] | None = None,
        until: Any = None,
        outcome_where: str | None = None,
        time_format: str | None = None,
        time_unit: str | None = None,
        na: Sequence[str] = (),
    ) -> EventLog:
        """Read a log from a table of arrivals and a table of outcomes that share the column ``key``.

        The first outcome at or after an arrival counts. Outcomes that match no arrival, or that come before theirs, are
        left out with an :class:`OutcomeWarning` that counts them. ``outcome_where`` is about the table of outcomes; the other
        parameters are those of :meth:`from_frame`.
        """
        how = TimeFormat(time_format, time_unit)
        table = open_table(arrivals, "the table of arrivals")
        events, counts = table_and_counts(outcomes, "the table of outcomes", outcome_where, may_be_empty=True)
        require(table, [key, arrival], "the table of arrivals")
        chosen = feature_names(features, table, (key, arrival, outcome), "the table of arrivals")
        require(events, [key, outcome], "the table of outcomes")
        if not counts.all():
            events = events.filter(counts.tolist())
        start = read_time_column(table, arrival, how)
        end = read_time_column(events, outcome, how.in_unit_of(start))
        check_arrivals(start, arrival)
        check_clocks(start, arrival, end, outcome)
        row_of, keys = match_keys(table, events, key)
        refuse(
            end.missing,
            outcome,
            "{count} missing in the table of outcomes",
            ["missing"] * len(end.missing),
            only_known(outcome),
        )
        unmatched = row_of < 0
        early = ~unmatched & (end.micros < start.micros[row_of])
        refuse_days_among_times(start.micros[row_of], end.micros, early, outcome)
        warn_left_out(early, keys, key, "comes before its arrival", "come before their arrival")
        usable = ~unmatched & ~early
        first = np.full(len(table), NEVER)
        np.minimum.at(first, row_of[usable], end.micros[usable])
        latest, notes = int(end.micros[usable].max(initial=-NEVER)), notes_on({arrival: start, outcome: end})
        return cls._build(table, chosen, start, first, latest, until, na, notes)

    @classmethod
    def from_snapshots(
        cls,
        snapshots: Any,
        *,
        key: str,
        arrival: str,
        outcome: str | None = None,
        taken: str | None = None,
        features: Sequence[str] | None = None,
        outcome_where: str | None = None,
        time_format: str | None = None,
        time_unit: str | None = None,
        na: Sequence[str] = (),
    ) -> EventLog:
        """Read a log from copies of one table that were made on different days, where no copy says when a row turned positive.

        The first snapshot in which a row is positive dates its outcome. Features are those of the first snapshot that has the
        row: later ones may know more than was known at arrival. Rows that arrived before the first snapshot could have seen
        them arrive are left out, since nobody knows when they turned positive, and ``notes`` says how many.

        Parameters
        ----------
        snapshots : mapping of instants to tables, sequence of pairs (instant, table), or one table
            A date without a time means the end of that day where rows of the day are in it.
        key, arrival : str
            Columns of every table.
        outcome : str, optional
            A column of truth values, or 0 and 1. Not needed where ``outcome_where`` says what is positive.
        taken : str, optional
            Of one table, the column that says when each row was copied.
        features, outcome_where, time_format, time_unit, na
            As in :meth:`from_frame`.

        Examples
        --------
        >>> import pandas as pd
        >>> day1 = pd.DataFrame({"id": [1, 2], "day": ["2024-03-01"] * 2, "paid": [False, False]})
        >>> day2 = pd.DataFrame({"id": [1, 2, 3], "day": ["2024-03-01"] * 2 + ["2024-03-02"], "paid": [True, False, False]})
        >>> log = EventLog.from_snapshots({"2024-03-01": day1, "2024-03-02": day2}, key="id", arrival="day", outcome="paid")
        >>> log.snapshot("2024-03-02").delay.tolist()
        [1.0, nan, nan]
        """
        history = read_snapshots(
            snapshots, key, arrival, outcome, taken, outcome_where, TimeFormat(time_format, time_unit)
        )
        others = tuple(name for name in (key, arrival, outcome, taken) if name is not None)
        chosen = feature_names(features, history.table, others, "the snapshots", outcome_where)
        return cls._build(
            history.table, chosen, history.arrivals, history.outcome, history.until, None, na, history.notes
        )

    @classmethod
    def from_dask(
        cls,
        frame: Any,
        outcomes: Any = None,
        *,
        arrival: str,
        outcome: str,
        key: str | None = None,
        until: Any = None,
        hash_columns: int | None = None,
        **options: Any,
    ) -> EventLog:
        """Read a log from a Dask DataFrame; its rows stay on the workers.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            A client must be there: ``dask.distributed.Client(...)``.
        outcomes : dask.dataframe.DataFrame, optional
            A table of outcomes that shares the column ``key`` with ``frame``, as in :meth:`from_frames`. Dask does the join, after which rows have
            another order.
        hash_columns : int, optional
            Hash every feature into so many columns, as :func:`belated.ingest_parquet` does: for categories with very many values.
        arrival, outcome, until
            And ``features``, ``outcome_where``, ``time_format``, ``time_unit`` and ``na``: as in :meth:`from_frame`.
        """
        from belated.data.cluster_logs import DASK, log_on_engine

        names = {"arrival": arrival, "outcome": outcome, "key": key}
        return log_on_engine(cls, DASK, frame, outcomes, names, until, hash_columns, options)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        outcomes: Any = None,
        *,
        arrival: str,
        outcome: str,
        key: str | None = None,
        until: Any = None,
        hash_columns: int | None = None,
        **options: Any,
    ) -> EventLog:
        """The same from Spark DataFrames; rows stay on the executors, whose Python must have belated."""
        from belated.data.cluster_logs import SPARK, log_on_engine

        names = {"arrival": arrival, "outcome": outcome, "key": key}
        return log_on_engine(cls, SPARK, frame, outcomes, names, until, hash_columns, options)

    @classmethod
    def open(cls, folder: str | Path) -> EventLog:
        """Open what :mod:`belated.data.ingest` wrote, without loading it: features are a memory-mapped ``FieldMatrix``."""
        folder = Path(folder)
        fields = FieldMatrix.open(folder)
        try:
            about = json.loads((folder / "log.json").read_text())
            arrival, outcome = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("arrival", "outcome"))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{folder} holds no log ({error}). Make one with belated.ingest_parquet or ingest_criteo."
            ) from None
        return cls(fields, arrival, outcome, about["clock"], about["zoned"], about["until"])

    @classmethod
    def _build(
        cls,
        table: nw.DataFrame[Any],
        features: Sequence[str],
        arrivals: TimeColumn,
        outcome: Ints,
        latest_outcome: int,
        until: Any,
        na: Sequence[str],
        notes: Sequence[Any],
    ) -> EventLog:
        latest = max(int(arrivals.micros.max()), latest_outcome)
        reach = reach_of(until, latest, arrivals.clock)
        words = words_of(na)
        frame = without_words(table.select(list(features)), words).to_native()
        log = cls(frame, arrivals.micros, outcome, arrivals.clock, arrivals.zoned, reach, words, notes)
        logger.info("%r", log)
        for note in notes:
            logger.info("%s", note)
        return log

    def refuse_future(self, arrival: str, outcome: str) -> None:
        """Refuse datetimes after tomorrow: a log holds what has happened. The columns are named for the complaint."""
        if self._clock == "seconds":
            return
        if self.on_cluster:
            latest = max(self.last, int(np.where(self._outcome == NEVER, 0, self._outcome).max()))
            if latest > tomorrow():
                raise ValueError(
                    f"the latest time in the log, {show_instant(latest, self._clock)}, is in the future. Correct such times, or empty the "
                    f"outcome where it means 'never'."
                )
            return
        for name, micros in ((arrival, self._arrival), (outcome, np.where(self._outcome == NEVER, 0, self._outcome))):
            advice = "Correct these times, or empty the outcome where it means 'never'."
            refuse(micros > tomorrow(), name, "{count} in the future", ShownInstants(micros, self._clock), advice)

    @property
    def features(self) -> list[str]:
        """Names of the feature columns; numbers where they are fields of unknown names."""
        if isinstance(self._frame, ClusterTable):
            return self._frame.columns
        if isinstance(self._frame, FieldMatrix):
            if self._frame.encoder is not None:
                return self._frame.encoder.columns
            return [f"field {j}" for j in range(self._frame.n_fields)]
        return list(nw.from_native(self._frame, eager_only=True).columns)

    @property
    def frame(self) -> Any:
        """The features of all rows."""
        return self._frame

    @property
    def times(self) -> tuple[Ints, Ints]:
        """When each row arrived, and when its outcome came (the largest number there is: never), in microseconds on its clock."""
        return self._arrival, self._outcome

    @property
    def clock(self) -> str:
        """``"datetime"``, ``"epoch"`` or ``"seconds"``; see :mod:`belated.data.times`."""
        return self._clock

    @property
    def zoned(self) -> bool:
        """Whether times had a zone."""
        return self._zoned

    @property
    def first(self) -> int:
        """The first arrival, in microseconds on this log's clock."""
        return int(self._arrival.min())

    @property
    def last(self) -> int:
        """The last arrival, in microseconds on this log's clock."""
        return int(self._arrival.max())

    @property
    def until(self) -> int:
        """How far the log reaches, in microseconds on its clock."""
        return self._until

    @property
    def grid(self) -> int:
        """The step of all times in microseconds, from the first arrival: a day where a log is stamped by the day."""
        late = self._outcome[self._outcome != NEVER] - self.first
        return int(np.gcd(np.gcd.reduce(self._arrival - self.first), np.gcd.reduce(late, initial=0))) or 1

    def without_features(self, *names: str) -> EventLog:
        """The same log without these features; without any, where none is named."""
        if isinstance(self._frame, ClusterTable) and names:
            unknown = [name for name in names if name not in self.features]
            if unknown:
                raise ValueError(f"the log has no feature {unknown[0]!r}; it has {', '.join(self.features)}.")
            rest = [name for name in self.features if name not in names]
            return self._with(self._frame[rest], self._arrival, self._outcome)
        frame = open_table(self._frame, "the log").drop(names).to_native() if names else pa.table({})
        return self._with(frame, self._arrival, self._outcome)

    def sample(self, share: float, seed: int = 0) -> EventLog:
        """About this share of the rows, drawn at random."""
        if not 0 < share <= 1:
            raise ValueError(f"share={share!r} must be above 0 and at most 1.")
        keep = by_rows(_drawn, self._arrival, seed) < share
        if not keep.any():
            raise ValueError(f"share={share!r} of {len(self)} rows leaves none.")
        return self._with(take_rows(self._frame, keep), self._arrival[keep], self._outcome[keep])

    @property
    def on_cluster(self) -> bool:
        """Whether its rows are on a cluster."""
        return isinstance(self._arrival, Sharded)

    def collect(self) -> EventLog:
        """The same log with its rows brought here from a cluster; itself where they are here."""
        if not self.on_cluster:
            return self
        frame = collect_table(self._frame) if isinstance(self._frame, ClusterTable) else self._frame
        far: Any = self
        return self._with(frame, far._arrival.collect(), far._outcome.collect())

    def close(self) -> None:
        """Let a cluster go of the rows that it keeps for this log."""
        far: Any = self._arrival
        if self.on_cluster:
            far.cluster.close()

    def _with(self, frame: Any, arrival: Ints, outcome: Ints) -> EventLog:
        """Other rows or features of the same log."""
        return EventLog(frame, arrival, outcome, self._clock, self._zoned, self._until, self.na, self.notes)

    @property
    def positives(self) -> int:
        """How many rows have an outcome, whenever it came."""
        return int((self._outcome != NEVER).sum())

    def fingerprint(self) -> bytes:
        """Different for logs that differ in any row, feature or time; on a cluster, also for other partitions of the same."""
        if self.on_cluster:
            table = self._frame.rows if isinstance(self._frame, ClusterTable) else self._frame
            total = add_up(_fingerprint_in_part, self, table, self._arrival, self._outcome)
            return hashlib.blake2b(f"{self.features} {self._until} {total}".encode(), digest_size=16).digest()
        digest = hashlib.blake2b(f"{self.features} {self._clock} {self._until}".encode(), digest_size=16)
        for array in (self._arrival, self._outcome):
            digest.update(np.ascontiguousarray(array).data)
        if nw.dependencies.is_into_dataframe(self._frame):
            table = open_table(self._frame, "the log", may_be_empty=True)
            for name in table.columns:
                values = decoded(to_arrow(table, name))
                digest.update(f"{values.type} {values.offset} {len(values)}".encode())
                for buffer in values.buffers():
                    digest.update(b"" if buffer is None else buffer)
        else:
            digest.update(np.ascontiguousarray(self._frame.indices).data)
        return digest.digest()

    def __len__(self) -> int:
        return len(self._arrival)

    def __repr__(self) -> str:
        zone = ", times without a zone read as UTC" if self._clock == "datetime" and not self._zoned else ""
        start, end = show_instant(int(self._arrival.min()), self._clock), show_instant(self._until, self._clock)
        return f"EventLog(rows={len(self)}, positive={self.positives}, features={self.features}, from {start} to {end}{zone})"

    def snapshot(self, as_of: Any, lookback: Any = None, horizon: Any = None) -> Snapshot:
        """What was known at ``as_of``: rows that had arrived, outcomes that had happened.

        Parameters
        ----------
        as_of : instant
            Everything stamped at or before it is known; nothing later has any influence. Without a zone it is UTC.
        lookback : duration, optional
            Only rows that arrived at most this long before ``as_of``. By default all.
        horizon : duration, optional
            Outcomes later than this after arrival count as negative. By default there is no limit.
        """
        now = parse_instant(as_of, "as_of", self._clock)
        first = int(self._arrival.min())
        if not first <= now <= self._until:
            raise ValueError(
                f"as_of={as_of!r} is outside the log, which runs from {show_instant(first, self._clock)} to "
                f"{show_instant(self._until, self._clock)}. If the log is known to reach further, pass until= when making it (--until)."
            )
        reach = NEVER if lookback is None else parse_duration(lookback, "lookback", self._clock)
        limit = None if horizon is None else parse_duration(horizon, "horizon", self._clock)
        return self._view(self._within(now, reach), now, limit, f"as_of={as_of!r} with lookback={lookback!r}")

    def snapshot_at(self, now: int, lookback: int, horizon: int | None) -> Snapshot:
        """:meth:`snapshot`, in microseconds."""
        return self._view(self._within(now, lookback), now, horizon, self._before(now, lookback))

    def latest(self, lookback: int | None, horizon: int | None) -> Snapshot:
        """What is known at the end of the log, of rows up to ``lookback`` older than the last arrival (None: of all).

        In microseconds. Outcomes may go on after the last arrival, so the lookback does not go back from the end.
        """
        reach = self.last - self.first if lookback is None else lookback
        return self.snapshot_at(self._until, reach + self._until - self.last, horizon)

    def hindsight_at(self, now: int, lookback: int, horizon: int | None) -> Snapshot:
        """The rows of :meth:`snapshot_at`, with all outcomes that the log knows today."""
        return self._view(self._within(now, lookback), self._until, horizon, self._before(now, lookback))

    def _before(self, now: int, lookback: int) -> str:
        return f"{lookback / DAY:g} days before {show_instant(now, self._clock)}"

    def _within(self, now: int, lookback: int) -> Bools:
        age = now - self._arrival
        return (age >= 0) & (age <= lookback)

    def matured_after(self, now: int, period: int, horizon: int) -> Snapshot:
        """:meth:`matured` for the rows with ``now < arrival <= now + period``, in microseconds."""
        asked = f"{period / DAY:g} days after {show_instant(now, self._clock)}"
        keep = (self._arrival > now) & (self._arrival <= now + period)
        return self._view(keep, self._until, horizon, asked)

    def matured(self, start: Any, end: Any, horizon: Any) -> Snapshot:
        """Final labels of the rows with ``start <= arrival < end``, for evaluation.

        Refuses when the log does not reach a whole ``horizon`` past each of these rows. On a log stamped by the day, a
        row of day ``start`` is in: to test after a snapshot, start on the day that follows its ``as_of``.
        """
        begin, stop = parse_instant(start, "start", self._clock), parse_instant(end, "end", self._clock)
        if begin >= stop:
            raise ValueError(f"start={start!r} must be before end={end!r}.")
        limit = parse_duration(horizon, "horizon", self._clock)
        keep = (self._arrival >= begin) & (self._arrival < stop)
        unripe = keep & (self._arrival + limit > self._until)
        if unripe.any():
            last = show_instant(self._until - limit, self._clock)
            raise ValueError(
                f"{int(unripe.sum())} of {int(keep.sum())} rows between start={start!r} and end={end!r} arrived less than "
                f"horizon={horizon!r} before the log ends ({show_instant(self._until, self._clock)}), so their labels are "
                f"not final. End at {last} or earlier, or shorten the horizon."
            )
        return self._view(keep, self._until, limit, f"start={start!r}, end={end!r}")

    def _view(self, keep: Bools, now: int, horizon: int | None, asked: str) -> Snapshot:
        if not keep.any():
            raise ValueError(f"no rows of the log arrived within {asked}.")
        arrival, outcome = self._arrival[keep], self._outcome[keep]
        limit = NEVER - 1 if horizon is None else horizon
        delay = np.where(outcome == NEVER, NEVER, outcome - arrival)
        known = (outcome <= now) & (delay <= limit)
        return Snapshot(
            X=take_rows(self._frame, keep),
            as_of_micros=now,
            clock=self._clock,
            elapsed_micros=now - arrival,
            delay_micros=np.where(known, delay, NEVER),
            horizon=None if horizon is None else limit / DAY,
        )


def _drawn(rows: Any, seed: int) -> Any:
    """A number between 0 and 1 for each row; of a partition they depend on its rows."""
    return np.random.default_rng([seed, len(rows), abs(int(rows[:1].sum()))]).uniform(size=len(rows))


def _fingerprint_in_part(log: EventLog, table: Any, arrival: Ints, outcome: Ints) -> int:
    some = EventLog(table, arrival, outcome, log.clock, log.zoned, 0)
    return int.from_bytes(some.fingerprint(), "big")
