"""``belated compare``: every correction on a log's own past."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from belated.cli.options import (
    LOG_OPTIONS,
    horizon_option,
    json_option,
    log_options,
    only,
    split_names,
    typed_again,
)
from belated.cli.outputs import may_draw, may_write, write_json, write_text
from belated.cli.terminal import friendly, out, plain
from belated.methods import METHODS, resolve_method
from belated.models import MODELS, require_installed

if TYPE_CHECKING:
    from belated.data.event_log import EventLog

_ASKED = (
    "horizon",
    "window",
    "methods",
    "models",
    "budget",
    "cutoffs",
    "lookback",
    "period",
    "group",
    "cache",
    "jobs",
    "keep",
)


@click.command("compare")
@log_options
@horizon_option
@click.option(
    "--window", metavar="DURATION", help="The age from which labels count as final. By default, 90% have come by then."
)
@click.option(
    "--methods", callback=split_names, metavar="A,B,...", help=f"Out of {', '.join(METHODS)}. By default all."
)
@click.option(
    "--models",
    callback=split_names,
    metavar="A,B,...",
    help=f"Engines, out of {', '.join(MODELS)}: every method under each. By default linear.",
)
@click.option(
    "--budget", metavar="DURATION", help="About how long it may take (10m): cheap fits first, the rest as time allows."
)
@click.option(
    "--cutoffs", default="6", show_default=True, metavar="N|T1,T2,...", help="Past instants: how many, or which."
)
@click.option(
    "--lookback", metavar="DURATION", help="How far back training rows go. By default half of the usable log."
)
@click.option("--period", metavar="DURATION", help="How long after a cut-off to predict. By default until the next.")
@click.option(
    "--group", metavar="COLUMN", help="Also show calibration for each value of this feature (campaigns, say)."
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a report to look at.")
@json_option
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep finished cut-offs, to go on after an interrupt.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Cut-offs at a time; by default one a core.")
@click.option(
    "--engine",
    metavar="dask|spark[://HOST:PORT]",
    help="Read and fit Parquet files on workers of Dask or Spark, on this machine or where it says.",
)
@friendly
def compare_command(log: tuple[Path, ...], **options: Any) -> None:
    """Try every correction on LOG's own past, and say which to use.

    For a series of past cut-offs: take what was known then, fit each method, predict what came next, and score that
    against labels that have matured since. `bl` takes labels as they stood, `oracle` knew the final ones: they bound the
    table.

    \b
    belated compare clicks.parquet --arrival click_time --outcome conversion_time --horizon 30d --report report.html
    belated compare clicks.csv --outcomes conversions.csv --key click_id --horizon 7d --methods tw,fsiw,dfm-piecewise
    belated compare clicks.parquet --horizon 30d --models linear,boost --budget 10m
    """
    from belated.cli.open_log import open_log
    from belated.cli.show_results import tested_days
    from belated.data.durations import parse_budget

    for name in options["methods"] or ():
        resolve_method(name)
    for name in options["models"] or ():
        require_installed(name)
    if options["budget"] is not None:
        parse_budget(options["budget"])
    cutoffs = _cutoffs(options["cutoffs"])
    may_draw(options["report"])
    may_write([*log, options["outcomes"], options["db"]], options["report"], options["json_file"])
    opened = open_log(log, options)

    def train(summary: dict[str, Any]) -> str:
        """The command that trains what a comparison recommends, on as many days as it tested."""
        advice, same = summary["recommendation"], only(options, (*LOG_OPTIONS, "horizon"))
        setting = {name: f"{value:g}" for name, value in advice["setting"].items()}
        model = {} if advice["model"] == "linear" else {"model": advice["model"]}
        chosen = {"method": advice["method"], **model, **tested_days(summary), **setting, "model_file": "model.skops"}
        return typed_again("train", log, {**same, **chosen})

    asked = only(options, _ASKED) | {"cutoffs": cutoffs}
    command = typed_again("compare", log, options)
    compare_log(
        opened.events, opened.name, opened.reading, command, train, options["report"], options["json_file"], **asked
    )


def compare_log(
    log: EventLog,
    name: str,
    reading: list[str],
    command: str,
    train: Callable[[dict[str, Any]], str] | None,
    report: Path | None,
    json_file: Path | None,
    *,
    horizon: str,
    jobs: int | None = None,
    group: str | None = None,
    **asked: Any,
) -> None:
    """Run a comparison, show it, and write what was asked for; ``train`` gives the command to go on with."""
    from belated.cli.show_results import show_comparison
    from belated.evaluation.backtest import backtest
    from belated.pages import comparison

    result = backtest(log, horizon=horizon, group=group, n_jobs=jobs, **asked)
    with out.status("Adding up"):
        summary = comparison(result, name) | {"command": command, "reading": reading}
    summary["train"] = None if train is None else train(summary)
    show_comparison(summary)
    if json_file is not None:
        write_json(json_file, summary)
        out.print(f"Numbers: {plain(str(json_file))}")
    if report is not None:
        from belated.report.page import render

        write_text(report, render(summary))
        out.print(f"Report: {plain(str(report))}")


def _cutoffs(text: str) -> int | list[str]:
    if not re.fullmatch(r"[0-9]{1,7}", text):  # 20240301 is a day
        return [part.strip() for part in text.split(",")]
    if int(text) < 1:
        raise ValueError(f"--cutoffs {text}: it takes at least 1.")
    return int(text)
