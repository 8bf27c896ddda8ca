"""The command line: what it prints and writes, and one clear message with exit code 2 for each kind of broken file."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import shlex
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import belated
from belated import EventLog
from belated.cli import main
from belated.data.durations import DAY
from belated.datasets import simulate_campaigns
from belated.evaluation import backtest as backtest_module
from belated.extras import how_to_install
from belated.reproduce import toy_campaign
from belated.training import TrainedModel


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def clicks():
    return simulate_campaigns(4000).to_pandas()


@pytest.fixture
def log(clicks, tmp_path):
    path = tmp_path / "clicks.parquet"
    clicks.to_parquet(path)
    return path


QUICK = ["--horizon", "10d", "--methods", "tw,rescale", "--cutoffs", "2", "--jobs", "1", "--until", "2024-03-01"]


def test_compare_prints_a_table_and_writes_json_and_report(log, tmp_path):
    done = run(
        "compare", log, *QUICK, "--group", "campaign", "--json", tmp_path / "r.json", "--report", tmp_path / "r.html"
    )
    assert done.exit_code == 0, done.output
    assert "Taking click_time as the time of arrival" in done.output
    for word in ("oracle", "rescale", "gap closed", "belated.train(log, method="):
        assert word in done.output
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["recommended"] in data["methods"]
    assert {"bl", "oracle", "tw", "rescale"} == set(data["methods"])
    for row in data["methods"].values():
        assert {"log_loss", "relative_log_loss", "gap_closed", "pr_auc", "roc_auc", "calibration_ratio"} <= set(row)
    assert data["command"].startswith("belated compare") and "--horizon 10d" in data["command"]
    page = (tmp_path / "r.html").read_text()
    assert len(page) < 3e6 and "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clicks.parquet", "r.html", "r.json"]


def test_the_command_that_compare_prints_trains_on_as_many_days_as_it_tested(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("compare", log, *QUICK, "--json", "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    (line,) = [line for line in done.output.splitlines() if line.startswith("Now: ")]
    trained = run(*shlex.split(line.removeprefix("Now: belated ")))
    assert trained.exit_code == 0, trained.stderr
    about = TrainedModel.load("model.skops").about
    events = EventLog.from_frame(
        pq.read_table(log), arrival="click_time", outcome="conversion_time", until="2024-03-01"
    )
    tested = data["settings"]["lookback"]
    assert about["rows"] == len(events.latest(round(tested * DAY), None)) < len(events)
    (line,) = [line for line in done.output.splitlines() if line.startswith("In Python: ")]
    again = eval(line.removeprefix("In Python: "), {"belated": belated, "log": events})
    for name in ("rows", "window", "horizon", "method", "l2", "mean_prediction"):
        assert again.about[name] == pytest.approx(about[name])


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "folder"])
def test_every_kind_of_file_gives_the_same_description(clicks, log, tmp_path, kind):
    if kind == "folder":
        path = tmp_path / "parts"
        path.mkdir()
        clicks[:1500].to_parquet(path / "a.parquet")
        clicks[1500:].to_parquet(path / "b.parquet")
    else:
        path = tmp_path / f"clicks.{kind}"
        clicks.to_csv(path, index=False, sep="\t" if "tsv" in kind else ",")
    ask = ["--horizon", "10d", "--drop", "hour"]
    first, second = run("describe", log, *ask), run("describe", path, *ask)
    assert first.exit_code == second.exit_code == 0, second.output
    assert first.output == second.output
    assert "Half of all positives within 10 days come within" in first.output


def test_outcomes_in_a_file_of_their_own(clicks, log, tmp_path):
    clicks = clicks.assign(id=np.arange(len(clicks)))
    clicks.drop(columns="conversion_time").to_parquet(tmp_path / "a.parquet")
    clicks[["id", "conversion_time"]].dropna().to_csv(tmp_path / "b.csv", index=False)
    two = run("describe", tmp_path / "a.parquet", "--outcomes", tmp_path / "b.csv", "--key", "id", "--horizon", "10d")
    assert two.exit_code == 0, two.output
    assert two.output.splitlines()[-3:] == run("describe", log, "--horizon", "10d").output.splitlines()[-3:]
    lonely = run("describe", tmp_path / "a.parquet", "--outcomes", tmp_path / "b.csv")
    assert lonely.exit_code == 2 and "--outcomes and --key go together" in lonely.stderr


@pytest.mark.parametrize("method", ["auto", "tw", "dfm-piecewise"])
def test_train_and_predict(clicks, log, tmp_path, method):
    model, rows, found = tmp_path / "m.skops", tmp_path / "new.csv", tmp_path / "p.csv"
    trained = run("train", log, "--method", method, "--horizon", "10d", "--until", "2024-03-01", "--out", model)
    assert trained.exit_code == 0, trained.output + trained.stderr
    features = clicks.drop(columns=["click_time", "conversion_time"])[:50]
    features.to_csv(rows, index=False)
    done = run("predict", model, rows, "--out", found)
    assert done.exit_code == 0, done.stderr
    p = pd.read_csv(found)["probability"]
    saved = TrainedModel.load(model)
    assert np.allclose(p, saved.classifier.predict_proba(pa.Table.from_pandas(features, preserve_index=False))[:, 1])
    assert saved.about["rows"] == 4000 and saved.about["versions"]["belated"]
    wrong = features.drop(columns="device").assign(planet="mars")
    wrong.to_parquet(tmp_path / "wrong.parquet")
    refused = run("predict", model, tmp_path / "wrong.parquet", "--out", tmp_path / "never.csv")
    assert refused.exit_code == 2 and "lack 'device'" in refused.stderr
    assert not (tmp_path / "never.csv").exists()


def test_a_pickle_in_place_of_a_model_is_not_unpickled(tmp_path):
    canary = tmp_path / "canary"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(canary),)

    (tmp_path / "pickle.skops").write_bytes(pickle.dumps(Trap()))
    done = run("predict", tmp_path / "pickle.skops", tmp_path / "x.csv", "--out", tmp_path / "y.csv")
    assert done.exit_code == 2 and "pickle.skops: not a model saved by belated" in done.stderr
    assert not canary.exists()
    pickle.loads((tmp_path / "pickle.skops").read_bytes())
    assert canary.exists()  # the trap is a real one


def frame(n=200):
    start = pd.Timestamp("2024-01-01")
    at = start + pd.to_timedelta(np.arange(n) * 6, "h")
    then = (at + pd.Timedelta("1D")).where(np.arange(n) % 3 == 0)
    return pd.DataFrame({"click_time": at, "conversion_time": then, "campaign": np.where(np.arange(n) % 2, "a", "b")})


def truncated(path):
    frame().to_parquet(path / "x.parquet")
    data = (path / "x.parquet").read_bytes()
    (path / "x.parquet").write_bytes(data[: len(data) // 2])


def bad_gzip(path):
    (path / "x.csv.gz").write_bytes(gzip.compress(frame().to_csv(index=False).encode())[:-40])


def no_gzip(path):
    (path / "x.csv.gz").write_text("click_time,conversion_time\n")


def text(name, content, encoding="utf-8"):
    return lambda path: (path / name).write_bytes(content.encode(encoding))


def table(change, name="x.csv"):
    def write(path):
        changed = change(frame())
        changed.to_csv(path / name, index=False) if name.endswith("csv") else changed.to_parquet(path / name)

    return write


def mixed_encodings(path):
    lines = frame().assign(campaign="café").to_csv(index=False).splitlines()
    (path / "x.csv").write_bytes(b"\n".join(s.encode("utf-8" if i < 50 else "latin-1") for i, s in enumerate(lines)))


def ragged(path):
    lines = frame().to_csv(index=False).splitlines()
    lines[60] += ",extra,fields"
    (path / "x.csv").write_text("\n".join(lines))


def header_again(path):
    lines = frame().to_csv(index=False).splitlines()
    (path / "x.csv").write_text("\n".join(lines + lines))


def unlike_parts(path):
    (path / "x").mkdir()
    frame().to_parquet(path / "x" / "a.parquet")
    frame().rename(columns={"campaign": "brand"}).to_parquet(path / "x" / "b.parquet")


def wide(path):
    columns = {f"c{i}": np.zeros(200) for i in range(10_000)}
    pq.write_table(pa.table({**{k: pa.array(v) for k, v in frame().items()}, **columns}), path / "x.parquet")


BROKEN = {
    "no such file": (lambda path: None, "there is no such file"),
    "empty file": (text("x.csv", ""), "the file is empty"),
    "header only": (text("x.csv", "click_time,conversion_time,campaign\n"), "no rows"),
    "truncated Parquet": (truncated, "not a whole Parquet file"),
    "text called Parquet": (text("x.parquet", "click_time,conversion_time\n1,2\n"), "not a whole Parquet file"),
    "truncated gzip": (bad_gzip, "not a whole gzip file"),
    "text called gzip": (no_gzip, "not a whole gzip file"),
    "unknown kind": (text("x.xlsx", "PK"), "must end in"),
    "wrong delimiter": (
        lambda path: frame().to_csv(path / "x.csv", sep=";", index=False),
        "no commas, but 2 semicolons",
    ),
    "UTF-16": (text("x.csv", frame().to_csv(index=False), "utf-16"), "not UTF-8"),
    "mixed encodings": (mixed_encodings, "not UTF-8"),
    "ragged lines": (ragged, "Expected 3 columns, got 5"),
    "header in the middle": (header_again, "'click_time': 1 row is no ISO 8601 time"),
    "duplicated columns": (
        text("x.csv", "click_time,click_time\n2024-01-01,2024-01-02\n"),
        "several columns are named 'click_time'",
    ),
    "no positives": (table(lambda f: f.assign(conversion_time=pd.NaT)), "none of the 200 rows has an outcome"),
    "all positive": (
        table(lambda f: f.assign(conversion_time=f["click_time"] + pd.Timedelta("1h"))),
        "each of the 200 rows has an outcome",
    ),
    "future": (
        table(lambda f: f.assign(click_time=f["click_time"] + pd.Timedelta("36500D"), conversion_time=pd.NaT)),
        "in the future",
    ),
    "one row": (table(lambda f: f[:1]), "the one row has an outcome"),
    "two rows": (table(lambda f: f[:2]), "no longer than the horizon"),
    "outcome before arrival": (
        table(lambda f: f.assign(conversion_time=f["conversion_time"] - pd.Timedelta("9D"))),
        "before the arrival",
    ),
    "missing arrivals": (
        table(lambda f: f.assign(click_time=f["click_time"].where(np.arange(200) > 3)), "x.parquet"),
        "'click_time'",
    ),
    "no times": (table(lambda f: f.assign(click_time="soon")), "'arrival'|times of arrival|no ISO 8601"),
    "no features": (table(lambda f: f.drop(columns="campaign")), "no columns are left as features"),
    "a date among the features": (table(lambda f: f.assign(seen=f["click_time"])), "--drop seen"),
    "10,000 columns": (wide, "more than 1000"),
    "parts that differ": (unlike_parts, "differ in brand, campaign"),
    "empty folder": (lambda path: (path / "x").mkdir(), "holds no file"),
}


@pytest.mark.filterwarnings("ignore:.*PerformanceWarning")
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(kind, tmp_path):
    make, message = BROKEN[kind]
    make(tmp_path)
    names = [p.name for p in tmp_path.iterdir()]
    before = sorted(names)
    path = tmp_path / (names[0] if names else "x.csv")
    out = ["--report", tmp_path / "r.html", "--json", tmp_path / "r.json"]
    extra = ["--arrival", "click_time"] if kind in ("header in the middle", "no times") else []
    done = run("compare", path, "--horizon", "5d", *extra, *out)
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr.replace("\n", " ")), done.stderr
    assert "Traceback" not in done.output and done.stderr.startswith("Error: ")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_other_mistakes(log, tmp_path):
    for words, message in (
        (["compare", log, "--horizon", "soon"], "not a duration"),
        (["compare", log, "--horizon", "10d", "--methods", "magic"], "'magic' is not known"),
        (["compare", log, "--horizon", "10d", "--arrival", "nothing"], "no such column"),
        (["compare", log, "--horizon", "10d", "--drop", "nothing"], "no such column"),
        (["compare", log, "--horizon", "10d", "--report", tmp_path / "no" / "r.html"], "there is no folder"),
        (["train", log, "--horizon", "10d", "--method", "magic", "--out", tmp_path / "m"], "is not known"),
        (["predict", tmp_path / "none.skops", log, "--out", tmp_path / "p.csv"], "there is no such file"),
        (["compare", log], "Missing option '--horizon'"),
    ):
        done = run(*words)
        assert done.exit_code == 2 and message in done.stderr, done.stderr


def test_markup_in_names_is_shown_as_it_is(clicks, tmp_path):
    odd = clicks.rename(columns={"device": "[red]device[/]"})
    odd.to_parquet(tmp_path / "x.parquet")
    done = run("describe", tmp_path / "x.parquet", "--horizon", "10d")
    assert done.exit_code == 0 and "[red]device[/]" in done.output


def test_a_text_file_is_read_as_in_training(tmp_path):
    """A batch of a CSV may look like numbers, dates or truth values where training saw text."""
    n, rng = 300, np.random.default_rng(0)
    data = frame(n).assign(
        flag=rng.choice(["True", "False", "unknown"], n),
        code=rng.choice(["A1", "3"], n),
        when=rng.choice(["2024-01-01", "soon"], n),
    )
    data.to_csv(tmp_path / "log.csv", index=False)
    ask = ["--horizon", "5d", "--method", "bl", "--l2", "0.001", "--out", tmp_path / "m.skops"]
    assert run("train", tmp_path / "log.csv", *ask).exit_code == 0
    rows = data.drop(columns=["click_time", "conversion_time"])
    rows.to_csv(tmp_path / "all.csv", index=False)
    alike = (rows["flag"] == "True") & (rows["code"] == "3") & (rows["when"] == "soon")
    rows[alike].to_csv(tmp_path / "some.csv", index=False)
    for name in ("all", "some"):
        done = run("predict", tmp_path / "m.skops", tmp_path / f"{name}.csv", "--out", tmp_path / f"{name}.parquet")
        assert done.exit_code == 0, done.stderr
    whole = pd.read_parquet(tmp_path / "all.parquet")["probability"][alike.to_numpy()]
    assert np.allclose(whole, pd.read_parquet(tmp_path / "some.parquet")["probability"])


def test_no_file_is_read_and_written_at_once(log, tmp_path):
    before = log.read_bytes()
    for words in (
        ["compare", log, "--horizon", "10d", "--report", log],
        ["compare", log, "--horizon", "10d", "--report", tmp_path / "z", "--json", tmp_path / "z"],
        ["train", log, "--horizon", "10d", "--out", log],
        ["predict", log, log, "--out", log],
    ):
        done = run(*words)
        assert done.exit_code == 2 and "is read, or written, by this command already" in done.stderr
    assert log.read_bytes() == before
    assert "is a folder" in run("compare", log, "--horizon", "10d", "--report", tmp_path).stderr


def test_times_of_every_spelling(clicks, tmp_path):
    far = clicks.assign(
        conversion_time=clicks["conversion_time"].dt.strftime("%Y-%m-%d %H:%M:%S").fillna("2262-01-01 00:00:00")
    )
    far.assign(click_time=far["click_time"].astype(str)).to_parquet(tmp_path / "never.parquet")
    done = run("describe", tmp_path / "never.parquet", "--horizon", "10d")
    assert done.exit_code == 2 and "in the future" in done.stderr
    fine = clicks.assign(
        **{c: clicks[c].astype("datetime64[ns]") + np.timedelta64(7, "ns") for c in ("click_time", "conversion_time")}
    )
    fine.to_parquet(tmp_path / "ns.parquet")
    assert run("describe", tmp_path / "ns.parquet", "--horizon", "10d").exit_code == 0
    seconds = clicks.assign(
        **{c: (clicks[c] - pd.Timestamp("2024-01-01")) / pd.Timedelta("1s") for c in ("click_time", "conversion_time")}
    )
    seconds.to_parquet(tmp_path / "s.parquet")
    done = run("compare", tmp_path / "s.parquet", *QUICK[:-1], "6000000")
    assert done.exit_code == 0, done.stderr
    assert "number of seconds" in run("compare", tmp_path / "s.parquet", "--horizon", "10d", "--cutoffs", "soon").stderr


def test_odd_columns_and_files(clicks, log, tmp_path):
    done = run("describe", log, "--horizon", "10d", "--arrival", "a\\[/b]")
    assert done.exit_code == 2 and "a\\[/b]" in done.stderr
    clicks[clicks["hour"] != "3"].to_parquet(tmp_path / "index.parquet")
    assert "Leaving out __index_level_0__" in run("describe", tmp_path / "index.parquet", "--horizon", "10d").output
    views = pa.table({**{k: pa.array(v) for k, v in frame().items()}})
    views = views.set_column(2, "campaign", views["campaign"].cast(pa.string_view()))
    pyarrow.feather.write_feather(views, tmp_path / "view.arrow", compression="uncompressed")
    assert run("describe", tmp_path / "view.arrow", "--horizon", "5d").exit_code == 0
    lines = pd.concat([frame().assign(campaign=np.resize(["two\nlines, quoted", "one"], 200))] * 100)
    lines.to_csv(tmp_path / "lines.csv", index=False)
    assert "20,000 rows" in run("describe", tmp_path / "lines.csv", "--horizon", "5d").output
    at_once = frame().assign(conversion_time=frame()["click_time"].where(np.arange(200) % 3 == 0))
    at_once.to_csv(tmp_path / "now.csv", index=False)
    assert run("train", tmp_path / "now.csv", "--horizon", "5d", "--out", tmp_path / "m.skops").exit_code == 0


def test_a_damaged_cache_is_made_again(log, tmp_path, monkeypatch):
    ask = ["compare", log, *QUICK, "--cache", tmp_path / "cache"]
    first = run(*ask).output
    files = sorted((tmp_path / "cache").iterdir())
    assert len(files) == 2
    fitted = []
    work = backtest_module._run_cutoff
    monkeypatch.setattr(
        backtest_module, "_run_cutoff", lambda task, *rest: fitted.append(task.as_of) or work(task, *rest)
    )
    assert run(*ask).output == first and fitted == []  # all of it comes from the cache
    files[0].write_bytes(files[0].read_bytes()[:300])
    assert run(*ask).output == first and len(fitted) == 1
    whole = np.load(files[1])
    np.savez(files[1], **{**whole, "about": np.array(json.dumps({"as_of": "2024", "surprise": 1}))})
    assert run(*ask).output == first and len(fitted) == 2
    assert "is a file; name a folder" in run(*ask[:-1], log).stderr


def test_compare_says_how_to_train_and_when_there_is_too_little(log, clicks, tmp_path):
    done = run("compare", log, *QUICK)
    (line,) = (line for line in done.output.splitlines() if line.startswith("Now: belated train"))
    words = line.split()[2:]
    words[words.index("--out") + 1] = str(tmp_path / "m.skops")
    assert run(*words).exit_code == 0
    clicks[::40].to_parquet(tmp_path / "small.parquet")
    small = run("compare", tmp_path / "small.parquet", *QUICK)
    assert small.exit_code == 0 and "Too little to go by" in small.output


def test_a_command_for_a_log_too_short_for_its_horizon_has_neither_lookback_nor_window(log):
    done = run("compare", log, *QUICK[2:], "--horizon", "35d", "--window", "5d")
    assert done.exit_code == 0, done.stderr
    (line,) = (line for line in done.output.splitlines() if line.startswith("Now: belated train"))
    assert "--lookback" not in line and "--window" not in line
    assert "With care, for the log is short" in " ".join(done.output.split())
    longer = run("compare", log, *QUICK)
    assert "--lookback" in longer.output and "With care" not in longer.output


def test_a_report_without_its_libraries_is_refused_at_once(log, tmp_path, monkeypatch):
    monkeypatch.setattr("belated.cli.outputs.find_spec", lambda name: None)
    done = run("compare", log, "--horizon", "10d", "--report", tmp_path / "r.html")
    assert done.exit_code == 2 and how_to_install("report") in done.stderr


def test_reproduce(tmp_path, monkeypatch):
    small = partial(toy_campaign.reproduce_toy, days=3, per_day=300)
    monkeypatch.setattr(toy_campaign, "reproduce_toy", small)
    done = run("reproduce", "toy", "--trials", "1", "--jobs", "1", "--out", tmp_path / "results")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "results" / "toy.csv").read_text().startswith("method,day,")


def test_a_column_that_knows_the_outcome_is_refused(clicks, tmp_path):
    clicks.assign(converted=clicks["conversion_time"].notna()).to_csv(tmp_path / "log.csv", index=False)
    ask = ["--horizon", "10d", "--until", "2024-03-01"]
    model = tmp_path / "m.skops"
    for command in (["compare"], ["train", "--out", model]):
        done = run(command[0], tmp_path / "log.csv", *ask, *command[1:])
        assert done.exit_code == 2 and "converted seems to know the outcome" in done.stderr, done.stderr
        assert "where it is true, 100.0% of the rows have one, where it is false, 0.0%" in done.stderr
    assert not model.exists()
    more = ["--method", "bl", "--l2", "0.001", "--out", model]
    assert run("train", tmp_path / "log.csv", *ask, *more, "--keep", "converted").exit_code == 0
    assert (
        "Column converted seems to know the outcome: it takes away"
        in run("describe", tmp_path / "log.csv", *ask).output
    )


def test_the_demo_runs_without_the_drawing_libraries(tmp_path, monkeypatch):
    monkeypatch.setattr("belated.cli.outputs.find_spec", lambda name: None)
    monkeypatch.setattr("belated.cli.demo._METHODS", ["tw"])
    done = run("demo", "--rows", "3000", "--report", tmp_path / "r.html")
    assert done.exit_code == 0, done.stderr
    assert "No report was drawn: that needs matplotlib and jinja2" in done.output.replace("\n", " ")
    assert how_to_install("report") in done.output.replace("\n", " ") and not (tmp_path / "r.html").exists()


def test_no_message_sends_people_to_an_index():
    """Until the name is ours there, anybody could have taken it."""
    root = Path(belated.__file__).parents[2]
    files = [*(root / "src").rglob("*.py"), *(root / "docs").glob("*.md"), root / "README.md", root / "Makefile"]
    assert [f.name for f in files if re.search(r"pip install '?\"?belated", f.read_text())] == []


def test_an_ingested_log_can_be_described_and_compared(clicks, tmp_path):
    clicks.to_parquet(tmp_path / "clicks.parquet", index=False)
    times = {"arrival": "click_time", "outcome": "conversion_time"}
    belated.ingest_parquet(tmp_path / "clicks.parquet", tmp_path / "log", **times, progress=False)
    assert "5 hashed features" in run("describe", tmp_path / "log", "--horizon", "10d").output
    done = run("compare", tmp_path / "log", "--horizon", "10d", "--cutoffs", "2", "--methods", "tw")
    assert done.exit_code == 0, done.stderr
    refused = run("describe", tmp_path / "log", "--horizon", "10d", "--drop", "hour")
    assert refused.exit_code == 2 and "has its columns already" in refused.stderr
