"""Criteo's format: the simulated file, buckets of integers, and the experiment at a tiny size."""

from __future__ import annotations

import gzip
import math

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

from belated import EventLog, FieldMatrix
from belated.cli import main
from belated.data.criteo_format import CRITEO_FIELDS, bucket, ingest_criteo
from belated.datasets import criteo_simulator as simulator
from belated.datasets.criteo_simulator import is_simulated, simulate_criteo
from belated.notices import quietly
from belated.reproduce import criteo_table as experiment
from belated.reproduce.criteo_table import reproduce_criteo, show

NAMES = ["click", "conversion", *CRITEO_FIELDS]


def read(file):
    return pl.read_csv(file, separator="\t", has_header=False, new_columns=NAMES, infer_schema_length=None)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("criteo") / "data.txt"
    simulate_criteo(path, rows=120_000, progress=False)
    return path


def test_the_simulated_file_has_the_published_statistics(file):
    table = read(file)
    assert table.shape == (120_000, 19) and table["click"].is_sorted()
    assert all(table[name].dtype == pl.Int64 for name in NAMES[:10])
    assert all(table[name].str.starts_with("sim").all() for name in NAMES[10:])
    assert set(table["click"] // 86400) == set(range(60))
    assert_allclose(table["conversion"].is_not_null().mean(), 0.228, atol=0.01)
    wait = (table["conversion"] - table["click"]).drop_nulls().to_numpy()
    assert wait.min() >= 0 and wait.max() <= 30 * 86400
    shares = [(wait <= seconds).mean() for seconds in (3600, 86400, 14 * 86400)]
    assert_allclose(shares, [0.35, 0.50, 0.87], atol=0.02)


def test_campaigns_enter_daily_and_late_ones_convert_more(file):
    table = read(file).with_columns(day=pl.col("click") // 86400, y=pl.col("conversion").is_not_null())
    entered = table.group_by("cat1").agg(pl.col("day").min().alias("entered"))
    assert (entered.filter(pl.col("entered") > 10).group_by("entered").len()["len"] >= 3).all()
    table = table.join(entered, on="cat1").filter(pl.col("day") >= 57)
    late, early = (table.filter(rows)["y"].mean() for rows in (pl.col("entered") >= 57, pl.col("entered") < 40))
    assert late > early + 0.15


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        simulate_criteo(tmp_path / name, rows=500, seed=seed, progress=False)
    first, second, other = (tmp_path.joinpath(name).read_bytes() for name in "abc")
    assert first == second != other
    assert is_simulated(tmp_path / "a")
    (tmp_path / "real").write_text("1\t\t" + "\t".join("1" * 8) + "\t" + "\t".join(["a1"] * 9) + "\n")
    assert not is_simulated(tmp_path / "real")
    (tmp_path / "a.gz").write_bytes(gzip.compress(first))
    assert is_simulated(tmp_path / "a.gz")
    (tmp_path / "b.gz").write_bytes(gzip.compress(first)[:-200])
    with pytest.raises(ValueError, match="incomplete or damaged"):
        ingest_criteo(tmp_path / "b.gz", tmp_path / "log", progress=False)


def test_an_interrupted_simulation_leaves_nothing(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulator, "_day", stop)
    with pytest.raises(KeyboardInterrupt):
        simulate_criteo(tmp_path / "data.txt", rows=500, progress=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="rows=10 must be at least 60"):
        simulate_criteo(tmp_path / "data.txt", rows=10)


def test_buckets_are_chapelles():
    values = [*range(1, 5000), 10**6, 10**9, 10**15]
    assert [bucket(v) for v in values] == [int(math.log(v + 0.5) / math.log(1.5) + 1e-12) for v in values]
    assert [bucket(v) for v in (0, -1, -20)] == [0, -1, -20]


def test_integers_of_a_file_are_hashed_by_bucket(file, tmp_path):
    lines = file.read_text().splitlines()[:300]
    parts = [line.split("\t") for line in lines]
    parts[0][2:10] = ["-3", "0", "1", "2", "999999999", "17", "", "100000000000000000"]
    (tmp_path / "data.txt").write_text("\n".join("\t".join(p) for p in parts))
    ingest_criteo(tmp_path / "data.txt", tmp_path / "log", progress=False)
    columns = {name: [p[2 + j] or None for p in parts] for j, name in enumerate(CRITEO_FIELDS)}
    for name in CRITEO_FIELDS[:8]:
        columns[name] = [None if v is None else str(bucket(int(v))) for v in columns[name]]
    assert_array_equal(
        EventLog.open(tmp_path / "log").frame.indices, FieldMatrix.from_frame(pl.DataFrame(columns)).indices
    )
    parts[7][4] = "1.5"
    (tmp_path / "data.txt").write_text("".join("\t".join(p) + "\n" for p in parts))
    with pytest.raises(ValueError, match=r"1 of 300 lines .* the next eight integers; the first such is line 8"):
        ingest_criteo(tmp_path / "data.txt", tmp_path / "log", progress=False)


ASK = {"days": [54, 55], "lambdas": [1.0, 10.0], "columns": 2**16, "progress": False}


def numbers(table):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in table]


@pytest.fixture(scope="module")
def whole(file, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return reproduce_criteo(file, out, **ASK), out


@pytest.mark.slow
def test_facts_that_hold_at_any_size(whole):
    table, out = whole
    means = {row["method"]: row for row in table if row["day"] == "all"}
    assert set(means) == set(experiment.TABLE_METHODS)
    others = [row["log_loss"] for name, row in means.items() if name != "Oracle"]
    assert means["Oracle"]["log_loss"] < 1.005 * min(others)
    corrections = (
        "Rescale",
        "TW",
        "PU",
        "ConvDF",
        "ConvDF, 1/M",
        "NnDF",
        "FSIW",
        "DFM",
        "DFM, Weibull",
        "DFM, piecewise",
        "Hazard",
    )
    assert means["BL"]["calibration_ratio"] < min(means[name]["calibration_ratio"] for name in corrections)
    assert {row["data"] for row in table} == {"simulated"}
    assert "simulated" in (out / "criteo-simulated.csv").read_text() and not (out / "criteo.csv").exists()
    assert "SIMULATED" in show(table).title


@pytest.mark.slow
def test_an_interrupted_experiment_goes_on_to_the_same_numbers(whole, file, tmp_path):
    table, out = whole
    for stage, done in (("lambda", 18), ("days", 20)):
        lines = (out / f"criteo-simulated-{stage}.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / f"criteo-simulated-{stage}.jsonl").write_text("".join(lines[:done]) + "".join(lines[done:])[:50])
    assert numbers(reproduce_criteo(file, tmp_path, **ASK)) == numbers(table)


@pytest.mark.slow
def test_a_part_and_a_sample(whole, file, tmp_path):
    table, _ = whole
    some = reproduce_criteo(file, tmp_path, methods=["BL", "TW"], **ASK)
    assert numbers(some) == numbers([row for row in table if row["method"] in ("BL", "TW")])
    early = reproduce_criteo(file, tmp_path, methods=["BL", "Shifted"], **{**ASK, "days": [40]})
    assert {row["method"] for row in early} == {"BL"}  # there are no 21 final days yet
    with pytest.raises(ValueError, match=r"methods=\['no'\] are not known"):
        reproduce_criteo(file, tmp_path, methods=["no"], **ASK)
    half = reproduce_criteo(file, tmp_path, sample=0.5, methods=["BL"], **ASK)
    rows = [t[-1]["test_rows"] for t in (half, [row for row in table if row["method"] == "BL"])]
    assert 0.45 < rows[0] / rows[1] < 0.55


def test_test_rows_are_those_of_the_day_and_training_ends_before_it(file, tmp_path):
    ingest_criteo(file, tmp_path / "log", n_columns=2**16, progress=False)
    task = experiment.Task(str(tmp_path / "log"), columns=2**16)
    click, conversion = (read(file)[name].to_numpy() for name in ("click", "conversion"))
    begin = 53 * 86400
    rows = (click >= begin - 21 * 86400) & (click < begin)
    data = experiment._training(task, 54)
    assert len(data.X) == rows.sum()
    assert data.known.y.sum() == (rows & (conversion < begin)).sum()
    assert data.final.y.sum() == (rows & ~np.isnan(conversion)).sum()
    then = (click >= begin - 51 * 86400) & (click < begin - 30 * 86400)
    assert experiment._training(task, 54, shifted=True).final.y.sum() == (then & ~np.isnan(conversion)).sum()


def test_convdf_falls_without_bound_but_for_the_penalty_and_nndf_does_not(file, tmp_path):
    """What the paper saw on Criteo's file, "it diverged", with the penalty it prints."""
    ingest_criteo(file, tmp_path / "log", n_columns=2**20, progress=False)
    task = experiment.Task(str(tmp_path / "log"), sample=0.1, columns=2**20)
    data = experiment._training(task, 54)
    for name, low, high in (("ConvDF", -np.inf, -1.0), ("NnDF", -1e-6, 0.1)):
        with quietly():
            (fit,) = experiment.fit_path(data.model, data.encoded, experiment.TABLE_METHODS[name], data.known, [1e-7])
        assert low < fit.model.objective_ < high


def broken(parts, case):
    if case == "late":
        parts[3][1] = str(int(parts[3][0]) + 31 * 86400)
    if case == "begin":
        parts = [[str(int(p[0]) + 10**9), "", *p[2:]] for p in parts]
    return parts


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("late", "1 of [0-9]+ conversions come more than 30 days after their click"),
        ("begin", "the first click is at second 1000000016, but the published file counts seconds from 0"),
        ("days", "has clicks of days 1 to 1, and a test day needs 21 days before it"),
    ],
)
def test_files_that_cannot_be_criteos(file, tmp_path, case, message):
    parts = [line.split("\t") for line in file.read_text().splitlines()[:300]]
    (tmp_path / "bad.txt").write_text("\n".join("\t".join(p) for p in broken(parts, case)))
    days = [22] if case == "late" else [54]
    if case == "late":  # long enough a file for its days to be right
        more = "\n" + "\t".join([str(60 * 86400 - 1), "", *parts[0][2:]])
        (tmp_path / "bad.txt").write_text((tmp_path / "bad.txt").read_text() + more)
    with pytest.raises(ValueError, match=message):
        reproduce_criteo(tmp_path / "bad.txt", tmp_path / "out", days, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say which data"),
        (["--data", "no.txt", "--simulate"], "say which data"),
        (["--data", "no.txt"], "no.txt"),
        (["--data", "no.txt", "--days", "60-54"], "the last day is before the first"),
        (["--data", "no.txt", "--days", "all"], "give a first and a last day"),
        (["--data", "no.txt", "--lambdas", "a"], "give numbers separated by commas"),
        (["--data", "no.txt", "--sample", "2"], "sample=2.0 must be above 0"),
        (["--data", "no.txt", "--lambdas=-1"], "lambdas=[-1.0] must be numbers of at least 0"),
        (["--data", "no.txt", "--window", "20"], "at most half of the 21 training days"),
    ],
)
def test_bad_options(tmp_path, options, message):
    done = CliRunner().invoke(main, ["reproduce", "criteo", "--out", str(tmp_path / "r"), *options])
    assert done.exit_code == 2 and message in done.stderr
    assert not (tmp_path / "r").exists()


def test_the_command(file, tmp_path):
    ask = ["--data", str(file), "--days", "54", "--sample", "0.3", "--lambdas", "1000", "--out", str(tmp_path)]
    done = CliRunner().invoke(main, ["reproduce", "criteo", *ask])
    assert done.exit_code == 0, done.stderr
    assert "SIMULATED" in done.output and (tmp_path / "criteo-simulated.csv").exists()
