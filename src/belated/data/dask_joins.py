"""The join of :mod:`.cluster_joins` by Dask."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

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


def join_on_dask(arrivals: Any, outcomes: Any, asked: JoinColumns) -> Joined:
    """Arrivals with the first outcome of each."""
    from dask.base import compute

    mine = partial(_in_pandas, arrivals_as_numbers, asked=asked)
    theirs = partial(_in_pandas, outcomes_as_numbers, asked=asked)
    left = arrivals.map_partitions(mine, meta=_meta(arrivals._meta[asked.features], ARRIVAL)).persist()
    right = outcomes.map_partitions(theirs, meta=_meta(outcomes._meta[[]], OUTCOME)).persist()
    pairs = right[[KEY, OUTCOME]].merge(left[[KEY, ARRIVAL]], on=KEY, how="left")
    pairs = pairs.assign(unmatched=pairs[ARRIVAL].isna(), early=pairs[OUTCOME] < pairs[ARRIVAL]).persist()
    usable = pairs[~pairs["unmatched"] & ~pairs["early"]]
    first = usable.groupby(KEY)[OUTCOME].min().reset_index()
    again = left[[KEY]].assign(count=1).groupby(KEY)["count"].sum()
    again = again[again > 1]
    total, unmatched, early, latest, repeated, mine_facts, their_facts = compute(
        right[KEY].count(),
        pairs["unmatched"].sum(),
        pairs["early"].sum(),
        usable[OUTCOME].max(),
        (again - 1).sum(),
        left[FACTS].unique(),
        right[FACTS].unique(),
    )
    example = {
        "unmatched": _one(pairs[pairs["unmatched"]], unmatched),
        "early": _one(pairs[pairs["early"]], early),
        "repeated": _one(again.reset_index(), repeated),
    }
    frame = left.drop(columns=[FACTS]).merge(first, on=KEY, how="left").drop(columns=[KEY])
    facts = {*mine_facts, *their_facts}
    reach = -1 if pd.isna(latest) else int(latest)
    return Joined(frame, int(total), int(unmatched), int(early), int(repeated), example, reach, facts)


def _one(rows: Any, count: Any) -> Any:
    return rows[KEY].head(1, npartitions=-1).iloc[0] if count else None


def _meta(features: pd.DataFrame, name: str) -> pd.DataFrame:
    empty = {KEY: pd.Series(dtype="str"), name: pd.Series(dtype="int64"), FACTS: pd.Series(dtype="str")}
    return pd.concat([features, pd.DataFrame(empty)], axis=1)


def _in_pandas(work: Any, table: pd.DataFrame, **options: Any) -> pd.DataFrame:
    found = work(table, **options)
    kept = [name for name in table.columns if name in found.column_names]
    rest = found.select([name for name in found.column_names if name not in kept]).to_pandas()
    # The features stay as they are; a table that went through Arrow would come back with other types.
    rest[KEY], rest[FACTS] = rest[KEY].astype("str"), rest[FACTS].astype("str")
    return pd.concat([table[kept].reset_index(drop=True), rest], axis=1)
