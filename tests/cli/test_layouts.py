"""One log in the ways in which people have it: every command gives the same table, to the last digit."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from belated.cli import main
from belated.datasets import simulate_campaigns

TIMES = ["click_time", "conversion_time"]
NAMED = ["--arrival", "click_time", "--outcome", "conversion_time"]
END = pd.Timestamp("2024-02-29")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def clicks():
    """Two months of simulated clicks, stamped by the day."""
    df = simulate_campaigns(2500).to_pandas()
    for name in TIMES:
        df[name] = df[name].dt.floor("D")
    df.loc[df["conversion_time"] > END, "conversion_time"] = pd.NaT
    df["hour"] = df["hour"].astype(int)
    df["price"] = np.round(np.random.default_rng(0).gamma(2, 10, len(df)), 2)
    return df


def methods(done, file):
    assert done.exit_code == 0, done.output + done.stderr
    return json.loads(file.read_text())["methods"]


def compare(folder, *words, until=True):
    file = folder / "out.json"
    file.unlink(missing_ok=True)
    more = ["--until", "2024-02-29"] if until else []
    chosen = ["--horizon", "14d", "--cutoffs", "2", "--methods", "tw", "--jobs", "1", "--json", file]
    return methods(run("compare", *words, *chosen, *more), file)


@pytest.fixture(scope="module")
def expected(clicks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    clicks.to_parquet(folder / "log.parquet", index=False)
    return compare(folder, folder / "log.parquet", *NAMED)


def semicolons(df, folder):
    df.to_csv(folder / "log.csv", sep=";", decimal=",", index=False)
    return [folder / "log.csv", *NAMED, "--sep", ";", "--decimal", ","]


def formatted(form):
    def write(df, folder):
        df.assign(**{name: df[name].dt.strftime(form) for name in TIMES}).to_csv(folder / "log.csv", index=False)
        return [folder / "log.csv", *NAMED, "--time-format", form]

    return write


def day_first(df, folder):
    return [*formatted("%d/%m/%Y")(df, folder)[:-1], "dayfirst"]


def since_1970(scale):
    def write(df, folder):
        numbers = {name: (df[name] - pd.Timestamp(0)).dt.total_seconds().mul(scale).astype("Int64") for name in TIMES}
        df.assign(**numbers).to_csv(folder / "log.csv", index=False)
        return [folder / "log.csv", *NAMED]

    return write


def gzipped(df, folder):
    df.to_csv(folder / "log.csv.gz", index=False)
    return [folder / "log.csv.gz", *NAMED]


def zipped(df, folder):
    df.to_csv(folder / "log.zip", index=False, compression={"method": "zip", "archive_name": "log.csv"})
    return [folder / "log.zip", *NAMED]


def zstandard(df, folder):
    import pyarrow as pa

    with pa.output_stream(str(folder / "log.csv.zst"), compression="zstd") as file:
        file.write(df.to_csv(index=False).encode())
    return [folder / "log.csv.zst", *NAMED]


def latin(df, folder):
    df.assign(Stück=1).to_csv(folder / "log.csv", index=False, encoding="latin-1")
    return [folder / "log.csv", *NAMED, "--encoding", "latin-1", "--drop", "Stück"]


def hive(df, folder):
    for month, part in df.groupby(df["click_time"].dt.strftime("%Y-%m")):
        (folder / f"month={month}").mkdir()
        part.to_parquet(folder / f"month={month}" / "part-0.parquet", index=False)
    return [folder, *NAMED, "--drop", "month"]


def several(df, folder):
    df[:1000].to_csv(folder / "a.csv", index=False)
    df[1000:].to_csv(folder / "b.csv", index=False)
    return [folder / "a.csv", folder / "b.csv", *NAMED]


def pattern(df, folder):
    several(df, folder)
    return [folder / "[ab].csv", *NAMED]


def duckdb_query(df, folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "warehouse.duckdb")) as connection:
        connection.register("frame", df)
        connection.execute("CREATE TABLE clicks AS SELECT * FROM frame")
    return ["--db", folder / "warehouse.duckdb", "--sql", "SELECT * FROM clicks", *NAMED]


def json_lines(df, folder):
    df.assign(**{name: df[name].dt.strftime("%Y-%m-%d") for name in TIMES}).to_json(
        folder / "log.jsonl", orient="records", lines=True
    )
    return [folder / "log.jsonl", *NAMED]


def json_list(df, folder):
    df.assign(**{name: df[name].dt.strftime("%Y-%m-%d") for name in TIMES}).to_json(
        folder / "log.json", orient="records"
    )
    return [folder / "log.json", *NAMED]


def arrow(df, folder):
    df.to_feather(folder / "log.arrow")
    return [folder / "log.arrow", *NAMED]


def two_tables(df, folder):
    df = df.assign(click_id=[f"c{i:05d}" for i in range(len(df))])
    df.drop(columns="conversion_time").to_csv(folder / "clicks.csv", index=False)
    known = df[df["conversion_time"].notna()]
    known[["click_id", "conversion_time"]].sample(frac=1, random_state=0).to_csv(folder / "sales.csv", index=False)
    return [folder / "clicks.csv", "--outcomes", folder / "sales.csv", "--key", "click_id", *NAMED]


def outcomes_of_two_kinds(df, folder):
    df = df.assign(click_id=np.arange(len(df)))
    df.drop(columns="conversion_time").to_csv(folder / "clicks.csv", index=False)
    sales = df.loc[df["conversion_time"].notna(), ["click_id", "conversion_time"]].assign(kind="sale")
    views = df[["click_id", "click_time"]].rename(columns={"click_time": "conversion_time"}).assign(kind="view")
    pd.concat([views, sales]).to_csv(folder / "events.csv", index=False)
    words = [folder / "clicks.csv", "--outcomes", folder / "events.csv", "--key", "click_id", *NAMED]
    return [*words, "--outcome-where", 'kind == "sale"']


def zoned(df, folder):
    local = {name: df[name].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin") for name in TIMES}
    df.assign(**local).to_csv(folder / "log.csv", index=False)  # with offsets that change in spring
    return [folder / "log.csv", *NAMED]


def flag_beside_times(df, folder):
    df.assign(converted=df["conversion_time"].notna().astype(int)).to_csv(folder / "log.csv", index=False)
    return [folder / "log.csv", *NAMED, "--drop", "converted"]


def odd_names(df, folder):
    df.rename(columns={"price": 'price, "net"', "hour": "hour, local"}).to_csv(folder / "log.csv", index=False)
    names = [name for name in df.columns if name not in (*TIMES, "price", "hour")]
    named = [word for name in [*names[:3], "hour, local", *names[3:], 'price, "net"'] for word in ("--feature", name)]
    return [folder / "log.csv", *NAMED, *named]


LAYOUTS = {
    "semicolons and decimal commas": semicolons,
    "US dates": formatted("%m/%d/%y"),
    "dd.mm.yyyy": formatted("%d.%m.%Y"),
    "day first": day_first,
    "dates as numbers": formatted("%Y%m%d"),
    "seconds since 1970": since_1970(1),
    "milliseconds since 1970": since_1970(1000),
    "microseconds since 1970": since_1970(1_000_000),
    "gzip": gzipped,
    "zip": zipped,
    "zstandard": zstandard,
    "latin-1": latin,
    "a folder by month": hive,
    "several files": several,
    "a pattern": pattern,
    "DuckDB": duckdb_query,
    "JSON lines": json_lines,
    "a JSON list": json_list,
    "Arrow": arrow,
    "two tables": two_tables,
    "outcomes of two kinds": outcomes_of_two_kinds,
    "zoned times": zoned,
    "a flag beside the times": flag_beside_times,
    "names with commas and quotes": odd_names,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_table_to_the_last_digit(layout, clicks, expected, tmp_path):
    (tmp_path / "data").mkdir()
    assert compare(tmp_path, *LAYOUTS[layout](clicks, tmp_path / "data")) == expected


def daily(df, folder, where=False):
    df = df.assign(click_id=np.arange(len(df)))
    for day in pd.date_range(df["click_time"].min(), END):
        seen = df[df["click_time"] <= day]
        won = seen["conversion_time"] <= day
        state = {"status": np.where(won, "won", "open")} if where else {"converted": won.astype(int)}
        seen.drop(columns="conversion_time").assign(**state).to_csv(folder / f"clicks-{day.date()}.csv", index=False)
    return [folder, "--snapshots", "--key", "click_id", "--arrival", "click_time"]


@pytest.mark.parametrize("where", [False, True])
def test_daily_snapshots_give_the_same_table(where, clicks, expected, tmp_path):
    (tmp_path / "data").mkdir()
    words = daily(clicks, tmp_path / "data", where)
    positive = ["--outcome-where", 'status == "won"'] if where else ["--outcome", "converted"]
    assert compare(tmp_path, *words, *positive, until=False) == expected


def test_a_snapshot_may_be_in_several_files(clicks, expected, tmp_path):
    (tmp_path / "data").mkdir()
    words = daily(clicks, tmp_path / "data")
    for file in sorted((tmp_path / "data").iterdir()):
        folder = tmp_path / "parts" / f"day={file.stem.removeprefix('clicks-')}"
        folder.mkdir(parents=True)
        frame = pd.read_csv(file)
        frame[::2].to_csv(folder / "part-0.csv", index=False)
        frame[1::2].to_csv(folder / "part-1.csv", index=False)
    words = [tmp_path / "parts", *words[1:], "--outcome", "converted", "--drop", "day"]
    found = compare(tmp_path, *words, until=False)
    assert found["tw"]["log_loss"] == pytest.approx(expected["tw"]["log_loss"], rel=1e-9)  # in another order


def test_the_train_command_that_is_printed_can_be_typed(clicks, tmp_path):
    import shlex

    words = odd_names(clicks, tmp_path)
    done = run("compare", *words, "--horizon", "14d", "--cutoffs", "2", "--methods", "tw", "--until", "2024-02-29")
    (line,) = (line for line in done.output.splitlines() if line.startswith("Now: "))
    typed = shlex.split(line.removeprefix("Now: "))[1:]
    typed[typed.index("--out") + 1] = str(tmp_path / "model.skops")
    assert run(*typed).exit_code == 0 and (tmp_path / "model.skops").exists()


# What a new user sees when the first try is not right: the next step, and never "rewrite your file".


def unsaid(words, *options):
    words = [str(word) for word in words]
    for option in options:
        place = words.index(option)
        del words[place : place + 2]
    return words


@pytest.mark.parametrize(
    ("layout", "leave_out", "message"),
    [
        ("semicolons and decimal commas", ["--sep", "--decimal"], "say --sep ';'"),
        ("semicolons and decimal commas", ["--decimal"], "Say --decimal ','"),
        ("dd.mm.yyyy", ["--time-format"], "say --time-format '%d.%m.%Y'"),
        ("US dates", ["--time-format"], "say --time-format '%m/%d/%y'"),
        ("dates as numbers", ["--time-format"], "--time-format %Y%m%d"),
        ("latin-1", ["--encoding"], "--encoding latin-1"),
        ("outcomes of two kinds", ["--key"], "--outcomes and --key go together"),
    ],
)
def test_the_second_try_is_told(layout, leave_out, message, clicks, tmp_path):
    done = run("compare", *unsaid(LAYOUTS[layout](clicks, tmp_path), *leave_out), "--horizon", "14d")
    assert done.exit_code == 2 and message in done.stderr, done.stderr


def test_numbers_since_1970_are_said_to_be_so(clicks, tmp_path):
    done = run("describe", *since_1970(1000)(clicks, tmp_path), "--horizon", "14d")
    assert "Column 'click_time' is read as milliseconds since 1970, the first of them 2024-01-01" in done.output
    wrong = run("describe", tmp_path / "log.csv", *NAMED, "--time-unit", "s", "--horizon", "14d")
    assert wrong.exit_code == 2 and "not plausible as a time" in wrong.stderr and "--time-unit" in wrong.stderr


def test_a_flag_in_place_of_a_time_is_explained(clicks, tmp_path):
    flagged = clicks.assign(converted=clicks["conversion_time"].notna().astype(int), updated=clicks["click_time"])
    flagged.drop(columns="conversion_time").to_csv(tmp_path / "log.csv", index=False)
    done = run("compare", tmp_path / "log.csv", "--arrival", "click_time", "--outcome", "converted", "--horizon", "14d")
    assert done.exit_code == 2
    for words in (
        "whether there was an outcome, and not when",
        "last update",
        "--snapshots",
        "EventLog.from_snapshots",
    ):
        assert words in done.stderr


def test_everything_small_is_checked_before_the_large_file_is_read(tmp_path, monkeypatch):
    (tmp_path / "log.csv").write_text("click_time,conversion_time,price\n2024-01-01,,1\n")

    def reading(*_):
        raise AssertionError("the file was read")

    monkeypatch.setattr("belated.tables.sources.read_text", reading)
    for words, message in (
        (["--horizon", "2m"], "'2min' for minutes, or '60d' for months"),
        (["--horizon", "14d", "--window", "soon"], "window='soon' is not a duration"),
        (["--horizon", "14d", "--features", "prise"], "--features prise: no such column"),
        (["--horizon", "14d", "--drop", "prise"], "--drop prise: no such column"),
        (["--horizon", "14d", "--key", "id", "--outcomes", tmp_path / "log.csv"], "--key id: no such column"),
        (["--horizon", "14d", "--outcome-where", "state == 1"], "--outcome-where state: no such column"),
        (["--horizon", "14d", "--json", tmp_path / "no" / "x.json"], "there is no folder"),
        (["--horizon", "14d", "--methods", "dmf"], "dmf"),
        (["--horizon", "14d", "--cutoffs", "0"], "cutoffs"),
    ):
        done = run("compare", tmp_path / "log.csv", *NAMED, *words)
        assert done.exit_code == 2 and message in done.stderr, (words, done.output, done.stderr, done.exception)


def test_unused_columns_are_never_read(clicks, tmp_path, monkeypatch):
    import pyarrow.dataset as ds

    clicks.to_parquet(tmp_path / "log.parquet", index=False)
    asked, dataset = [], ds.dataset
    monkeypatch.setattr("belated.tables.sources.ds.dataset", lambda *a, **k: Spy(dataset(*a, **k), asked))
    done = run("describe", tmp_path / "log.parquet", *NAMED, "--features", "price", "--horizon", "14d")
    assert done.exit_code == 0, done.stderr
    assert asked and {name for columns in asked for name in columns} == {*TIMES, "price"}


class Spy:
    def __init__(self, data, asked):
        self.data, self.asked, self.schema = data, asked, data.schema

    def to_table(self, columns):
        self.asked.append(columns)
        return self.data.to_table(columns=columns)


def test_keys_that_do_not_match_are_shown_from_both_sides(tmp_path):
    (tmp_path / "clicks.csv").write_text("id,click_time,x\n00501,2024-01-01,1\n00502,2024-01-02,2\n")
    for sales in ("id,conversion_time\n501,2024-01-03\n", 'id,conversion_time\n" 501",2024-01-03\n'):
        (tmp_path / "sales.csv").write_text(sales)
        words = [tmp_path / "clicks.csv", "--outcomes", tmp_path / "sales.csv", "--key", "id", "--category", "id"]
        done = run("describe", *words, *NAMED, "--horizon", "2d")
        assert done.exit_code == 2 and "'00501', '00502' (text) in the table of arrivals" in done.stderr
        assert "501" in done.stderr.split("arrivals", 1)[1] and "Without padding 1 would match" in done.stderr


def test_warnings_before_an_error_are_shown_with_it(tmp_path):
    (tmp_path / "clicks.csv").write_text("id,click_time,x\n1,2024-01-01,1\n2,2024-01-02,2\n")
    (tmp_path / "sales.csv").write_text("id,conversion_time\n7,2024-01-03\n8,2024-01-03\n")
    words = [tmp_path / "clicks.csv", "--outcomes", tmp_path / "sales.csv", "--key", "id"]
    done = run("describe", *words, *NAMED, "--horizon", "2d")
    assert done.exit_code == 2 and "2 of 2 outcomes match no arrival" in done.stderr
    assert "none of the 2 rows has an outcome" in done.stderr


@pytest.mark.parametrize("compress", [False, True])
def test_text_in_another_encoding_comes_out_in_it(compress, clicks, tmp_path):
    """Also where a letter takes two bytes."""
    content = clicks.to_csv(index=False).encode("utf-16")
    name = "log.csv.gz" if compress else "log.csv"
    (tmp_path / name).write_bytes(gzip.compress(content) if compress else content)
    model = tmp_path / "model.skops"
    words = [tmp_path / name, *NAMED, "--encoding", "utf-16", "--horizon", "14d", "--until", "2024-02-29"]
    done = run("train", *words, "--method", "bl", "--l2", "1e-3", "--out", model)
    assert done.exit_code == 0, done.stderr
    done = run("predict", model, tmp_path / name, "--encoding", "utf-16", "--out", tmp_path / "p.csv")
    assert done.exit_code == 0, done.stderr
    lines = (tmp_path / "p.csv").read_bytes().decode("utf-16").splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == content.decode("utf-16").splitlines()
