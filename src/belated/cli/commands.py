"""The command ``belated``: each command reads files, calls one public function, and shows what it found."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
import pyarrow as pa
from rich.markup import escape as _plain

from belated import __version__
from belated.classifier import DelayedFeedbackClassifier
from belated.cli.log_options import log_options, open_log, split_names
from belated.cli.reproduce import reproduce
from belated.cli.terminal import friendly, out, show_comparison, show_diagnosis
from belated.data.event_log import EventLog
from belated.data.labels import observe
from belated.data.times import DAY, parse_duration
from belated.datasets import simulate_campaigns
from belated.evaluation.backtest import backtest
from belated.evaluation.diagnosis import diagnose
from belated.evaluation.validation import L2_GRID, Choice, choose_l2
from belated.methods import METHODS, resolve_method
from belated.models import LinearModel
from belated.persistence import SavedModel
from belated.tables.files import (
    check_writable_kind,
    kinds_of,
    read_table,
    write_beside,
    write_table,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="belated")
@click.option("-v", "--verbose", is_flag=True, help="Say what is decided along the way.")
def main(verbose: bool) -> None:
    """Classifiers for labels that arrive late.

    A LOG has one row for each thing that arrived (a click, a booking, a payment), with the time of its arrival, the time
    of its outcome (a conversion, a cancellation, a chargeback) where there has been one, and features known at arrival.

    \b
    belated describe log.parquet --horizon 30d       How late are my labels?
    belated compare log.parquet --horizon 30d        Which correction should I use, and what does it gain?
    belated train log.parquet --method auto --horizon 30d --out model.skops
    belated predict model.skops new.parquet --out predictions.parquet
    belated demo                                     A comparison on a simulated log, to see what it gives.
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(message)s", stream=sys.stderr)


@main.command()
@log_options
@click.option(
    "--horizon", required=True, metavar="DURATION", help="Positive: the outcome comes within this, as in 30d or 36h."
)
@click.option(
    "--window", metavar="DURATION", help="The age from which labels count as final. By default, 90% have come by then."
)
@click.option(
    "--methods", callback=split_names, metavar="A,B,...", help=f"Out of {', '.join(METHODS)}. By default all."
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
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE.json", help="Write all numbers.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep finished cut-offs, to go on after an interrupt.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Cut-offs at a time; by default one a core.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the resampling behind intervals."
)
@friendly
def compare(log: Path, **options: Any) -> None:
    """Try every correction on LOG's own past, and say which to use.

    For a series of past cut-offs: take what was known then, fit each method, predict what came next, and score that
    against labels that have matured since. `bl` takes labels as they stood, `oracle` knew the final ones: they bound the
    table.

    \b
    belated compare clicks.parquet --arrival click_time --outcome conversion_time --horizon 30d --report report.html
    belated compare clicks.csv --outcomes conversions.csv --key click_id --horizon 7d --methods tw,fsiw,dfm-piecewise
    """
    _may_draw(options["report"])
    _may_write([log, options["outcomes"]], options["report"], options["json_file"])
    _, events = open_log(log, options)
    _compare(
        events, log.name, _command(log, options), partial(_train_command, log, options), **_only(options, _COMPARE)
    )


_COMPARE = "horizon window methods cutoffs lookback period group report json_file cache jobs seed"


def _compare(
    log: EventLog,
    name: str,
    command: str,
    train: Callable[[dict[str, Any]], str] | None,
    horizon: str,
    window: str | None = None,
    methods: list[str] | None = None,
    cutoffs: str = "6",
    lookback: str | None = None,
    period: str | None = None,
    group: str | None = None,
    report: Path | None = None,
    json_file: Path | None = None,
    cache: Path | None = None,
    jobs: int | None = None,
    seed: int = 0,
) -> None:
    result = backtest(
        log,
        horizon=_duration(horizon, log),
        window=_duration(window, log),
        methods=methods,
        cutoffs=_cutoffs(cutoffs, log),
        lookback=_duration(lookback, log),
        period=_duration(period, log),
        group=group,
        cache=cache,
        n_jobs=jobs,
        seed=seed,
    )
    with out.status("Drawing resamples"):
        summary = result.summary()
        days = timedelta(days=result.settings.window)
        diagnosis = diagnose(log, horizon=_duration(horizon, log), window=days, group=group)
    summary |= {"name": name, "command": command, "diagnosis": diagnosis.summary()}
    summary["train"] = None if train is None else train(summary["recommendation"])
    show_comparison(summary)
    if json_file is not None:
        _write_text(json_file, json.dumps(summary, indent=1, allow_nan=False))
        out.print(f"Numbers: {_plain(str(json_file))}")
    if report is not None:
        from belated.report import render

        _write_text(report, render(summary))
        out.print(f"Report: {_plain(str(report))}")


