"""The join of :mod:`.cluster_joins` by Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from belated.data.cluster_joins import (
    ARRIVAL,
    FACTS,
    KEY,
    OUTCOME,
    JoinColumns,
    Joined,
    arrivals_as_numbers,
    outcomes_as_numbers,
)


def join_on_spark(arrivals: Any, outcomes: Any, asked: JoinColumns) -> Joined:
    """Arrivals with the first outcome of each."""

    def mine(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _batches(arrivals_as_numbers(pa.Table.from_batches([batch]), asked))

    def theirs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from _batches(outcomes_as_numbers(pa.Table.from_batches([batch]), asked))

    left = arrivals.mapInArrow(mine, _schema([arrivals.schema[name] for name in asked.features], ARRIVAL)).persist()
    right = outcomes.mapInArrow(theirs, _schema([], OUTCOME)).persist()
    pairs = right.join(left.select(KEY, ARRIVAL), KEY, "left").persist()
    unmatched, early = pairs.where(f.col(ARRIVAL).isNull()), pairs.where(f.col(OUTCOME) < f.col(ARRIVAL))
    usable = pairs.where(f.col(OUTCOME) >= f.col(ARRIVAL))
    first = usable.groupBy(KEY).agg(f.min(OUTCOME).alias(OUTCOME))
    again = left.groupBy(KEY).count().where("count > 1")
    counts = [frame.count() for frame in (right, unmatched, early)]
    repeated = again.agg(f.sum(f.col("count") - 1)).first()[0] or 0
    latest = usable.agg(f.max(OUTCOME)).first()[0]
    example = {
        name: row[0] if (row := frame.select(KEY).first()) else None
        for name, frame in (("unmatched", unmatched), ("early", early), ("repeated", again))
    }
    facts = {row[0] for frame in (left, right) for row in frame.select(FACTS).distinct().collect()}
    frame = left.drop(FACTS).join(first, KEY, "left").drop(KEY)
    return Joined(
        frame, counts[0], counts[1], counts[2], int(repeated), example, -1 if latest is None else latest, facts
    )


def _schema(features: list[Any], name: str) -> StructType:
    return StructType(
        [*features, StructField(KEY, StringType()), StructField(name, LongType()), StructField(FACTS, StringType())]
    )


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    columns = [
        column.cast(pa.string()) if pa.types.is_large_string(column.type) else column for column in table.columns
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True))).combine_chunks().to_batches()
