"""docs/your-data.md: the files are written, every command is typed, and what the page shows of a file is in it."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from belated.cli import main

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "your-data.md").read_text()
COMMANDS = re.findall(r"^ {4}(belated .*)$", PAGE, re.MULTILINE)
COMPARED = [command for command in COMMANDS if command.startswith("belated compare")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    spec = importlib.util.spec_from_file_location("make_files", ROOT / "examples" / "your_data" / "make_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(folder)
    return folder


def type_it(command, *more):
    words = shlex.split(command)[1:]
    if words[0] == "compare":  # fewer methods and cut-offs than a user has, to be quick
        words += ["--methods", "tw", "--cutoffs", "2", "--jobs", "1"]
    return CliRunner().invoke(main, [*words, *more])


@pytest.mark.parametrize("command", [c for c in COMMANDS if "predict" not in c], ids=lambda c: c[:60])
def test_every_command_works_as_it_is_written(command, files, monkeypatch):
    if "--sql" in command:
        pytest.importorskip("duckdb")
    monkeypatch.chdir(files)
    done = type_it(command)
    assert done.exit_code == 0, done.output + done.stderr


def test_the_page_covers_what_people_have():
    for part in ("--outcomes", "bookings.csv", "--outcome-where", "--snapshots", "chargeback", "ts_install", "--sql"):
        assert any(part in command for command in COMPARED), part


def test_predictions_as_on_the_page(files, monkeypatch):
    monkeypatch.chdir(files)
    train, predict = (c for c in COMMANDS if c.startswith(("belated train", "belated predict")))
    assert type_it(train, "--l2", "1e-3").exit_code == 0
    assert type_it(predict).exit_code == 0
    before, after = (Path(name).read_bytes().splitlines() for name in ("bookings.csv", "predictions.csv"))
    assert [line.rsplit(b",", 1)[0] for line in after] == before


def test_what_the_page_shows_is_in_the_files(files):
    shown = [line for block in re.findall(r"\n```\n(.*?)\n```\n", PAGE, re.DOTALL) for line in block.splitlines()]
    assert len(shown) >= 5
    written = {
        p.name: p.read_bytes().decode("latin-1").splitlines() for p in files.iterdir() if p.suffix in (".csv", ".jsonl")
    }
    for line in shown:
        assert any(line in lines for lines in written.values()), line


def test_the_leak_on_the_page_is_refused(files, monkeypatch):
    monkeypatch.chdir(files)
    (leads,) = (c for c in COMPARED if "leads.csv" in c)
    done = type_it(leads.replace("--drop Auftragswert ", ""))
    assert done.exit_code == 2 and "Auftragswert seems to know the outcome" in done.stderr
    assert "--drop Auftragswert" in done.stderr and "--keep Auftragswert" in done.stderr
    kept = type_it(leads.replace("--drop Auftragswert ", "--keep Auftragswert "))
    assert kept.exit_code == 0, kept.stderr


def test_the_python_on_the_page(files, monkeypatch):
    monkeypatch.chdir(files)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names = {}
    exec(compile(code, "docs/your-data.md", "exec"), names)
    won = (names["leads"]["Status"] == "gewonnen").sum()
    assert names["log"].positives == won > 100 and names["log"].features == ["Quelle", "Land", "Listenpreis"]
