"""The Criteo experiment (Yasui and Kato 2022, section 6.2; Chapelle 2014, section 6): seven test days, 21 training days each.

For a test day the labels of the 21 days before are those known when it begins; a test label is whether the click converts
at all, within 30 days. Fields are hashed to 2^24 columns, integers put into buckets (:func:`belated.data.criteo_format.bucket`). The penalty
is lambda/D ||theta||^2 with D = 2^24. Lambda is chosen for each method by two-fold cross-validation on the training days of
the first test day; late labels count as in :mod:`belated.evaluation.validation`, since the papers do not say how to score them.

Open in the papers: the window tau, here 7 days. The intercept is free, which at these lambdas makes no difference.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from belated.data.criteo_format import ingest_criteo
from belated.data.durations import DAY
from belated.data.event_log import EventLog
from belated.data.labels import Labels, check_labels
from belated.data.times import NEVER
from belated.datasets.criteo_simulator import ROWS, is_simulated
from belated.evaluation.delay_curve import delay_curve
from belated.evaluation.fitting import fit_method, fit_path
from belated.evaluation.metrics import scores
from belated.evaluation.validation import LEAST_SEEN, corrected_loss
from belated.features.field_matrix import FieldMatrix
from belated.methods.base import Method
from belated.methods.biased import BL
from belated.methods.delay_model import DFM
from belated.methods.delayed_feedback import ConvDF, NnDF
from belated.methods.importance_weighting import FSIW
from belated.methods.positive_unlabeled import PNUTW, PU, PUTW
from belated.methods.simple_baselines import STC, Rescale
from belated.methods.survival import Hazard
from belated.methods.time_window import TW
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.reproduce.checkpoints import run_parts, write_csv
from belated.solvers.device_rows import resolve_device

TABLE_METHODS: dict[str, Method] = {
    "Oracle": BL(),  # with final labels
    "BL": BL(),
    "Shifted": BL(),  # on the last 21 days whose labels are final
    "Rescale": Rescale(),
    "STC": STC(),
    "TW": TW(),
    "PUTW": PUTW(),
    "PNUTW": PNUTW(),
    "PU": PU(),
    "ConvDF": ConvDF(),
    "ConvDF, 1/M": ConvDF("paper"),
    "NnDF": NnDF(),
    "NnDF, 1/M": NnDF("paper"),
    "FSIW": FSIW(),
    "DFM": DFM(),
    "DFM, Weibull": DFM("weibull"),
    "DFM, piecewise": DFM("piecewise"),
    "Hazard": Hazard(),
}
TEST_DAYS = range(54, 61)
LAMBDAS = (0.1, 0.05, 0.01, 0.005)
COLUMNS = 2**24
TRAINING_DAYS, HORIZON, WINDOW = 21, 30.0, 7.0
ROUGH, FINE = 1e-3, 1e-4  # tolerances relative to the objective: for choosing lambda, and for final fits

_SECOND = 1_000_000


@dataclass(frozen=True)
class Task:
    """One log and how it is learned from."""

    folder: str
    sample: float = 1.0
    window: float = WINDOW
    lambdas: tuple[float, ...] = LAMBDAS
    device: str = "cpu"
    columns: int = COLUMNS

    def l2(self, lambdas: Sequence[float]) -> list[float]:
        return [value / self.columns for value in lambdas]

    @property
    def model(self) -> LinearModel:
        return LinearModel(tol=FINE, device=self.device)

    @cached_property
    def log(self) -> EventLog:
        log = EventLog.open(self.folder)
        return log if self.sample == 1.0 else log.sample(self.sample)


@dataclass(frozen=True)
class Data:
    """Rows to learn from, their labels as known and in the end, and a model with its own form of the rows."""

    X: FieldMatrix
    known: Labels
    final: Labels
    model: LinearModel
    encoded: Any


@lru_cache(maxsize=2)
def _training(task: Task, day: int, shifted: bool = False) -> Data:
    # The last second before the test day: whoever clicks or converts when it begins is not known yet.
    now = (day - 1) * DAY - _SECOND - (int(HORIZON) * DAY if shifted else 0)
    if now < TRAINING_DAYS * DAY - _SECOND:
        raise ValueError(f"the log has no {TRAINING_DAYS} days to learn from that were final on day {day}.")
    asked = now, TRAINING_DAYS * DAY - _SECOND, int(HORIZON) * DAY
    snapshot, final = task.log.snapshot_at(*asked), task.log.without_features().hindsight_at(*asked)
    known = check_labels(snapshot.y == 1, snapshot.elapsed, snapshot.delay, None, task.window, HORIZON)
    logger.info("day %d: %d rows to learn from, %.1f%% positive so far", day, len(snapshot), 100 * known.y.mean())
    model = task.model
    return Data(snapshot.X, known, check_labels(final.y == 1), model, model.encode(snapshot.X, known.weight))


def _data(task: Task, name: str, day: int) -> tuple[Data, Labels]:
    """The rows that a method learns from, and their labels as it sees them."""
    data = _training(task, day, name == "Shifted")
    return data, data.final if name in ("Oracle", "Shifted") else data.known


def choose(task: Task, method: str, day: int) -> list[dict[str, Any]]:
    """Two-fold cross-validation of each lambda, on the training days of a test day."""
    began = time.perf_counter()
    try:
        data, labels = _data(task, method, day)
    except ValueError as error:
        return [{"failed": str(error)}]
    seen = np.ones(len(labels.y))
    if labels.elapsed is not None and labels.delay is not None:
        seen = delay_curve(labels.elapsed, labels.delay, labels.horizon).seen(labels.elapsed)
    half = np.random.default_rng(day).permutation(len(seen)) % 2 == 0
    model = task.model.set_params(tol=ROUGH)
    losses = np.zeros(len(task.lambdas))
    for train in (half, ~half):
        valid = ~train & (seen >= LEAST_SEEN)
        encoded = model.encode(data.X[train], labels.weight[train])
        try:
            with quietly():
                fits = fit_path(model, encoded, TABLE_METHODS[method], labels.take(train), task.l2(task.lambdas))
        except ValueError as error:
            return [{"failed": str(error)}]
        rows, r = data.X[valid], labels.y[valid] / seen[valid]
        losses += [corrected_loss(r, fit.predict(rows), labels.weight[valid]) / 2 for fit in fits]
    best = task.lambdas[int(np.nanargmin(losses))]
    found = dict(zip(map(str, task.lambdas), losses.tolist(), strict=True))
    return [{"lambda": best, "losses": found, "choosing_seconds": time.perf_counter() - began}]


def fit_and_score(task: Task, method: str, day: int, strength: float) -> list[dict[str, Any]]:
    """Train on the days before a test day and score its clicks."""
    data, labels = _data(task, method, day)
    began = time.perf_counter()
    try:
        with quietly():
            (value,) = task.l2([strength])
            fit = fit_method(data.model, data.encoded, TABLE_METHODS[method], labels, value)
    except ValueError as error:
        return [{"failed": str(error)}]
    seconds = time.perf_counter() - began
    test = task.log.matured_after((day - 1) * DAY - _SECOND, DAY, int(HORIZON) * DAY)
    y, p = test.y == 1, fit.predict(test.X)
    found = scores(y, p)
    return [
        {
            "test_rows": len(y),
            "test_rate": float(y.mean()),
            "log_loss": found["log_loss"],
            "accuracy": float(((p > 0.5) == y).mean()),
            "pr_auc": found["pr_auc"],
            "calibration_ratio": found["calibration_ratio"],
            "lambda": strength,
            "iterations": fit.model.n_iter_,
            "seconds": seconds,
        }
    ]


def reproduce_criteo(
    data: str | Path,
    out: str | Path,
    days: Sequence[int] = TEST_DAYS,
    sample: float = 1.0,
    lambdas: Sequence[float] = LAMBDAS,
    window: float = WINDOW,
    methods: Sequence[str] = (),
    device: str = "cpu",
    columns: int = COLUMNS,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run or go on with the experiment on the file ``data``; write ``criteo.csv`` to the folder ``out``.

    The table has a row for each method and day, and one with day "all": means over days, by rows. On a simulated file (see
    :mod:`belated.datasets.criteo_simulator`) results are called simulated, in the table and in the name of its file.
    """
    data, out = Path(data), Path(out)
    if not 0 < sample <= 1:
        raise ValueError(f"sample={sample!r} must be above 0 and at most 1.")
    if not lambdas or not all(0 <= value < np.inf for value in lambdas):
        raise ValueError(f"lambdas={list(lambdas)!r} must be numbers of at least 0.")
    if not 0 < window <= TRAINING_DAYS / 2:
        raise ValueError(f"window={window!r} must be above 0, and at most half of the {TRAINING_DAYS} training days.")
    names, days = list(methods or TABLE_METHODS), sorted({int(day) for day in days})
    unknown = [name for name in names if name not in TABLE_METHODS]
    if unknown:
        raise ValueError(f"methods={unknown!r} are not known; choose out of {', '.join(TABLE_METHODS)}.")
    folder, device = out / "criteo.log", resolve_device(device)
    simulated = is_simulated(data)
    source = ingest_once(data, folder, columns, progress)
    _check(EventLog.open(folder), data, days)
    task = Task(str(folder), float(sample), float(window), tuple(map(float, lambdas)), device, columns)
    settings = {
        "log": source,
        "sample": task.sample,
        "window": task.window,
        "lambdas": list(task.lambdas),
        "device": device,
    }
    name = "criteo-simulated" if simulated else "criteo"

    def run(stage: str, parts: list[dict[str, Any]], work: Any, what: str) -> list[dict[str, Any]]:
        rows = run_parts(out / f"{name}-{stage}.jsonl", parts, partial(work, task), what, 1, progress, settings)
        for row in rows:
            if "failed" in row:
                logger.warning("%s, day %d: could not be fitted: %s", row["method"], row["day"], row["failed"])
        return [row for row in rows if "failed" not in row]

    try:
        parts = [{"method": method, "day": days[0]} for method in names]
        chosen = {row["method"]: row["lambda"] for row in run("lambda", parts, choose, "Choosing lambda")}
        parts = [{"method": m, "day": day, "strength": chosen[m]} for day in days for m in names if m in chosen]
        rows = run("days", parts, fit_and_score, "Test days")
    finally:
        _training.cache_clear()
    if not rows:
        raise ValueError(f"none of {', '.join(names)} could be fitted; belated -v says why.")
    table = summarise(rows, "simulated" if simulated else "real", len(days))
    write_csv(out / f"{name}.csv", table)
    return table


