"""Tables of any kind, and the one form of complaint about their rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from belated.tables.frames import as_text, kinds_of, open_table, require, take_rows
from belated.tables.refusal import refuse

COLUMNS = {"device": ["phone", None, "tablet"], "price": [1.5, 2.0, None], "new": [True, False, True], "n": [1, 2, 3]}
KINDS = {"device": "text", "price": "number", "new": "boolean", "n": "number"}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_every_kind_of_table_is_read_alike(make):
    frame = make(COLUMNS)
    assert kinds_of(frame) == KINDS
    assert as_text(open_table(frame, "it"), "device").to_pylist() == ["phone", "missing", "tablet"]
    kept = take_rows(frame, np.array([True, False, True]))
    assert type(kept) is type(frame) and len(kept) == 2


def test_categories_are_text():
    assert kinds_of(pd.DataFrame({"c": pd.Categorical(["a", "b"])})) == {"c": "text"}
    assert kinds_of(pl.DataFrame({"c": ["a", "b"]}, schema={"c": pl.Categorical})) == {"c": "text"}


def test_what_is_no_table():
    with pytest.raises(ValueError, match="it must be a pandas, polars or pyarrow table, got list"):
        open_table([1, 2], "it")
    with pytest.raises(ValueError, match="it has several columns named 'a'"):
        open_table(pd.DataFrame([[1, 2]], columns=["a", "a"]), "it")
    with pytest.raises(ValueError, match="it has no column 'b'; its columns are a"):
        require(open_table(pa.table({"a": [1]}), "it"), ["b"], "it")


def test_a_refusal_names_column_count_first_row_and_advice():
    bad = np.array([False, True, True])
    with pytest.raises(ValueError, match=r"column 'age': 2 rows are negative, the first at row 1 \(-1\). Drop them."):
        refuse(bad, "age", "{count} negative", np.array([1, -1, -2]), "Drop them.")
    refuse(np.zeros(3, dtype=bool), "age", "{count} negative", [1, 2, 3], "Drop them.")


def test_what_stands_for_a_table_is_read():
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    import pyarrow.dataset as ds

    found = [pl.from_arrow(table).lazy(), table.to_reader(), table.to_batches()[0], Stream(), ds.dataset(table)]
    for frame in found:
        assert open_table(frame, "it")["b"].to_list() == ["x", "y"]


def test_a_relation_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("SELECT 1 AS a, 'x' AS b")
    assert open_table(relation, "it").rows() == [(1, "x")]
