"""``belated watch``: pages that are kept up to date, with real programs behind them; what is told of a wrong file; two runs that never meet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from belated.cli import main
from belated.cli.watch_config import read_config
from belated.datasets import simulate_clicks, simulate_scores

CONFIG = """
title = "Ads <b>"
[logs.clicks]
files = "clicks.parquet"
horizon = "14d"
lookback = "30d"
compare = {methods = "tw", cutoffs = 2, every = "1d", lookback = "10d", jobs = 1}
forecast = {as_of = "2024-02-05", method = "chain-ladder", cutoffs = 2}
[monitors.model]
files = ["scores.parquet"]
outcomes = "outcomes.csv"
key = "id"
score = "p"
horizon = "30d"
lags = ["3d"]
fail-on = ["calibration=..5"]
"""


def run(*words):
    return CliRunner().invoke(main, ["watch", *map(str, words)])


@pytest.fixture
def folder(tmp_path):
    pq.write_table(simulate_clicks(40, 150), tmp_path / "clicks.parquet")
    scores, outcomes = simulate_scores(10_000, rate_change=0.5)
    pq.write_table(scores, tmp_path / "scores.parquet")
    pa_csv.write_csv(outcomes, tmp_path / "outcomes.csv")
    (tmp_path / "watch.toml").write_text(CONFIG)
    return tmp_path


def listed(site):
    return sorted(file.name for file in site.iterdir() if file.name != ".belated")


@pytest.mark.slow
def test_every_kind_of_page_is_written_and_not_again_without_need(folder):
    site, config = folder / "site", folder / "watch.toml"
    assert run(config, "--out", site).exit_code == 0
    names = ["clicks-compare", "clicks-describe", "clicks-forecast", "model-monitor"]
    files = {f"{name}.{ending}" for name in names for ending in ("html", "json")}
    assert set(listed(site)) == files | {"clicks-forecast.csv", "index.html"}
    index = (site / "index.html").read_text()
    assert {*re.findall(r'href="([^"]+)"', index)} == {*listed(site)} - {"index.html"}
    assert json.loads((site / "clicks-compare.json").read_text())["recommended"] in ("bl", "tw")
    stamps = {name: (site / name).stat().st_mtime_ns for name in files}
    again = run(config, "--out", site)
    assert again.exit_code == 0 and "clicks-compare: not due since" in again.output
    assert again.output.count("unchanged since") == 3
    assert {name: (site / name).stat().st_mtime_ns for name in files} == stamps


def test_pages_are_written_kept_and_written_again(folder):
    site, config = folder / "site", folder / "watch.toml"
    text = CONFIG[: CONFIG.index("[logs.clicks]")] + CONFIG[CONFIG.index("[monitors.model]") :]
    config.write_text(text)
    done = run(config, "--out", site)
    assert done.exit_code == 0, done.output
    index = (site / "index.html").read_text()
    assert "Ads &lt;b&gt;" in index and "No monitor&#39;s limit is broken" in index
    assert run(config, "--out", site).output.count("unchanged since") == 1

    # A broken limit is told each time, although nothing is run, and a page that is no more is taken away.
    config.write_text(
        text.replace("calibration=..5", "calibration=0.9..1.1").replace("monitors.model", "monitors.other")
    )
    for said in ("limit broken", "unchanged since"):
        later = run(config, "--out", site)
        assert later.exit_code == 1 and said in later.output
    assert "Broken limits: other" in (site / "index.html").read_text()
    assert listed(site) == ["index.html", "other-monitor.html", "other-monitor.json"]

    # What cannot be run keeps its last page, and is told.
    (folder / "scores.parquet").write_bytes(b"no table")
    broken = run(config, "--out", site)
    assert "Broken limits: other. Could not be run" in (site / "index.html").read_text()  # its page still says so
    assert broken.exit_code == 2 and "other-monitor: failed" in broken.output
    assert "Could not be run: other-monitor" in (site / "index.html").read_text()
    assert "other-monitor.html" in listed(site)


def test_two_runs_never_meet(folder):
    site = folder / "site"
    program = [sys.executable, "-m", "belated.cli", "watch", str(folder / "watch.toml"), "--out", str(site)]
    first = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.time() + 60
        while not (site / ".belated" / "lock").exists() or not (site / ".belated" / "lock").read_text():
            assert time.time() < deadline
            time.sleep(0.05)
        second = run(folder / "watch.toml", "--out", site)
        assert (
            second.exit_code == 2 and f"another belated watch is writing there (process {first.pid})" in second.output
        )
    finally:
        first.kill()
        first.wait()
    # The lock ends with the last of its programs, even where the first was killed, and then the next run goes on.
    (folder / "watch.toml").write_text(
        "[logs.clicks]\nfiles = 'clicks.parquet'\nhorizon = '14d'\ncompare = false\nforecast = false"
    )
    while (done := run(folder / "watch.toml", "--out", site)).exit_code:
        assert "another belated watch" in done.output and time.time() < deadline
        time.sleep(0.2)
    assert {"clicks-describe.html", "clicks-describe.json", "index.html"} <= set(listed(site))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "is not TOML"),
        ("logs = 3", "write \\[logs.NAME\\]"),
        ("[log.a]", "'log' is not known"),
        ("", "names no source"),
        ("[logs.a]\nhorizon = '3d'", "say what to read"),
        ("[logs.a]\nfiles = 'a.csv'", "'horizon' is missing"),
        ("[logs.a]\nfiles = 3\nhorizon = '3d'", "files must be the name of a file"),
        (
            "[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\nhorizn = 3",
            "'horizn' is no option of describe, compare, forecast",
        ),
        (
            "[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\ncompare = {metods = 'tw'}",
            "compare: 'metods' is no option of belated compare",
        ),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\ncompare = 'no'", "compare must be a section of options, or false"),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\nreport = 'x.html'", "'report' cannot be set"),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\nevery = 'often'", "every='often'"),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\nsnapshots = 'yes'", "'snapshots' must be true or false"),
        ("[logs.'a/b']\nfiles = 'a.csv'\nhorizon = '3d'", "a name may have letters"),
        ("[monitors.a]\nfiles = 'a.csv'\nhorizon = '3d'", "'score' is missing"),
        (
            "[logs.a]\nhorizon = '3d'\ncompare = false\ndescribe = false\nforecast = false",
            "nothing is to be run for a log, 'a'",
        ),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '7 dogs'", "horizon='7 dogs'"),
        ("[logs.a]\nfiles = 'a.csv'\nhorizon = '3d'\nforecast = {level = 2}", "forecast: Invalid value for '--level'"),
        (
            "[monitors.a]\nfiles = 'a.csv'\nhorizon = '3d'\nscore = 'p'\nfail-on = ['luck=1..2']",
            "'luck' is not a figure",
        ),
        ("[monitors.a]\nfiles = 'a.csv'\nhorizon = '3d'\nscore = 'p'\nfail-on = 3", "fail_on=3 is not understood"),
        (
            "[monitors.a]\nfiles = 'a.csv'\nhorizon = '3d'\nscore = 'p'\nfail-on = 'auc=0.7..'\nfail_on = 'auc=0.8..'",
            "'fail-on' is given twice",
        ),
    ],
)
def test_a_wrong_file_is_told_before_anything_runs(tmp_path, text, message):
    config = tmp_path / "watch.toml"
    config.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_config(config)
    assert run(config, "--out", tmp_path / "site").exit_code == 2
    assert not (tmp_path / "site").exists()


def test_options_become_words_and_paths_are_relative_to_the_file(folder):
    jobs = {job.name: job for job in read_config(folder / "watch.toml").jobs}
    assert list(jobs) == ["clicks-describe", "clicks-compare", "clicks-forecast", "model-monitor"]
    assert jobs["clicks-describe"].words == ("describe", "--horizon", "14d", "--lookback", "30d")
    assert jobs["clicks-describe"].files == ("clicks.parquet",)
    assert "10d" in jobs["clicks-compare"].words and jobs["clicks-compare"].every == 86_400_000_000
    assert jobs["model-monitor"].words[-4:] == ("--lags", "3d", "--fail-on", "calibration=..5")
    assert jobs["model-monitor"].inputs == (folder / "scores.parquet", folder / "outcomes.csv")
    before = jobs["model-monitor"].state_of_inputs()
    os.utime(folder / "outcomes.csv", ns=(0, 0))
    assert jobs["model-monitor"].state_of_inputs() != before


DESCRIBED = """
[logs.clicks]
files = "{}"
horizon = "14d"
compare = false
forecast = false
"""


def test_one_source_that_is_gone_stops_no_other(folder):
    (folder / "latest.parquet").symlink_to("gone.parquet")
    (folder / "watch.toml").write_text(
        DESCRIBED.format("latest.parquet") + DESCRIBED.format("clicks.parquet").replace("clicks]", "other]")
    )
    for _ in range(2):
        done = run(folder / "watch.toml", "--out", folder / "site")
        assert done.exit_code == 2 and "clicks-describe: failed" in done.output
    assert "other-describe.html" in listed(folder / "site") and "other-describe: unchanged" in done.output


def test_what_is_left_out_is_told_on_the_pages(folder):
    clicks = simulate_clicks(40, 150).to_pandas()
    clicks["id"] = range(len(clicks))
    came = clicks.dropna(subset="conversion_time")[["id", "conversion_time"]]
    came.loc[came.index[:7], "id"] += 10**6
    clicks.drop(columns="conversion_time").to_parquet(folder / "clicks.parquet")
    came.to_parquet(folder / "came.parquet")
    (folder / "watch.toml").write_text(DESCRIBED.format("clicks.parquet") + "outcomes = 'came.parquet'\nkey = 'id'")
    site = folder / "site"
    done = run(folder / "watch.toml", "--out", site)
    assert done.exit_code == 0 and "Warning: 7 of" in done.output
    for name in ("index.html", "clicks-describe.html"):
        assert re.search(r"7 of \d+ outcomes match no arrival", (site / name).read_text()), name
    assert "match no arrival" in json.loads((site / "clicks-describe.json").read_text())["reading"][0]


def test_damaged_or_missing_files_of_the_folder_are_written_again(folder):
    site, config = folder / "site", folder / "watch.toml"
    config.write_text(DESCRIBED.format("clicks.parquet"))
    assert run(config, "--out", site).exit_code == 0
    for damage in ('{"clicks-describe": 3}', '{"clicks-describe": {}}', "[1]", "{"):
        (site / ".belated" / "pages.json").write_text(damage)
        done = run(config, "--out", site)
        assert done.exit_code == 0 and "unchanged" not in done.output, done.output
    (site / "clicks-describe.json").unlink()
    assert run(config, "--out", site).exit_code == 0 and (site / "clicks-describe.json").exists()


def test_a_folder_belongs_to_one_configuration(folder):
    site, config = folder / "site", folder / "watch.toml"
    config.write_text(DESCRIBED.format("clicks.parquet"))
    assert run(config, "--out", site).exit_code == 0
    other = folder / "other.toml"
    other.write_text(DESCRIBED.format("clicks.parquet").replace("clicks]", "mine]"))
    done = run(other, "--out", site)
    assert done.exit_code == 2 and "holds the pages of" in done.output and "watch.toml" in done.output
    assert "clicks-describe.html" in listed(site)
    config.unlink()  # the configuration has another name now
    assert run(other, "--out", site).exit_code == 0 and "mine-describe.html" in listed(site)


@pytest.mark.parametrize("name", ["index.html", "clicks-describe.html", "clicks-describe.json"])
def test_files_of_others_are_not_replaced(folder, name):
    (folder / "site").mkdir()
    (folder / "site" / name).write_text("mine")
    done = run(folder / "watch.toml", "--out", folder / "site")
    assert done.exit_code == 2 and "did not write" in done.output
    assert (folder / "site" / name).read_text() == "mine"