def summarise(rows: Sequence[dict[str, Any]], data: str, days: int) -> list[dict[str, Any]]:
    """The rows of each method by day, and their means by rows where all days could be fitted."""
    averaged = ("test_rate", "log_loss", "accuracy", "pr_auc")
    keep = ("test_rows", *averaged, "calibration_ratio", "lambda", "iterations", "seconds")
    table = []
    for method in dict.fromkeys(row["method"] for row in rows):
        found = [row for row in rows if row["method"] == method]
        for row in found:
            table.append({"data": data, "method": method, "day": str(row["day"]), **{key: row[key] for key in keep}})
        if len(found) < days or any(row["pr_auc"] is None for row in found):
            continue
        size = np.array([row["test_rows"] for row in found])
        means = {key: float(np.average([row[key] for row in found], weights=size)) for key in averaged}
        positives = size * [row["test_rate"] for row in found]
        ratio = float(np.average([row["calibration_ratio"] for row in found], weights=positives))
        means |= {"calibration_ratio": ratio, "lambda": found[0]["lambda"]}
        means |= {key: sum(row[key] for row in found) for key in ("iterations", "seconds")}
        table.append({"data": data, "method": method, "day": "all", "test_rows": int(size.sum()), **means})
    return table


def show(table: Sequence[dict[str, Any]]) -> Table:
    """Means over days, the log loss of each day, and how long the fits took."""
    days = [day for day in dict.fromkeys(row["day"] for row in table) if day != "all"]
    what = "SIMULATED data" if table[0]["data"] == "simulated" else "Criteo's file"
    title = f"{what}: means over test days {days[0]} to {days[-1]}, and log loss by day"
    shown = Table(title=title, box=box.SIMPLE, padding=(0, 1, 0, 0))
    shown.add_column("method")
    for heading in ("log loss", "accuracy", "PR AUC", "calibr.", "lambda", *days, "seconds"):
        shown.add_column(heading, justify="right")
    for row in sorted((row for row in table if row["day"] == "all"), key=lambda row: row["log_loss"]):
        by_day = [r["log_loss"] for r in table if r["method"] == row["method"] and r["day"] != "all"]
        cells = [f"{row[key]:.4f}" for key in ("log_loss", "accuracy", "pr_auc")]
        cells += [f"{row['calibration_ratio']:.2f}", f"{row['lambda']:g}"]
        shown.add_row(row["method"], *cells, *(f"{loss:.3f}" for loss in by_day), f"{row['seconds']:.0f}")
    return shown


