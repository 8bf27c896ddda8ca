"""Where a value goes: the same column on every machine and in every version."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hash_by_hand import place

from belated import FieldMatrix


def test_vectors_of_the_hash():
    """These numbers must never change: models on disk depend on them."""
    assert [place("campaign", v) for v in ("a", "", None, "ä", -7)] == VECTORS
    table = pa.table({"campaign": ["a", "", None, "ä", "-7"]})
    assert FieldMatrix.from_frame(table).indices[:, 0].tolist() == VECTORS


VECTORS = [5789220, 4509636, 16509666, 11753505, 9107053]


@pytest.mark.parametrize("seed", [0, 12345])
def test_every_kind_of_column_goes_where_its_text_goes(seed):
    texts = ["a", None, "long text " * 9, "日本", ""]
    whole = [0, -1, 10, 9223372036854775807, -9223372036854775808]
    table = pa.table(
        {
            "text": texts,
            "view": pa.array(texts, pa.string_view()),
            "coded": pa.array(texts * 1).dictionary_encode(),
            "whole": whole,
            "small": pa.array([1, None, 3, 4, 5], pa.int8()),
            "float": pa.array([1.0, None, 3.0, -4.0, 5.0]),
            "flag": [True, False, None, True, True],
        }
    )
    expected = [
        [
            place(name, str(v).lower() if isinstance(v, bool) else int(v) if isinstance(v, float) else v, 1000, seed)
            for name, v in row.items()
        ]
        for row in table.to_pylist()
    ]
    assert FieldMatrix.from_frame(table, 1000, seed).indices.tolist() == expected
    assert FieldMatrix.from_frame(pl.from_arrow(table.drop_columns("view")), 1000, seed).indices[:, 0].tolist() == [
        row[0] for row in expected
    ]
    batches = table.slice(1).to_batches(max_chunksize=2)
    assert FieldMatrix.from_batches(batches, 1000, seed).indices.tolist() == expected[1:]


def test_columns_are_used_evenly():
    values = pd.DataFrame({"id": np.arange(200_000)})
    counts = np.bincount(FieldMatrix.from_frame(values, 100).indices[:, 0], minlength=100)
    assert abs(counts - 2000).max() < 6 * np.sqrt(2000)


def test_fractions_and_dates_are_no_categories():
    with pytest.raises(ValueError, match=r"field 'p' holds fractions, such as .*0.5"):
        FieldMatrix.from_frame(pd.DataFrame({"p": [1.0, 0.5]}))
    with pytest.raises(ValueError, match="field 't' holds timestamp"):
        FieldMatrix.from_frame(pd.DataFrame({"t": pd.to_datetime(["2024-01-01"])}))
    with pytest.raises(ValueError, match="seed=-1 must be at least 0"):
        FieldMatrix.from_frame(pd.DataFrame({"t": [1]}), seed=-1)
