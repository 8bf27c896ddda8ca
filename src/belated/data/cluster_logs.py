"""Logs whose rows are on a cluster: read there, partition by partition, with the checks of a local log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from belated.cluster.base import SOURCE, Cluster, Kept, Part, Reduced
from belated.cluster.columns import engine_of
from belated.cluster.sharded import Leaf, Sharded
from belated.data.cluster_joins import ARRIVAL, OUTCOME, JoinColumns, Joined, unlike_times
from belated.data.log_columns import TimeNote, chosen_features, feature_names, reach_of
from belated.data.times import NEVER, TimeFormat
from belated.features.cluster_table import ClusterTable, hashed
from belated.notices import logger
from belated.tables.frames import open_table, to_arrow, without_words
from belated.tables.missing import words_of

if TYPE_CHECKING:
    from belated.data.event_log import EventLog


DASK, SPARK = "dask", "spark"
_OPTIONS = ("features", "outcome_where", "time_format", "time_unit", "na")


def log_on_engine(
    make: type[EventLog],
    engine: str,
    frame: Any,
    outcomes: Any,
    names: dict[str, Any],
    until: Any,
    hash_columns: int | None,
    options: dict[str, Any],
) -> EventLog:
    """A log of one table, or of arrivals and outcomes, on an engine by name."""
    for table in (frame, outcomes):
        _check_frame(engine, table)
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of a log on {engine}; there are {', '.join(_OPTIONS)}.")
    key = names.pop("key")
    if (key is None) != (outcomes is None):
        raise ValueError("a table of outcomes and key= belong together: give both or neither.")
    if outcomes is None:
        with _closed_on_error(_open(engine, frame)) as cluster:
            return log_on_cluster(make, cluster, {**names, **options}, until, hash_columns)
    how = TimeFormat(options.get("time_format"), options.get("time_unit"))
    features = options.get("features")
    columns = [name for name in frame.columns if name not in (key, *names.values())]
    chosen = columns if features is None else chosen_features(features, [str(key), *names.values()])
    asked = JoinColumns(key, names["arrival"], names["outcome"], chosen, options.get("outcome_where"), how)
    asked.check(frame, outcomes)
    if engine == DASK:
        from belated.data.dask_joins import join_on_dask as join
    else:
        from belated.data.spark_joins import join_on_spark as join
    joined = join(frame, outcomes, asked)
    try:
        joined.check(asked)
        with _closed_on_error(_open(engine, joined.frame)) as cluster:
            return _joined_log(make, cluster, joined, asked, options.get("na", ()), until, hash_columns)
    finally:
        joined.free()


def _check_frame(engine: str, frame: Any) -> None:
    """Refuse what is no frame of the engine, and names that it reads as something else."""
    if frame is None:
        return
    if engine_of(frame) != engine:
        kind = f"{type(frame).__module__}.{type(frame).__name__}"
        raise ValueError(
            f"from_{engine} takes a {engine.capitalize()} DataFrame, got {kind}. Tables in memory go to from_frame."
        )
    dotted = [name for name in frame.columns if engine == SPARK and ("." in name or "`" in name)]
    if dotted:
        raise ValueError(
            f"column {dotted[0]!r}: Spark takes a dot in a name for a field within a field. Rename it: frame.withColumnRenamed({dotted[0]!r}, {dotted[0].replace('.', '_')!r})."
        )


@contextmanager
def _closed_on_error(cluster: Cluster) -> Iterator[Cluster]:
    """Nobody else has a handle to close it by."""
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise


def _open(engine: str, frame: Any) -> Cluster:
    if engine == DASK:
        from belated.cluster.dask import DaskCluster

        return DaskCluster(frame)
    from belated.cluster.spark import SparkCluster

    return SparkCluster(frame)


def log_on_cluster(
    make: type[EventLog], cluster: Cluster, options: dict[str, Any], until: Any, hash_columns: int | None
) -> EventLog:
    """A log of tables that partitions hold; ``options`` are those of ``EventLog.from_frame``."""
    cluster.check_memory()
    kept = cluster.keep(_read_on, (make, options))
    found = cluster.total(_facts_on, kept)
    if found is None:
        raise ValueError("the log has no rows.")
    latest, kinds, read = found
    notes = _agreed(kinds, read)
    ((clock, zoned, features),) = kinds
    return _build(
        make,
        kept,
        cluster,
        list(features),
        (clock, zoned, notes),
        latest.value,
        until,
        options.get("na", ()),
        hash_columns,
    )


def _joined_log(
    make: type[EventLog],
    cluster: Cluster,
    joined: Joined,
    asked: JoinColumns,
    na: Sequence[str],
    until: Any,
    hash_columns: int | None,
) -> EventLog:
    """A log of arrivals that have been joined with their first outcomes."""
    assert joined.arrived is not None
    features, about = asked.features, (joined.arrived.clock, joined.arrived.zoned, joined.notes(asked))
    cluster.check_memory()
    kept = cluster.keep(_ready_on, (features, words_of(na)))
    latest = max(int(Sharded(cluster, Leaf(kept, 1)).max()), joined.latest)
    return _build(make, kept, cluster, features, about, latest, until, na, hash_columns)


def _build(
    make: Any,
    kept: Kept,
    cluster: Cluster,
    features: list[str],
    about: tuple[str, bool, Any],
    latest: int,
    until: Any,
    na: Sequence[str],
    hash_columns: int | None,
) -> EventLog:
    """A log of what partitions keep: features, arrivals and outcomes."""
    clock, zoned, notes = about
    reach = reach_of(until, latest, clock)
    table = ClusterTable(Sharded(cluster, Leaf(kept, 0)), features)
    if hash_columns is not None:
        table = hashed(table, hash_columns, na)
    arrival, outcome = (Sharded(cluster, Leaf(kept, item)) for item in (1, 2))
    log: EventLog = make(table, arrival, outcome, clock, zoned, reach, na, list(notes))
    logger.info("%r on %d partitions", log, cluster.partitions)
    return log


def _agreed(kinds: set[tuple[str, bool, Any]], read: set[TimeNote]) -> list[TimeNote]:
    """How the times of all partitions that have some were read; refused where they were not read in one way."""
    ways: dict[str, set[str]] = {}
    for note in read:
        ways.setdefault(note.column, set()).add(note.read)
    if len(kinds) > 1 or any(len(some) > 1 for some in ways.values()):
        raise unlike_times("", {(clock, zoned) for clock, zoned, _ in kinds})
    found = []
    for column in sorted(ways):
        mine = [note for note in read if note.column == column]
        found.append(replace(mine[0], first=min((n.first for n in mine if n.first is not None), default=None)))
    return found


# On a worker.


def _read_on(part: Part, value: Any) -> Any:
    make, options = value
    table = part.kept[SOURCE]
    if not len(table):
        frame, empty = open_table(table, "the log", may_be_empty=True), np.zeros(0, dtype=np.int64)
        others = options["arrival"], options["outcome"]
        chosen = feature_names(options.get("features"), frame, others, "the log", options.get("outcome_where"))
        return frame.select(chosen).to_native(), empty, empty, None
    log = make.from_frame(table, **options)
    arrival, outcome = log.times
    about = {(log.clock, log.zoned, tuple(log.features))}
    return log.frame, arrival, outcome, (Reduced(max, log.until), about, set(log.times_read))


def _ready_on(part: Part, value: Any) -> Any:
    features, words = value
    frame = open_table(part.kept[SOURCE], "the log", may_be_empty=True)
    arrival, outcome = (to_arrow(frame, name) for name in (ARRIVAL, OUTCOME))
    outcome = pa.array(outcome.to_numpy(zero_copy_only=False), from_pandas=True).cast(pa.int64())
    native = without_words(frame.select(features), words).to_native()
    return native, np.asarray(arrival.cast(pa.int64())), np.asarray(outcome.fill_null(NEVER)), None


def _facts_on(part: Part, kept: Any) -> Any:
    return part.kept[kept.number][3]