def ingest_once(data: Path, folder: Path, columns: int, progress: bool) -> str:
    """Read the file unless the folder holds it already; a short text that differs for files that differ."""
    about = data.stat()
    stamp = {"name": data.name, "bytes": about.st_size, "changed": about.st_mtime_ns, "columns": columns, "format": 1}
    note = folder / "source.json"
    if not note.exists() or note.read_text() != json.dumps(stamp):
        ingest_criteo(data, folder, n_columns=columns, progress=progress)
        note.write_text(json.dumps(stamp))
    return EventLog.open(folder).fingerprint().hex()[:12]


def _check(log: EventLog, data: Path, days: Sequence[int]) -> None:
    """Whether this can be Criteo's file, or one like it."""
    if log.first > DAY:
        raise ValueError(
            f"{data.name}: the first click is at second {log.first // _SECOND}, but the published file counts seconds from 0. "
            f"Pass the whole file as it was published."
        )
    last = log.last // DAY + 1
    if not days or min(days) < TRAINING_DAYS + 1 or max(days) > last:
        raise ValueError(
            f"{data.name} has clicks of days 1 to {last}, and a test day needs {TRAINING_DAYS} days before it: choose days "
            f"from {TRAINING_DAYS + 1} to {last}, not {min(days, default=0)} to {max(days, default=0)}."
        )
    everything = log.without_features().snapshot_at(log.until, log.until, None).delay_micros
    late = int(((everything > int(HORIZON) * DAY) & (everything != NEVER)).sum())
    if late > log.positives / 1000:
        raise ValueError(
            f"{data.name}: {late} of {log.positives} conversions come more than {HORIZON:g} days after their click, but Criteo's "
            f"file attributes none so late. Are the first two columns the times of click and conversion, in seconds?"
        )
    if late:
        logger.warning("%s: %d conversions later than %g days count as none.", data.name, late, HORIZON)
    if len(log) != ROWS:
        logger.warning("%s has %d rows, the published file %d.", data.name, len(log), ROWS)
