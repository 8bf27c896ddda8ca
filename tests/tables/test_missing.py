"""One rule for what is missing, whatever kind of file or table holds it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

from belated import EventLog, TableEncoder, train
from belated.tables.sources import read_table
from belated.tables.text_files import TextFormat
from belated.tables.writing import write_table
from belated.training import TrainedModel

WORDS = ["NA", "None", "null", "nan", "NaN", "NULL", "n/a", "NaT"]
KINDS = ["t.csv", "t.parquet", "t.arrow", "t.jsonl"]


def written(tmp_path, table, name):
    write_table(table, tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("name", KINDS)
def test_words_are_values_and_empty_is_missing(tmp_path, name):
    table = pa.table({"word": [*WORDS, "", None, "x"], "n": np.arange(len(WORDS) + 3.0)})
    assert read_table(written(tmp_path, table, name))["word"].to_pylist() == [*WORDS, None, None, "x"]


@pytest.mark.parametrize("name", KINDS)
def test_words_that_are_named_are_missing(tmp_path, name):
    table = pa.table({"word": ["NA", "-", "", "x"], "n": [1.0, 2.0, 3.0, 4.0]})
    how = TextFormat(na=("NA", "-"))
    assert read_table(written(tmp_path, table, name), how=how)["word"].to_pylist() == [None, None, None, "x"]


def test_in_numbers_and_truth_values_the_usual_words_are_missing(tmp_path):
    (tmp_path / "t.csv").write_text("n,b\n1.5,true\nNA,null\n,\nNaN,false\n")
    table = read_table(tmp_path / "t.csv")
    assert table["n"].to_pylist() == [1.5, None, None, None] and table["b"].to_pylist() == [True, None, None, False]


def test_a_column_of_nothing_but_a_word_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\nNA,\nNA,\n")
    table = read_table(tmp_path / "t.csv")
    assert table["a"].to_pylist() == ["NA", "NA"] and table["b"].to_pylist() == [None, None]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_encoder_keeps_the_rule(make):
    encoder = TableEncoder(na=["NA"]).fit(make({"word": ["a", "NA", "", "null"]}))
    assert encoder.get_feature_names_out().tolist() == ["word=a", "word=null", "word missing"]
    assert np.asarray(encoder.transform(make({"word": ["NA", "", "null"]})).toarray())[:, 2].tolist() == [1, 1, 0]
    plain = TableEncoder().fit(make({"word": ["a", "NA", ""]}))
    assert plain.get_feature_names_out().tolist() == ["word=NA", "word=a", "word missing"]


def test_an_encoder_from_before_the_rule_reads_as_it_did():
    """Such a one does not have the parameter in its state."""
    encoder = TableEncoder().fit(pa.table({"word": ["a", "null", "b"]}))
    del encoder.__dict__["na"]
    matrix = encoder.transform(pa.table({"word": ["NA", "null", "b"]})).toarray()
    assert matrix.tolist() == [[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]  # what was text in training stays text


def clicks(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 40, n)), "D").floor("s")
    word = rng.choice(["NA", "null", "DE", ""], n)
    p = np.where(word == "NA", 0.5, np.where(word == "", 0.3, 0.2))
    out = (at + pd.to_timedelta(rng.exponential(2, n), "D").floor("s")).where(rng.random(n) < p)
    return pd.DataFrame({"click_time": at, "conversion_time": out, "country": word, "price": rng.normal(size=n)})


@pytest.mark.parametrize("na", [(), ("NA",), ("NA", "null")])
def test_the_same_model_and_predictions_whatever_the_kind_of_file(tmp_path, na):
    data = clicks()
    found = {}
    for name in KINDS:
        stamped = data if name in ("t.parquet", "t.arrow") else data.astype({"click_time": str, "conversion_time": str})
        stamped = stamped.replace({"conversion_time": {"NaT": None}})
        table = read_table(written(tmp_path, pa.Table.from_pandas(stamped), name), how=TextFormat(na=na))
        log = EventLog.from_frame(table, arrival="click_time", outcome="conversion_time", na=na)
        train(log, horizon="5d", method="bl", l2=1e-3, window="2d").save(tmp_path / "m.skops")
        model = TrainedModel.load(tmp_path / "m.skops")
        assert model.na == na
        for again in KINDS:
            rows = (
                read_table(tmp_path / again, model.features, list(model.features))
                if (tmp_path / again).exists()
                else None
            )
            if rows is not None:
                found[name, again] = model.predict(rows)
    first = found["t.csv", "t.csv"]
    assert len(found) == 10
    for p in found.values():
        assert_allclose(p, first, rtol=1e-12)
    by_word = pd.Series(first).groupby(data["country"]).mean()
    assert (abs(by_word["NA"] - by_word[""]) < 0.03) == ("NA" in na)
