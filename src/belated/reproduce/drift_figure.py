"""The paper's synthetic experiment (section 6.1, its figure): relative log loss against eta, the strength of the drift.

What the paper leaves open is a *reading*: the unit of delays, tau, how campaigns share traffic, whether the intercept is
penalised. The regulariser is lambda/D ||theta||^2 with D = 28. Lambda is tuned with Optuna on [1e-6, 1e-1], for each method and
data set, by setting the clock back within the training data; the loss is either corrected for late labels, which is what a
practitioner can do, or measured with true labels, which nobody has.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from belated.data.labels import Labels, check_labels
from belated.datasets.yasui_kato import SyntheticClicks, simulate_paper
from belated.evaluation.fitting import fit_method
from belated.evaluation.metrics import log_losses
from belated.evaluation.validation import set_clock_back
from belated.methods.base import Method
from belated.methods.biased import BL
from belated.methods.delay_model import DFM
from belated.methods.delayed_feedback import ConvDF, NnDF
from belated.methods.importance_weighting import FSIW
from belated.methods.positive_unlabeled import PNUTW, PUTW
from belated.methods.time_window import TW
from belated.models.linear import LinearModel
from belated.notices import quietly
from belated.reproduce.checkpoints import run_parts, write_csv

FIGURE_METHODS: dict[str, Method] = {
    "BL": BL(),
    "TW": TW(),
    "PUTW": PUTW(),
    "PNUTW": PNUTW(),
    "ConvDF": ConvDF(),
    "ConvDF, 1/M": ConvDF("paper"),
    "NnDF": NnDF(),
    "NnDF, 1/M": NnDF("paper"),
    "FSIW": FSIW(),
    "DFM": DFM(),
    "DFM, Weibull": DFM("weibull"),
    "DFM, piecewise": DFM("piecewise"),
}
ETAS = (0.0, 0.5, 1.0, 2.0, 4.0, 6.0)
DIMENSION = 28
NOW = 7.0  # days


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper leaves open."""

    delay_unit: float = 1 / 24
    tau: float = 3.0
    traffic: str | float = "equal"
    free_intercept: bool = False


READINGS = {
    "hours, tau 3 d, equal traffic": Reading(),
    "new campaign 10%": Reading(traffic=0.1),
    "new campaign 3%": Reading(traffic=0.03),
    "delays in 0.3 h": Reading(delay_unit=0.3 / 24),
    "tau 1 d": Reading(tau=1.0),
    "free intercept": Reading(free_intercept=True),
    "short delays, tau 1 d, new campaign 3%": Reading(delay_unit=0.3 / 24, tau=1.0, traffic=0.03),
}


def trial(
    reading: str, eta: float, seed: int, tuning: str, per_day: int = 4800, tries: int = 6, methods: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """All methods on one data set; ``tuning`` is "corrected" or "truth"."""
    how = READINGS[reading]
    data = simulate_paper(eta, seed, per_day=per_day, delay_unit=how.delay_unit, traffic=how.traffic)
    rows, y, elapsed, delay = data.known(NOW)
    X = data.X if how.free_intercept else np.column_stack([data.X, np.ones(len(data.X))])
    labels = check_labels(y, elapsed, delay, None, how.tau, None)
    true = data.converts[rows]
    final = check_labels(true, elapsed, np.where(true, 0.0, np.nan), None, how.tau, None)
    model = LinearModel(fit_intercept=how.free_intercept, tol=1e-7)
    wanted: list[tuple[str, Method, Labels]] = [("Oracle", BL(), final)]
    wanted += [(name, FIGURE_METHODS[name], labels) for name in methods or FIGURE_METHODS]
    found: list[dict[str, Any]] = []
    with quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoded = model.encode(X[rows], labels.weight)
        for name, method, known in wanted:
            try:
                strength = _tune(method, known, X[rows], true, tuning, model, tries, seed)
                fit = fit_method(model, encoded, method, known, strength / DIMENSION)
            except ValueError as error:  # 1/M may estimate a rate above 1, and then there is no minimum
                found.append({"method": name, "failed": str(error)})
            else:
                found.append(_score(name, fit.predict(X[~rows]), data, rows, strength))
    oracle = found[0]["log_loss"]
    for row in found:
        if "log_loss" in row:
            row["relative_log_loss"] = row["log_loss"] / oracle - 1.0
    return found


def _score(name: str, p: Any, data: SyntheticClicks, rows: Any, strength: float) -> dict[str, Any]:
    y = data.converts[~rows]
    return {
        "method": name,
        "log_loss": float(log_losses(y, p).mean()),
        "calibration_ratio": float(p.mean() / y.mean()),
        "lambda": strength,
    }


def _tune(
    method: Method, known: Labels, X: Any, true: Any, tuning: str, model: LinearModel, tries: int, seed: int
) -> float:
    import optuna

    split = set_clock_back(known)
    assert split is not None
    encoded = model.encode(X[split.train], split.past.weight)

    def loss(study: Any) -> float:
        strength = study.suggest_float("lambda", 1e-6, 1e-1, log=True)
        fit = fit_method(model, encoded, method, split.past, strength / DIMENSION)
        p = fit.predict(X[split.valid])
        return split.loss(p) if tuning == "corrected" else float(log_losses(true[split.valid], p).mean())

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4))
    study.optimize(loss, n_trials=tries)
    return float(study.best_params["lambda"])


