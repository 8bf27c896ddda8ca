"""``belated watch``: a folder of pages that is kept up to date."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from belated.cli.outputs import may_draw
from belated.cli.terminal import friendly, out, plain

if TYPE_CHECKING:
    from belated.cli.watch_config import Config, Job
    from belated.cli.watched_site import Site

_FAILED_LIMIT = 1  # the exit code of belated monitor
_FAULT = 70
_WARNING = "Warning: "  # as commands say it


@click.command("watch")
@click.argument("config", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Of the pages.")
@click.option("--again", is_flag=True, help="Run everything, although nothing has changed.")
@friendly
def watch_command(config: Path, folder: Path, again: bool) -> None:
    """Keep a folder of pages up to date: describe, compare, forecast and monitor what CONFIG names.

    Only what has changed is run again, so it may be run every hour. Exit code 1: a monitor's limit is broken. 2: something could not be run.

    \b
    belated watch watch.toml --out site/

    \b
    title = "Ads"
    [logs.clicks]                       # described, compared and forecast
    files = "clicks.parquet"            # relative to this file; keys are options of the commands
    arrival = "click_time"
    outcome = "conversion_time"
    horizon = "30d"
    compare = {methods = "tw,dfm-piecewise", every = "1d"}
    [monitors.model]
    files = "scores.parquet"
    outcomes = "outcomes.csv"
    key = "id"
    score = "p"
    horizon = "30d"
    fail-on = ["calibration=0.9..1.1"]
    """
    from belated.cli.watch_config import read_config
    from belated.cli.watched_site import Site
    from belated.report.index_page import render_index

    may_draw(folder / "index.html")
    asked = read_config(config)
    site = Site(folder.resolve(), config.resolve(), [job.name for job in asked.jobs])
    with site.locked():
        site.forget_all_but({job.name for job in asked.jobs})
        try:
            for job in asked.jobs:
                _bring_up_to_date(job, site, asked, again)
        finally:
            pages = [site.pages[job.name] | {"name": job.name} for job in asked.jobs if job.name in site.pages]
            site.write_index(render_index({"title": asked.title, "pages": pages, "written": _now()}))
    out.print(f"Pages: {plain(str(folder / 'index.html'))}")
    codes = {page["code"] for page in pages}
    if codes - {0}:
        sys.exit(1 if _FAILED_LIMIT in codes else 2)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _bring_up_to_date(job: Job, site: Site, asked: Config, again: bool) -> None:
    """Run a job, unless its page is of the same inputs or it is not due yet."""
    from belated import __version__

    before = site.pages.get(job.name)
    inputs = [__version__, [*job.words, *job.files], job.state_of_inputs()]
    if (
        before is not None
        and not again
        and before["code"] in (0, _FAILED_LIMIT)
        and all(site.file(job.name, ending).exists() for ending in job.endings)
    ):
        young = time.time() - before["ran_at"] < job.every / 1e6 and before["inputs"][:2] == inputs[:2]
        if young or (before["inputs"] == inputs and "--sql" not in job.words):
            out.print(f"{plain(job.name)}: {'not due' if young else 'unchanged'} since {before['ran']}")
            return
    started = time.time()
    with out.status(plain(job.name)):
        code, said, warned = _run(job, site, asked.folder)
    about: dict[str, Any] = {
        "command": job.command,
        "source": job.source,
        "inputs": inputs,
        "code": code,
        "ran": _now(),
        "ran_at": started,
        "warnings": warned,
        "has_limits": job.has_limits,
    }
    page, written = site.file(job.name, ".json"), code in (0, _FAILED_LIMIT)
    about["sentence"] = _sentence(job, page) if written and page.exists() else said
    kept = {"page_of": None, "page_code": None} if before is None else before
    about |= {"page_of": about["ran"] if written else kept["page_of"]}
    about |= {"page_code": code if written else kept["page_code"]}
    site.keep(job.name, about)
    mark = {0: "", _FAILED_LIMIT: "[red]limit broken[/] "}.get(code, "[red]failed[/] ")
    out.print(f"{plain(job.name)}: {mark}{plain(about['sentence'])} ({time.time() - started:.0f} s)", soft_wrap=True)
    for warning in warned:
        out.print(f"  [yellow]Warning:[/] {plain(warning)}", soft_wrap=True)


def _run(job: Job, site: Site, folder: Path) -> tuple[int, str, list[str]]:
    """The command as a program of its own: what breaks there breaks nothing here. Gives its exit code, its last words and its warnings."""
    words = [sys.executable, "-m", "belated.cli", *job.words]
    words += ["--report", str(site.file(job.name, ".html")), "--json", str(site.file(job.name, ".json"))]
    if ".csv" in job.endings:
        words += ["--csv", str(site.file(job.name, ".csv"))]
    if job.command == "compare":
        words += ["--cache", str(site.inside / f"{job.name}-cache")]
    words += ["--", *job.files]
    # It holds the lock as well: where this program is killed, no other run begins before it has ended.
    shared = {} if os.name == "nt" else {"pass_fds": (site.lock,)}
    pipes: dict[str, Any] = {**shared, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    program = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, **pipes)
    try:
        _, errors = program.communicate()
    except BaseException:
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(10)
        raise
    code = program.returncode
    if code == _FAILED_LIMIT and "Traceback" in errors:  # a fault of the program ends with the same code
        code = _FAULT
    warned = [line.removeprefix(_WARNING) for line in errors.splitlines() if line.startswith(_WARNING)]
    return code, errors.strip().rpartition("Error: ")[2] or f"ended with code {code}", warned


def _sentence(job: Job, numbers: Path) -> str:
    """What a page says, in a sentence."""
    from belated.report.diagnosis_page import diagnosis_in_brief

    summary = json.loads(numbers.read_text())
    if job.command == "describe":
        return diagnosis_in_brief(summary)
    return str(summary["recommendation"]["why"] if job.command == "compare" else summary["verdict"])
