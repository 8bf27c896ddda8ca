"""Logs whose rows are on a cluster: read there, partition by partition, with the checks of a local log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from belated.cluster.base import SOURCE, Cluster, Part, Reduced
from belated.cluster.sharded import Leaf, Sharded
from belated.data.times import parse_instant, show_instant
from belated.features.cluster_table import ClusterTable, hashed
from belated.tables.frames import open_table

if TYPE_CHECKING:
    from belated.data.event_log import EventLog


def log_on_cluster(
    make: type[EventLog],
    cluster: Cluster,
    options: dict[str, Any],
    until: Any,
    hash_columns: int | None,
) -> EventLog:
    """A log of tables that partitions hold; ``options`` are those of ``EventLog.from_frame``."""
    kept = cluster.keep(_read_on, (make, options))
    found = cluster.total(_facts_on, kept)
    if found is None:
        raise ValueError("the log has no rows.")
    latest, facts = found
    clock, zoned, features, notes = _same(facts)
    reach = latest.value if until is None else parse_instant(until, "until", clock)
    if reach < latest.value:
        raise ValueError(f"until={until!r} is before the latest time in the log, {show_instant(latest.value, clock)}.")
    table = ClusterTable(Sharded(cluster, Leaf(kept, 0)), list(features))
    if hash_columns is not None:
        table = hashed(table, hash_columns, options.get("na", ()), 10)
    arrival, outcome = (Sharded(cluster, Leaf(kept, item)) for item in (1, 2))
    made: Any = make
    return made(table, arrival, outcome, clock, zoned, reach, options.get("na", ()), list(notes))


def _same(facts: set[Any]) -> Any:
    """What all partitions that have rows agree on."""
    if len({(clock, zoned) for clock, zoned, _, _ in facts}) > 1 or len({notes for *_, notes in facts}) > 1:
        kinds = sorted({f"{clock}{' with a zone' if zoned else ''}" for clock, zoned, _, _ in facts})
        raise ValueError(
            f"partitions do not agree on what their times are ({', '.join(kinds)}). Say so: time_unit= for numbers, "
            f"time_format= for text."
        )
    return next(iter(facts))


# On a worker.


def _read_on(part: Part, value: Any) -> Any:
    make, options = value
    table = part.kept[SOURCE]
    if not len(table):
        chosen = _chosen(open_table(table, "the log", may_be_empty=True).columns, options)
        empty = np.zeros(0, dtype=np.int64)
        return open_table(table, "the log", may_be_empty=True).select(chosen).to_native(), empty, empty, None
    try:
        log = make.from_frame(table, **options)
    except ValueError as error:
        raise ValueError(f"partition {part.index}: {error}") from None
    arrival, outcome = log.times
    about = log.clock, log.zoned, tuple(log.features), tuple(log.notes)
    return log.frame, arrival, outcome, (about, log.until)


def _chosen(names: Sequence[str], options: dict[str, Any]) -> list[str]:
    if options.get("features") is not None:
        return list(options["features"])
    return [name for name in names if name not in (options["arrival"], options["outcome"])]


def _facts_on(part: Part, kept: Any) -> Any:
    about = part.kept[kept.number][3]
    return None if about is None else (Reduced(max, about[1]), {about[0]})
