"""Chapelle's toy example (KDD 2014, section 5.1): one campaign from its first day, retrained every day.

The conversion rate is 0.1 and delays are exponential with a mean of four days. His claim: DFM is right after two days or so,
while taking labels as they stand stays below for long.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_method
from belated.evaluation.teachers import Teachers
from belated.methods import METHODS, resolve_method
from belated.models.linear import LinearModel
from belated.notices import quietly
from belated.reproduce.checkpoints import run_parts, write_csv

RATE, MEAN_DELAY, DAYS, PER_DAY = 0.1, 4.0, 14, 1000


def run_once(seed: int, days: int = DAYS, per_day: int = PER_DAY) -> list[dict[str, Any]]:
    """The predicted rate of every method at the end of each day; NaN (as None) where a method cannot be fitted yet.

    There are no features but an intercept. The window is a third of the days so far.
    """
    rng = np.random.default_rng([seed, 14])
    arrival = rng.uniform(0, days, days * per_day)
    wait = rng.exponential(MEAN_DELAY, len(arrival))
    converts = rng.uniform(size=len(arrival)) < RATE
    rows = []
    for day in range(1, days + 1):
        here = arrival <= day
        elapsed = day - arrival[here]
        y = converts[here] & (wait[here] <= elapsed)
        X = np.zeros((int(here.sum()), 1))
        labels = check_labels(y, elapsed, np.where(y, wait[here], np.nan), None, day / 3.0, None)
        model = LinearModel(l2=1e-6)
        encoded = model.encode(X, labels.weight)
        for name in METHODS:
            p: float | None = None
            with quietly(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    fit = fit_method(model, encoded, resolve_method(name), labels, 1e-6, Teachers(X))
                    p = float(fit.predict(X[:1])[0])
                except ValueError:
                    p = None
            rows.append({"day": day, "method": name, "rate": p})
    return rows


def reproduce_toy(
    out: str | Path, runs: int = 100, jobs: int | None = None, progress: bool = True, **size: int
) -> list[dict[str, Any]]:
    """Median and quartiles of the predicted rate over runs, for each method and day; writes ``toy.csv`` and ``toy.png``."""
    out = Path(out)
    parts = [{"seed": seed, **size} for seed in range(runs)]
    rows = run_parts(out / "toy.jsonl", parts, run_once, "Chapelle's toy example", jobs, progress)
    table = []
    for method in METHODS:
        for day in sorted({row["day"] for row in rows}):
            found = [r["rate"] for r in rows if r["method"] == method and r["day"] == day and r["rate"] is not None]
            low, median, high = np.quantile(found, [0.25, 0.5, 0.75]) if found else (np.nan,) * 3
            table.append(
                {
                    "method": method,
                    "day": day,
                    "fitted": len(found),
                    "lower_quartile": float(low),
                    "median": float(median),
                    "upper_quartile": float(high),
                }
            )
    write_csv(out / "toy.csv", table)
    _draw(table, out)
    return table


def _draw(table: Sequence[dict[str, Any]], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, colour in {"bl": "#c2452d", "fsiw": "#8e44ad", "dfm": "#2e8b57", "dfm-piecewise": "#111111"}.items():
        rows = [r for r in table if r["method"] == name]
        day, low, middle, high = ([r[k] for r in rows] for k in ("day", "lower_quartile", "median", "upper_quartile"))
        axes.plot(day, middle, color=colour, marker="o", markersize=3, label=name)
        axes.fill_between(day, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.axhline(RATE, color="#888888", linewidth=0.8, linestyle="--")
    axes.set(xlabel="days since the campaign began", ylabel="predicted rate", ylim=(0, 0.2))
    axes.set_title("Median and quartiles; the true rate is 0.1 (simulated)", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(ncols=2)
    figure.savefig(out / "toy.png", dpi=150)
