"""``belated reproduce``: one command for each experiment."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from belated.cli.terminal import err, friendly, out, plain
from belated.extras import needs


@click.group("reproduce")
def reproduce_command() -> None:
    """Run an experiment of the literature again: tables and pictures go to a folder.

    An interrupted run goes on where it stopped.
    """


def _experiment(command: Callable[..., Any]) -> Any:
    """What the commands have in common."""

    @wraps(command)
    def run(folder: Path, **options: Any) -> None:
        try:
            with needs("report", "tune"):
                command(folder, **options)
        except KeyboardInterrupt:
            err.print("Interrupted. What is done is kept; the same command goes on from there.")
            sys.exit(130)
        out.print(f"Results: {plain(str(folder))}")

    place = click.option(
        "--out", "folder", type=click.Path(path_type=Path), default=Path("results"), show_default=True, metavar="FOLDER"
    )
    return place(friendly(run))


_jobs = click.option("--jobs", type=click.IntRange(1), metavar="N", help="At a time; by default one a core.")


@reproduce_command.command()
@_experiment
@click.option("--trials", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Data sets to draw.")
@_jobs
def synthetic(folder: Path, trials: int, jobs: int | None) -> None:
    """Yasui and Kato 2022, their figure: relative log loss against the strength of a drift."""
    from belated.reproduce.drift_figure import reproduce_synthetic

    reproduce_synthetic(folder, trials, jobs=jobs)


@reproduce_command.command()
@_experiment
@click.option("--trials", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="Runs.")
@_jobs
def toy(folder: Path, trials: int, jobs: int | None) -> None:
    """Chapelle 2014: one campaign, retrained every day."""
    from belated.reproduce.toy_campaign import reproduce_toy

    reproduce_toy(folder, trials, jobs)


@reproduce_command.command()
@_experiment
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Criteo's data.txt, or data.txt.gz.")
@click.option("--simulate", is_flag=True, help="Without that file: simulate one like it (2 GB) in the folder.")
@click.option("--days", default="54-60", show_default=True, metavar="A-B", help="Test days, counted from 1.")
@click.option("--sample", type=float, default=1.0, show_default=True, metavar="SHARE", help="Of the clicks, at random.")
@click.option(
    "--lambdas",
    default="0.1,0.05,0.01,0.005",
    show_default=True,
    metavar="A,B,...",
    help="Times 1/2^24, to choose from.",
)
@click.option("--window", type=float, default=7.0, show_default=True, metavar="DAYS", help="Tau.")
@click.option("--device", type=click.Choice(["cpu", "cuda", "auto"]), default="cpu", show_default=True)
def criteo(
    folder: Path, data: Path | None, simulate: bool, days: str, sample: float, lambdas: str, window: float, device: str
) -> None:
    """Yasui and Kato 2022, their table, and Chapelle's: log loss, accuracy and area under precision-recall by day.

    \b
    belated reproduce criteo --data data.txt      All of it: more than an hour on two cores.
    belated reproduce criteo --data data.txt --days 54 --sample 0.1 --lambdas 100,20      A quick look: a minute.
    belated reproduce criteo --simulate           On a simulated file.

    The published lambdas are so small that fits take long, on a sample too.
    """
    from belated.reproduce.criteo_table import reproduce_criteo, show

    data = _file(folder, data, simulate)
    out.print(show(reproduce_criteo(data, folder, _days(days), sample, _numbers(lambdas), window, device=device)))


@reproduce_command.command()
@_experiment
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Criteo's data.txt, or data.txt.gz.")
@click.option("--simulate", is_flag=True, help="Without that file: simulate one like it (2 GB) in the folder.")
@click.option("--sample", type=float, default=1.0, show_default=True, metavar="SHARE", help="Of the clicks, at random.")
@click.option("--wait", default="15min", show_default=True, metavar="DURATION", help="For a first label.")
@click.option("--model", type=click.Choice(["linear", "network"]), default="linear", show_default=True)
@_jobs
def streaming(
    folder: Path, data: Path | None, simulate: bool, sample: float, wait: str, model: str, jobs: int | None
) -> None:
    """ES-DFM, DEFER, DEFUSE and their line: 30 days of warm-up, then 30 days hour by hour.

    \b
    belated reproduce streaming --data data.txt
    belated reproduce streaming --simulate        On a simulated file.
    """
    from belated.reproduce.stream_table import reproduce_streaming, show_stream_table

    engine = None
    if model == "network":
        from belated.models import require_installed
        from belated.models.network import NetworkModel

        require_installed(model)
        engine = NetworkModel(embedding_rows=2**18)
    out.print(show_stream_table(reproduce_streaming(_file(folder, data, simulate), folder, sample, wait, engine, jobs)))


def _file(folder: Path, data: Path | None, simulate: bool) -> Path:
    """The file that was named, or a simulated one."""
    from belated.datasets.criteo_simulator import simulate_criteo

    if (data is None) != simulate:
        raise ValueError("say which data: --data FILE for Criteo's data.txt, or --simulate for a file like it.")
    if data is not None:
        return data
    simulated = folder / "criteo-simulated.txt"
    if not simulated.exists():
        folder.mkdir(parents=True, exist_ok=True)
        simulate_criteo(simulated)
    return simulated


def _days(text: str) -> range:
    found = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", text)
    if not found:
        raise ValueError(f"--days {text}: give a first and a last day, as in 54-60.")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f"--days {text}: the last day is before the first.")
    return range(first, last + 1)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--lambdas {text}: give numbers separated by commas, as in 0.1,0.05.") from None
