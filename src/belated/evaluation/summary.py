"""A backtest as plain data: the scores of all methods, the recommendation, and what was asked. ``--json`` writes it."""

from __future__ import annotations

import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from belated.data.times import show_instant
from belated.evaluation.intervals import mean_interval, ratio_interval
from belated.evaluation.metrics import calibration_by, calibration_curve, gap_closed, scores
from belated.evaluation.pairs import ORACLE, Pair
from belated.evaluation.recommendation import losses_by_cutoff, predicted_and_actual, recommend
from belated.typing import Floats

if TYPE_CHECKING:
    from belated.evaluation.backtest import Backtest

_MOST_GROUPS = 30


def summarise(backtest: Backtest) -> dict[str, Any]:
    """The summary of a backtest; see docs/reference/json.md."""
    table, advice = score_methods(backtest), recommend(backtest)
    log, settings = backtest.log, asdict(backtest.settings)
    return {
        "recommended": advice.name,
        "recommendation": asdict(advice),
        "methods": table,
        "failed": backtest.failed,
        "unsettled": backtest.unsettled,
        "skipped": backtest.skipped,
        "notes": backtest.notes,
        "cutoffs": [
            {
                "as_of": c.as_of,
                "training_rows": c.rows,
                "positive_so_far": c.positive,
                "test_rows": len(c.y),
                "test_rate": float(c.y.mean()),
            }
            for c in backtest.cutoffs
        ],
        "settings": {
            **settings,
            "methods": list(settings["methods"]),
            "l2": list(settings["l2"]),
            "models": {name: repr(model) for name, model in backtest.models.items()},
            "model": repr(next(iter(backtest.models.values()))),
        },
        "log": {
            "rows": len(log),
            "positive": log.positives,
            "features": log.features,
            "first": show_instant(log.first, log.clock),
            "until": show_instant(log.until, log.clock),
        },
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("belated", "numpy", "scipy", "scikit-learn", "numba")},
    }


def score_methods(backtest: Backtest) -> dict[str, dict[str, Any]]:
    """For each method: scores averaged over cut-offs, with intervals; the same at each cut-off; calibration in detail."""
    by_cutoff = {name: [scores(c.y, c.p[name]) for c in backtest.cutoffs] for name in backtest.methods}
    mean_loss = {name: _mean([s["log_loss"] for s in runs]) for name, runs in by_cutoff.items()}
    y, days = (np.concatenate([getattr(c, key) for c in backtest.cutoffs]) for key in ("y", "days"))
    bl, oracle = mean_loss["bl"], mean_loss["oracle"]
    assert bl is not None and oracle is not None
    losses = losses_by_cutoff(backtest)
    table: dict[str, dict[str, Any]] = {}
    for name, runs in by_cutoff.items():
        p = np.concatenate([c.p[name] for c in backtest.cutoffs])
        loss = mean_loss[name]
        found = losses[name]
        pooled, pair = scores(y, p), backtest.pairs[name]
        own = mean_loss.get(ORACLE if name == pair.method_name else f"{pair.model_name}:{ORACLE}")
        table[name] = {
            "log_loss": loss,
            "relative_log_loss": _number(loss / oracle - 1.0) if loss is not None else None,
            "gap_closed": _number(gap_closed(loss, bl, oracle)),
            "pr_auc": _mean([s["pr_auc"] for s in runs]),
            "roc_auc": _mean([s["roc_auc"] for s in runs]),
            "calibration_ratio": pooled["calibration_ratio"],
            "ece": pooled["ece"],
            "intervals": {
                "log_loss": mean_interval(found),
                "relative_log_loss": ratio_interval(found - losses["oracle"], losses["oracle"]),
                "gap_closed": ratio_interval(losses["bl"] - found, losses["bl"] - losses["oracle"])
                if bl > oracle
                else None,
                "calibration_ratio": ratio_interval(*predicted_and_actual(backtest, name)),
            },
            "better_than_bl": int((found < losses["bl"]).sum()),
            "model": pair.model_name,
            "method": pair.method_name,
            "vs_own_oracle": None if own is None or loss is None else _number(loss / own - 1.0),
            "window": backtest.windows.get(name),
            "cutoffs": [{**_setting(pair, c.values[name]), **s} for c, s in zip(backtest.cutoffs, runs, strict=True)],
            "calibration_curve": calibration_curve(y, p),
            "by_days_since_cutoff": calibration_by(_days_since_cutoff(days, backtest.settings.period), y, p),
        }
        if backtest.settings.group is not None:
            groups = np.concatenate([c.group for c in backtest.cutoffs if c.group is not None])
            table[name]["by_group"] = calibration_by(_common(groups), y, p)
    return table


def _setting(pair: Pair, value: float | None) -> dict[str, float | None]:
    """What was chosen, by its name."""
    return {} if pair.model.setting is None else {pair.model.setting: value}


def _days_since_cutoff(days: Floats, period: float) -> NDArray[Any]:
    """Days since the cut-off in five ranges, named by their ends in days; whole days where they can be."""
    edges = period * np.arange(1, 6) / 5.0
    edges = np.unique(np.ceil(edges)) if period >= 5 else edges
    edges[-1] = max(edges[-1], period)
    return edges[np.minimum(np.searchsorted(edges, days * (1 - 1e-12)), len(edges) - 1)]


def _common(groups: NDArray[Any]) -> NDArray[Any]:
    """The most frequent values; the others together."""
    names, code, counts = np.unique(groups, return_inverse=True, return_counts=True)
    rare = np.argsort(-counts, kind="stable")[_MOST_GROUPS:]
    names = names.astype(object)
    names[rare] = f"({len(rare)} others)"
    return names[code]


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None
