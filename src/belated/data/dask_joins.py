"""The join of :mod:`.cluster_joins` by Dask."""

from __future__ import annotations

from typing import Any

import pandas as pd

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


def join_on_dask(arrivals: Any, outcomes: Any, asked: JoinColumns) -> Joined:
    """Arrivals with the first outcome of each."""
    from dask.base import compute

    left = _numbers(arrivals, arrivals_as_numbers, asked, arrivals._meta[asked.features], ARRIVAL)
    arrived = Facts.agreed(left[FACTS].unique().compute(), f"of {asked.arrival!r} ")
    right = _numbers(outcomes, outcomes_as_numbers, asked.in_unit_of(arrived), outcomes._meta[[]], OUTCOME)
    pairs = right[[KEY, OUTCOME]].merge(left[[KEY, ARRIVAL]], on=KEY, how="left")
    pairs = pairs.assign(unmatched=pairs[ARRIVAL].isna(), early=pairs[OUTCOME] < pairs[ARRIVAL]).persist()
    usable = pairs[~pairs["unmatched"] & ~pairs["early"]]
    first = usable.groupby(KEY)[OUTCOME].min().reset_index()
    again = left[[KEY]].assign(count=1).groupby(KEY)["count"].sum()
    again = again[again > 1]
    total, unmatched, early, same_day, latest, repeated, facts, first_in, first_out, timed_in, timed_out = compute(
        right[OUTCOME].count(),
        pairs["unmatched"].sum(),
        pairs["early"].sum(),
        (pairs["early"] & (pairs[OUTCOME] // DAY == pairs[ARRIVAL] // DAY)).sum(),
        usable[OUTCOME].max(),
        (again - 1).sum(),
        right[FACTS].unique(),
        left[ARRIVAL].min(),
        right[OUTCOME].min(),
        (left[ARRIVAL] % DAY != 0).any(),
        (right[OUTCOME] % DAY != 0).any(),
    )
    example = {
        "unmatched": _one(pairs[pairs["unmatched"]], unmatched),
        "early": _one(pairs[pairs["early"]], early),
        "repeated": _one(again.reset_index(), repeated),
    }
    lost = total and unmatched == total
    some = tuple(_known(t[KEY].head(MOST_KEYS, npartitions=-1)) if lost else [] for t in (left, right))
    return Joined(
        left.drop(columns=[FACTS]).merge(first, on=KEY, how="left").drop(columns=[KEY]),
        int(total),
        int(unmatched),
        int(early),
        int(same_day),
        int(repeated),
        example,
        -1 if pd.isna(latest) else int(latest),
        arrived,
        Facts.agreed(facts, f"of {asked.outcome!r} "),
        (_whole(first_in), _whole(first_out)),
        (not timed_in, not timed_out),
        (some[0], some[1]),
        lambda: None,  # Dask lets go of what nobody refers to
    )


def _numbers(frame: Any, work: Any, asked: JoinColumns, features: pd.DataFrame, name: str) -> Any:
    return frame.map_partitions(_in_pandas, work, asked, meta=_meta(features, name)).persist()


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _one(rows: Any, count: Any) -> Any:
    return _known(rows[KEY].head(1, npartitions=-1))[0] if count else None


def _known(keys: Any) -> list[str | None]:
    return [None if pd.isna(key) else str(key) for key in keys]


def _meta(features: pd.DataFrame, name: str) -> pd.DataFrame:
    empty = {KEY: pd.Series(dtype="str"), name: pd.Series(dtype="int64"), FACTS: pd.Series(dtype="str")}
    return pd.concat([features, pd.DataFrame(empty)], axis=1)


def _in_pandas(table: pd.DataFrame, work: Any, asked: JoinColumns, partition_info: Any = None) -> pd.DataFrame:
    where = "" if partition_info is None else f"partition {partition_info['number']}"
    found = told_where(work, table, asked, where)
    kept = [name for name in asked.features if name in found.column_names]
    rest = found.select([name for name in found.column_names if name not in kept]).to_pandas()
    # The features stay as they are; a table that went through Arrow would come back with other types.
    rest[KEY], rest[FACTS] = rest[KEY].astype("str"), rest[FACTS].astype("str")
    return pd.concat([table[kept].reset_index(drop=True), rest], axis=1) if kept else rest
