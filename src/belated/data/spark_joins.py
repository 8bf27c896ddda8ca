"""The join of :mod:`.cluster_joins` by Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from belated.data.cluster_joins import (
    ARRIVAL,
    FACTS,
    KEY,
    MOST_KEYS,
    OUTCOME,
    Facts,
    JoinColumns,
    Joined,
    arrivals_as_numbers,
    outcomes_as_numbers,
    told_where,
)
from belated.data.durations import DAY


def join_on_spark(arrivals: Any, outcomes: Any, asked: JoinColumns) -> Joined:
    """Arrivals with the first outcome of each."""
    held: list[Any] = []
    try:
        return _joined(arrivals, outcomes, asked, held)
    except BaseException as error:
        for frame in held:
            frame.unpersist()
        told = re.findall(r"ValueError: (.*)", str(error)) if isinstance(error, PySparkException) else []
        if told:  # a complaint of ours, from a worker
            raise ValueError(told[-1].strip()) from None
        raise


def _joined(arrivals: Any, outcomes: Any, asked: JoinColumns, held: list[Any]) -> Joined:
    def kept(frame: Any) -> Any:
        held.append(frame.persist())
        return held[-1]

    features = [arrivals.schema[name] for name in asked.features]
    left = kept(arrivals.mapInArrow(_numbers(arrivals_as_numbers, asked), _schema(features, ARRIVAL)))
    arrived = Facts.agreed(_facts(left), f"of {asked.arrival!r} ")
    theirs = _numbers(outcomes_as_numbers, asked.in_unit_of(arrived))
    right = kept(outcomes.mapInArrow(theirs, _schema([], OUTCOME)))
    pairs = kept(right.join(left.select(KEY, ARRIVAL), KEY, "left"))
    unmatched, early = pairs.where(f.col(ARRIVAL).isNull()), pairs.where(f.col(OUTCOME) < f.col(ARRIVAL))
    same_day = early.where(f.floor(f.col(OUTCOME) / DAY) == f.floor(f.col(ARRIVAL) / DAY))
    usable = pairs.where(f.col(OUTCOME) >= f.col(ARRIVAL))
    first = usable.groupBy(KEY).agg(f.min(OUTCOME).alias(OUTCOME))
    again = left.groupBy(KEY).count().where("count > 1")
    counts = [frame.count() for frame in (right, unmatched, early, same_day)]
    repeated = again.agg(f.sum(f.col("count") - 1)).first()[0] or 0
    latest = usable.agg(f.max(OUTCOME)).first()[0]
    first_in, timed_in = left.agg(f.min(ARRIVAL), f.max(f.col(ARRIVAL) % DAY)).first()
    first_out, timed_out = right.agg(f.min(OUTCOME), f.max(f.col(OUTCOME) % DAY)).first()
    example = {
        name: row[0] if (row := frame.select(KEY).first()) else None
        for name, frame in (("unmatched", unmatched), ("early", early), ("repeated", again))
    }
    lost = counts[0] and counts[1] == counts[0]
    some = [[row[0] for row in t.select(KEY).limit(MOST_KEYS).collect()] if lost else [] for t in (left, right)]
    return Joined(
        left.drop(FACTS).join(first, KEY, "left").drop(KEY),
        counts[0],
        counts[1],
        counts[2],
        counts[3],
        int(repeated),
        example,
        -1 if latest is None else latest,
        arrived,
        Facts.agreed(_facts(right), f"of {asked.outcome!r} "),
        (first_in, first_out),
        (not timed_in, not timed_out),
        (some[0], some[1]),
        lambda: [frame.unpersist() for frame in held],
    )


def _facts(frame: Any) -> list[str]:
    return [row[0] for row in frame.select(FACTS).distinct().collect()]


def _numbers(work: Any, asked: JoinColumns) -> Any:
    def go(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        partition, before = getattr(TaskContext.get(), "partitionId", lambda: "?")(), 0
        for batch in batches:
            where = f"partition {partition}, of the rows from row {before} on" if before else f"partition {partition}"
            yield from _batches(told_where(work, pa.Table.from_batches([batch]), asked, where))
            before += batch.num_rows

    return go


def _schema(features: list[Any], name: str) -> StructType:
    return StructType(
        [*features, StructField(KEY, StringType()), StructField(name, LongType()), StructField(FACTS, StringType())]
    )


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    columns = [
        column.cast(pa.string()) if pa.types.is_large_string(column.type) else column for column in table.columns
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True))).combine_chunks().to_batches()