@main.command()
@log_options
@click.option(
    "--horizon", metavar="DURATION", help="Outcomes later than this after arrival do not count. By default all do."
)
@click.option("--window", metavar="DURATION", help="The age from which labels count as final. By default a suggestion.")
@click.option("--group", metavar="COLUMN", help="Also test each value of this feature for changes.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE.json", help="Write all numbers.")
@friendly
def describe(log: Path, **options: Any) -> None:
    """How late LOG's labels are, and whether the usual assumptions hold. Nothing is fitted.

    \b
    belated describe bookings.parquet --arrival booked --outcome cancelled --horizon 90d
    """
    _may_write([log, options["outcomes"]], options["json_file"])
    _, events = open_log(log, options)
    horizon, window = (_duration(options[key], events) for key in ("horizon", "window"))
    diagnosis = diagnose(events, horizon=horizon, window=window, group=options["group"])
    show_diagnosis(diagnosis)
    if options["json_file"] is not None:
        _write_text(options["json_file"], json.dumps(diagnosis.summary(), indent=1, allow_nan=False))


@main.command()
@log_options
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", help=f"auto, or one of {', '.join(METHODS)}."
)
@click.option(
    "--horizon", required=True, metavar="DURATION", help="Positive: the outcome comes within this, as in 30d or 36h."
)
@click.option("--window", metavar="DURATION", help="The age from which labels count as final. By default a suggestion.")
@click.option("--lookback", metavar="DURATION", help="How far back training rows go. By default all.")
@click.option(
    "--l2",
    type=float,
    metavar="NUMBER",
    help="Strength of regularisation. By default chosen by setting the clock back.",
)
@click.option(
    "--out",
    "model_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Where to write the model.",
)
@friendly
def train(log: Path, **options: Any) -> None:
    """Train a model on LOG as it stands at its end.

    \b
    belated train clicks.parquet --method dfm-piecewise --horizon 30d --lookback 21d --out model.skops
    """
    _may_write([log, options["outcomes"]], options["model_file"])
    method, l2 = options["method"], options["l2"]
    if method != "auto" and method not in METHODS:
        raise ValueError(f"--method {method} is not known; choose auto or one of {', '.join(METHODS)}.")
    table, events = open_log(log, options)
    horizon = _duration(options["horizon"], events)
    lookback = _duration(options["lookback"], events)
    diagnosis = diagnose(events, horizon=horizon, window=_duration(options["window"], events), lookback=lookback)
    span = (events.last - events.first) / DAY
    window = diagnosis.window if options["window"] else float(np.clip(diagnosis.window, span / 50.0, span / 2.0))
    reach = events.last - events.first if lookback is None else parse_duration(lookback, "lookback", events.clock)
    # Outcomes may go on after the last arrival; the lookback goes back from there.
    snap = events.at(events.until, reach + events.until - events.last, parse_duration(horizon, "horizon", events.clock))
    with out.status(f"Training on {len(snap):,} rows"):
        if l2 is None and method != "auto":
            observed = observe(snap.y == 1, snap.elapsed, snap.delay, None, window, snap.horizon)
            choice = choose_l2(snap.X, observed, LinearModel(), {method: resolve_method(method)}, L2_GRID)[method]
            l2 = choice.l2 if isinstance(choice, Choice) else None
        model = None if l2 is None else LinearModel(l2=l2)
        clf = DelayedFeedbackClassifier(method, window, snap.horizon, model)
        clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    about = {
        "command": _command(log, options, "train"),
        "as_of": snap.as_of,
        "rows": len(snap),
        "positive_so_far": int(snap.y.sum()),
        "method": repr(clf.method_),
        "window": window,
        "horizon": snap.horizon,
        "l2": clf.model_.l2,
        "mean_prediction": float(clf.predict_proba(snap.X)[:, 1].mean()),
    }
    features = events.features
    kinds = {name: kind for name, kind in kinds_of(table).items() if name in features}
    kinds |= {name: "text" for name in features if name not in kinds}  # columns without a single value
    others = [name for name in table.column_names if name not in features]
    SavedModel(clf, kinds, others, about).save(options["model_file"])
    out.print(
        f"{about['method']} on {len(snap):,} rows known at {snap.as_of}, window {window:.3g} days, l2 {clf.model_.l2:g}: "
        f"{snap.y.mean():.2%} are positive so far, the model expects {about['mean_prediction']:.2%} in the end."
    )
    out.print(f"Model: {_plain(str(options['model_file']))}")


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rows", type=click.Path(path_type=Path))
@click.option(
    "--out", "file", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Parquet, CSV or TSV."
)
@friendly
def predict(model: Path, rows: Path, file: Path) -> None:
    """Add a column `probability` to ROWS, by a MODEL that `belated train` made.

    \b
    belated predict model.skops new.parquet --out predictions.parquet
    """
    _may_write([model, rows], file)
    check_writable_kind(file)
    saved = SavedModel.load(model)
    table = read_table(rows, saved.features)
    if "probability" in table.column_names:
        raise ValueError(f"{rows.name}: there is a column 'probability' already. Rename it.")
    p = saved.predict(table)
    write_table(table.append_column("probability", pa.array(p)), file)
    out.print(f"{len(p):,} rows, mean probability {p.mean():.2%}: {_plain(str(file))}")


