"""What goes wrong in real files is refused or repaired, never lost in silence."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import belated
from belated import EventLog, train
from belated.cli import main
from belated.datasets import simulate_campaigns
from belated.training import TrainedModel

NAMED = ["--arrival", "click_time", "--outcome", "conversion_time"]
FIT = ["--method", "bl", "--l2", "0.001", "--horizon", "10d"]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def clicks():
    frame = simulate_campaigns(1500).to_pandas()
    return frame.assign(hour=frame["hour"].astype(int))


def refused(*words):
    done = run(*words)
    assert done.exit_code == 2, (done.output, done.stderr, done.exception)
    return done.stderr.replace("\n", " ")


def test_a_quote_that_never_closes(clicks, tmp_path):
    lines = clicks.assign(note="x").to_csv(index=False).splitlines()
    lines[500] = lines[500].removesuffix("x") + '"5 inch'
    (tmp_path / "log.csv").write_text("\n".join(lines))
    assert "a quote opens in line 501 and never closes" in refused("describe", tmp_path / "log.csv", *NAMED)


def test_zones_in_json_lines_are_seen(tmp_path):
    rows = [{"at": f"2024-01-{d:02d}T12:00:00-05:00", "out": f"2024-01-{d:02d}T18:00:00", "x": d} for d in range(1, 9)]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    text = refused("describe", tmp_path / "log.jsonl", "--arrival", "at", "--outcome", "out")
    assert "column 'at' has a time zone and column 'out' has none" in text


def test_a_database_is_not_written_over(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    asked = ["--sql", "SELECT * FROM t", "--db", tmp_path / "w.duckdb"]
    assert "is read, or written" in refused("describe", *asked, "--json", tmp_path / "w.duckdb")
    assert "does not exist" in refused("describe", "--sql", "SELECT * FROM nothing")
    assert "there is no such file" in refused("describe", "--sql", "SELECT 1", "--db", tmp_path / "no.duckdb")
    assert "--sep is about files" in refused("describe", *asked, "--sep", ";")


def test_the_index_of_a_data_frame_is_no_feature(clicks, tmp_path):
    clicks.to_csv(tmp_path / "log.csv")
    done = run("describe", tmp_path / "log.csv", *NAMED)
    assert "Leaving out the column without a name" in done.output and "features: campaign" in done.output


def test_patterns_keep_what_folders_say(clicks, tmp_path):
    for site, part in clicks.assign(site=np.where(np.arange(len(clicks)) % 2, "a", "b")).groupby("site"):
        (tmp_path / f"site={site}").mkdir()
        part.drop(columns="site").to_parquet(tmp_path / f"site={site}" / "p.parquet", index=False)
    assert "site" in run("describe", tmp_path / "*" / "*.parquet", *NAMED).output.split("features:")[1]


def test_files_that_guess_differently_are_read_as_text(clicks, tmp_path):
    clicks[:700].assign(zip=1234).to_csv(tmp_path / "a.csv", index=False)
    clicks[700:].assign(zip="A12").to_csv(tmp_path / "b.csv", index=False)
    done = run("train", tmp_path, *NAMED, *FIT, "--out", tmp_path / "m.skops")
    assert done.exit_code == 0, done.stderr
    assert TrainedModel.load(tmp_path / "m.skops").features["zip"] == "text"


def test_the_order_of_columns_does_not_matter(clicks, tmp_path):
    clicks[:700].to_csv(tmp_path / "a.csv", index=False)
    clicks[clicks.columns[::-1]][700:].to_csv(tmp_path / "b.csv", index=False)
    assert "1,500 rows" in run("describe", tmp_path, *NAMED).output


def test_files_that_are_left_out_or_named_twice_are_told(clicks, tmp_path):
    clicks.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "notes.xlsx").write_text("PK")
    assert "notes.xlsx left out" in run("describe", tmp_path, *NAMED).stderr
    assert "named twice" in refused("describe", tmp_path / "a.csv", tmp_path, *NAMED)


@pytest.mark.parametrize("gaps", [False, True])
def test_codes_stay_codes_in_every_kind_of_file(clicks, tmp_path, gaps):
    code = np.where(np.arange(len(clicks)) % 7 == 0, np.nan, 100.0) if gaps else np.arange(len(clicks)) % 5
    frame = clicks.assign(code=code)
    frame.to_parquet(tmp_path / "log.parquet", index=False)
    frame.to_csv(tmp_path / "log.csv", index=False)
    found = {}
    for trained in ("parquet", "csv"):
        done = run(
            "train", tmp_path / f"log.{trained}", *NAMED, *FIT, "--category", "code", "--out", tmp_path / "m.skops"
        )
        assert done.exit_code == 0, done.stderr
        for asked in ("parquet", "csv"):
            done = run("predict", tmp_path / "m.skops", tmp_path / f"log.{asked}", "--out", tmp_path / "p.parquet")
            assert done.exit_code == 0, done.stderr
            found[trained, asked] = pq.read_table(tmp_path / "p.parquet")["probability"].to_numpy()
    for p in found.values():
        assert np.allclose(p, found["csv", "csv"], rtol=1e-10)
    frame.assign(code=0.5).to_parquet(tmp_path / "log.parquet", index=False)
    assert "1500 rows are no whole number" in refused(
        "train", tmp_path / "log.parquet", *NAMED, *FIT, "--category", "code", "--out", tmp_path / "m"
    )


def test_a_model_of_an_ingested_log_predicts_files(clicks, tmp_path):
    frame = clicks.assign(price=np.arange(len(clicks)) / 7, campaign=clicks["campaign"].where(clicks["hour"] > 2, ""))
    frame.to_parquet(tmp_path / "log.parquet", index=False)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    belated.ingest_parquet(
        tmp_path / "log.parquet", tmp_path / "in", arrival="click_time", outcome="conversion_time", progress=False
    )
    done = run("train", tmp_path / "in", *FIT, "--out", tmp_path / "m.skops", "--keep", "price")
    assert done.exit_code == 0, done.stderr
    found = []
    for name in ("rows.csv", "log.parquet"):
        done = run("predict", tmp_path / "m.skops", tmp_path / name, "--out", tmp_path / "p.parquet")
        assert done.exit_code == 0, done.stderr
        found.append(pq.read_table(tmp_path / "p.parquet")["probability"].to_numpy())
    assert np.allclose(*found, rtol=1e-12)
    for option in (["--outcome-where", "a == 1"], ["--feature", "a"], ["--key", "k"], ["--na", "q"], ["--snapshots"]):
        assert "has its columns already" in refused("describe", tmp_path / "in", *option)


def test_numbers_that_mean_nothing_do_so_in_every_kind_of_file(clicks, tmp_path):
    frame = clicks.assign(n=np.where(np.arange(len(clicks)) % 3 == 0, -999, np.arange(len(clicks)) % 10))
    frame.to_parquet(tmp_path / "log.parquet", index=False)
    frame.to_csv(tmp_path / "log.csv", index=False)
    for name in ("log.csv", "log.parquet"):
        run("train", tmp_path / name, *NAMED, *FIT, "--na=-999", "--out", tmp_path / f"{name}.skops")
    a, b = (TrainedModel.load(tmp_path / f"{name}.skops").classifier.coef_ for name in ("log.csv", "log.parquet"))
    assert np.allclose(a, b, rtol=1e-8)


def test_words_for_nothing_outlive_a_sample():
    frame = pd.DataFrame(
        {"at": pd.date_range("2024-01-01", periods=400, freq="h"), "word": np.resize(["NA", "a", "b"], 400)}
    )
    frame["out"] = (frame["at"] + pd.Timedelta("3h")).where(np.arange(400) % 4 == 0)
    log = EventLog.from_frame(frame, arrival="at", outcome="out", na=["NA"])
    model = train(log.sample(0.9), horizon="2d", method="bl", l2=1e-3, window="1d")
    assert model.na == ("NA",)
    p = model.predict_proba(pa.table({"word": ["NA", None]}))
    assert p.shape == (2, 2) and p[0, 1] == p[1, 1] and np.allclose(p.sum(axis=1), 1.0)


def test_sentences_about_conditions(clicks, tmp_path):
    clicks.assign(state="open").to_csv(tmp_path / "log.csv", index=False)
    ask = ["describe", tmp_path / "log.csv", *NAMED, "--outcome-where"]
    assert "to compare, write ==" in refused(*ask, 'state = "won"')
    assert "Text stands in quotes" in refused(*ask, "state == won")
    assert 'Is --outcome-where state == "won" right?' in refused(*ask, 'state == "won"')
    assert refused(*ask, "hour < 99999999999999999999999 and hour > 9999999999999999999999")


def test_describe_lists_a_column_of_dates_and_compare_refuses_it(clicks, tmp_path):
    clicks.assign(seen=clicks["click_time"]).to_parquet(tmp_path / "log.parquet", index=False)
    assert "Column seen: it holds dates" in run("describe", tmp_path / "log.parquet", *NAMED).output
    assert "seen holds times, which are no features" in refused(
        "compare", tmp_path / "log.parquet", *NAMED, "--horizon", "5d"
    )


def test_ids_are_warned_of(clicks, tmp_path):
    clicks.assign(row=np.arange(len(clicks))).to_csv(tmp_path / "log.csv", index=False)
    done = run("train", tmp_path / "log.csv", *NAMED, *FIT, "--out", tmp_path / "m.skops")
    assert done.exit_code == 0 and "column row: 1,500 of 1,500 values differ: it looks like an id" in done.stderr


def test_options_that_do_not_go_together(clicks, tmp_path):
    clicks.assign(id=np.arange(len(clicks)), won=0).to_csv(tmp_path / "log-2024-03-01.csv", index=False)
    snapshots = [tmp_path / "log-2024-03-01.csv", "--snapshots", "--arrival", "click_time", "--outcome", "won"]
    assert "--until does not go with snapshots" in refused(
        "describe", *snapshots, "--key", "id", "--until", "2024-03-02"
    )
    assert "snapshots are joined by a key" in refused("describe", *snapshots)
    assert "--keep nothing: no such column" in refused(
        "describe", tmp_path / "log-2024-03-01.csv", *NAMED, "--keep", "nothing"
    )
    assert "name a LOG" in refused("describe", "--horizon", "5d")
    assert "--db wants a query" in refused("describe", tmp_path / "log-2024-03-01.csv", "--db", "x.duckdb")


def test_a_column_that_is_dropped_cannot_be_asked_for(clicks, tmp_path):
    clicks.assign(price=1.0, unit_price=2.0).to_csv(tmp_path / "log.csv", index=False)
    ask = [tmp_path / "log.csv", *NAMED, "--horizon", "10d", "--drop", "unit_price,device"]
    assert "--group device: --drop leaves that column out" in refused("compare", *ask, "--group", "device")
    assert "--value unit_price: --drop leaves" in refused("forecast", *ask, "--value", "unit_price")
    kept = run("forecast", *ask, "--value", "price", "--method", "chain-ladder", "--cutoffs", 0)
    assert kept.exit_code == 0, kept.stderr