def reproduce_synthetic(
    out: str | Path,
    trials: int = 20,
    etas: Sequence[float] = ETAS,
    more_trials: int = 3,
    per_day: int = 4800,
    jobs: int | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run or go on with the experiment in the folder ``out``; write ``synthetic.csv``, ``.png`` and ``.svg`` there.

    ``more_trials`` are run of every other reading, and of the first one with lambda tuned by true labels.
    """
    out = Path(out)
    size = {} if per_day == 4800 else {"per_day": per_day}
    first, *others = READINGS
    parts = [
        {"reading": first, "eta": eta, "seed": seed, "tuning": "corrected", **size}
        for seed in range(trials)
        for eta in etas
    ]
    parts += [
        {"reading": first, "eta": eta, "seed": seed, "tuning": "truth", **size}
        for seed in range(min(more_trials, trials))
        for eta in etas[::2]
    ]
    parts += [
        {"reading": reading, "eta": eta, "seed": seed, "tuning": "corrected", **size}
        for reading in others
        for seed in range(min(more_trials, trials))
        for eta in etas[::2]
    ]
    rows = run_parts(out / "synthetic.jsonl", parts, trial, "Synthetic experiment", jobs, progress)
    table = summarise(rows)
    write_csv(out / "synthetic.csv", table)
    draw(table, out)
    return table


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean relative log loss over trials, with a 95% interval (of Student's t)."""
    from scipy import stats

    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["reading"], row["tuning"], row["method"], row["eta"]), []).append(row)
    table = []
    for (reading, tuning, method, eta), tried in groups.items():
        found = [row for row in tried if "log_loss" in row]
        if not found:
            continue
        loss = np.array([r["relative_log_loss"] for r in found])
        n = len(loss)
        half = float(stats.t.ppf(0.975, n - 1) * loss.std(ddof=1) / np.sqrt(n)) if n > 1 else None
        table.append(
            {
                "reading": reading,
                "tuning": tuning,
                "method": method,
                "eta": eta,
                "trials": n,
                "could_not_be_fitted": len(tried) - n,
                "relative_log_loss": float(loss.mean()),
                "half_width": half,
                "log_loss": float(np.mean([r["log_loss"] for r in found])),
                "calibration_ratio": float(np.mean([r["calibration_ratio"] for r in found])),
                "median_lambda": float(np.median([r["lambda"] for r in found])),
            }
        )
    return table


def draw(table: Sequence[dict[str, Any]], out: Path) -> None:
    """The figure: relative log loss against eta, the whole range at the left and its lower part at the right."""
    from matplotlib.figure import Figure

    main = [r for r in table if r["reading"] == next(iter(READINGS)) and r["tuning"] == "corrected"]
    shown = {
        "BL": ("#c2452d", "o-"),
        "TW": ("#8a6d3b", "s-"),
        "PUTW": ("#b0b4ba", "v-"),
        "ConvDF": ("#1d63c9", "o-"),
        "ConvDF, 1/M": ("#1d63c9", "o:"),
        "FSIW": ("#8e44ad", "^-"),
        "DFM": ("#2e8b57", "d-"),
        "DFM, piecewise": ("#111111", "*-"),
    }
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        for name, (colour, style) in shown.items():
            rows = [r for r in main if r["method"] == name]
            x, y, half = ([r[key] or 0.0 for r in rows] for key in ("eta", "relative_log_loss", "half_width"))
            axes.errorbar(x, y, half, fmt=style, color=colour, label=name, markersize=4, linewidth=1.2, capsize=2)
        axes.axhline(0.0, color="#888888", linewidth=0.8)
        axes.set(xlabel="eta, the strength of the drift", ylabel="relative log loss (0: Oracle)")
        axes.spines[["top", "right"]].set_visible(False)
    trials = max((r["trials"] for r in main), default=0)
    left.set(yscale="symlog", title=f"All of it ({trials} trials, 95% intervals; simulated)")
    top = max((r["relative_log_loss"] for r in main if r["method"] in ("TW", "FSIW")), default=1.0)
    right.set(ylim=(-0.03, 1.1 * top + 0.02), title="Near the Oracle")
    left.legend(fontsize=8, ncols=2)
    for kind in ("png", "svg"):
        figure.savefig(out / f"synthetic.{kind}", dpi=150)