@main.command()
@click.option(
    "--report", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, metavar="FILE.html"
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE.json", help="Write all numbers.")
@click.option("--rows", type=click.IntRange(1000), default=150_000, show_default=True, help="Clicks to simulate.")
@friendly
def demo(report: Path, json_file: Path | None, rows: int) -> None:
    """Compare methods on a simulated log: two months of clicks in campaigns that come, go and change."""
    _may_draw(report)
    _may_write([], report, json_file)
    out.print(f"Simulating {rows:,} clicks of two months, in campaigns that come, go and change.")
    log = EventLog.from_frame(
        simulate_campaigns(rows), arrival="click_time", outcome="conversion_time", until="2024-03-01"
    )
    command = f"belated demo --rows {rows}"
    methods = ["tw", "fsiw", "convdf", "nndf", "rescale", "dfm", "dfm-piecewise", "hazard"]
    _compare(
        log,
        "simulated clicks",
        command,
        None,
        "14d",
        methods=methods,
        group="campaign",
        report=report,
        json_file=json_file,
    )


main.add_command(reproduce)


def _duration(text: str | None, log: EventLog) -> Any:
    if text is None:
        return None
    return float(text) if log.clock == "seconds" and text.replace(".", "", 1).isdigit() else text


def _cutoffs(text: str, log: EventLog) -> int | list[Any]:
    if re.fullmatch(r"[0-9]{1,3}", text):
        return int(text)
    parts = [part.strip() for part in text.split(",")]
    return [_number(part, "--cutoffs") for part in parts] if log.clock == "seconds" else parts


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} {text}: this log counts seconds, so give a number of seconds.") from None


def _only(options: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: options[name] for name in names.split()}


def _command(log: Path, options: dict[str, Any], name: str = "compare") -> str:
    """The command as one would type it again."""
    flags = {"json_file": "json", "model_file": "out"}
    words = ["belated", name, str(log)]
    for key, value in options.items():
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else str(value)
            words += [f"--{flags.get(key, key)}", text]
    return shlex.join(words)


def _train_command(log: Path, options: dict[str, Any], advice: dict[str, Any]) -> str:
    """The command that trains what a comparison recommends."""
    same = _only(options, "arrival outcome outcomes key features drop until horizon lookback")
    chosen = {"method": advice["method"], "window": f"{advice['window']:.6g}d", "l2": f"{advice['l2']:g}"}
    return _command(log, {**same, **chosen, "model_file": "model.skops"}, "train")


def _may_write(inputs: list[Path | None], *files: Path | None) -> None:
    """Complain before the work, not after it."""
    taken = {file.resolve() for file in inputs if file is not None}
    for file in files:
        if file is None:
            continue
        if not file.parent.exists():
            raise ValueError(f"{file}: there is no folder {file.parent}.")
        if file.is_dir():
            raise ValueError(f"{file}: is a folder; name a file.")
        if not os.access(file.parent, os.W_OK):
            raise ValueError(f"{file}: nothing can be written to {file.parent}.")
        if file.resolve() in taken:
            raise ValueError(f"{file}: is read, or written, by this command already; name another file.")
        taken.add(file.resolve())


def _may_draw(report: Path | None) -> None:
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if report is not None and missing:
        raise ValueError(f"a report needs {' and '.join(missing)}: pip install 'belated[report]'.")


def _write_text(path: Path, text: str) -> None:
    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_beside(path, write)


if __name__ == "__main__":
    main()
