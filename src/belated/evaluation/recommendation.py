"""From the predictions of a backtest to scores with intervals, a recommendation, and plain data.

Intervals are paired: cut-offs are drawn with replacement, and within each the rows, which were dealt at random into
blocks that are drawn with replacement. Every method is scored on the same draws, so that differences between methods have
intervals of their own. With two or three cut-offs that differ they are too narrow; with six they hold about what they promise.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from belated.data.labels import observe
from belated.data.times import DAY, show_instant
from belated.evaluation.metrics import calibration_by, calibration_curve, log_losses, scores
from belated.evaluation.validation import Choice, choose_l2
from belated.typing import Floats

if TYPE_CHECKING:
    from belated.evaluation.backtest import Backtest


_BLOCKS, _DRAWS = 100, 1000
_SURE = 0.95
_MOST_GROUPS = 30
_FEWEST = 30  # rows, or positives, to say anything by


@dataclass(frozen=True)
class Recommendation:
    """What to use now. ``sure`` is the share of draws in which the method had a lower log loss than BL."""

    method: str
    window: float
    l2: float | None
    sure: float
    on_a_par: list[str]
    why: str


@dataclass(frozen=True)
class Draws:
    """Log loss and calibration ratio of each method in each draw, of shape (draws,)."""

    log_loss: dict[str, Floats]
    calibration_ratio: dict[str, Floats]


def draw(backtest: Backtest) -> Draws:
    """The paired bootstrap over cut-offs and rows."""
    rng = np.random.default_rng(backtest.settings.seed)
    names, count = backtest.methods, len(backtest.cutoffs)
    loss, predicted = np.empty((2, count, _BLOCKS, len(names)))
    rows, positives = np.empty((2, count, _BLOCKS))
    for c, cutoff in enumerate(backtest.cutoffs):
        blocks = min(_BLOCKS, len(cutoff.y))
        block = rng.permutation(len(cutoff.y)) % blocks

        def sums(values: Any, block: Any = block) -> Floats:
            return np.bincount(block, values, _BLOCKS).astype(np.float64)

        rows[c], positives[c] = sums(None), sums(cutoff.y)
        for m, name in enumerate(names):
            loss[c, :, m], predicted[c, :, m] = sums(log_losses(cutoff.y, cutoff.p[name])), sums(cutoff.p[name])
    drawn = rng.integers(0, count, (_DRAWS, count))
    losses, ratios = np.empty((2, _DRAWS, len(names)))
    for k, chosen in enumerate(drawn):
        weight = np.zeros((count, _BLOCKS))
        for c in chosen:
            blocks = min(_BLOCKS, len(backtest.cutoffs[c].y))
            weight[c] += rng.multinomial(blocks, np.full(blocks, 1.0 / blocks)).tolist() + [0] * (_BLOCKS - blocks)
        n = (weight * rows).sum(axis=1)
        per_cutoff = np.einsum("cb,cbm->cm", weight, loss)
        times = np.bincount(chosen, minlength=count)
        losses[k] = (times[:, None] * per_cutoff / np.maximum(n, 1e-300)[:, None]).sum(axis=0) / count
        actual = float((weight * positives).sum())
        ratios[k] = np.einsum("cb,cbm->m", weight, predicted) / actual if actual else np.nan
    return Draws(
        {name: losses[:, m] for m, name in enumerate(names)}, {name: ratios[:, m] for m, name in enumerate(names)}
    )


def _gap_closed(loss: Any, bl: Any, oracle: Any) -> Any:
    """(BL - loss) / (BL - oracle): 0 as bad as BL, 1 as good as the oracle; NaN where there is no gap to close."""
    gap = np.asarray(bl - oracle, dtype=float)
    return np.where(gap > 0, (bl - loss) / np.where(gap > 0, gap, 1.0), np.nan)


def _interval(values: Floats) -> list[float] | None:
    """None where the quantity means nothing in more draws than an interval may leave out."""
    known = values[np.isfinite(values)]
    return [float(v) for v in np.quantile(known, [0.025, 0.975])] if len(known) >= 0.975 * len(values) else None


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _mean(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def score_methods(backtest: Backtest, draws: Draws) -> dict[str, dict[str, Any]]:
    """For each method: scores averaged over cut-offs, with intervals; the same at each cut-off; calibration in detail."""
    by_cutoff = {name: [scores(c.y, c.p[name]) for c in backtest.cutoffs] for name in backtest.methods}
    mean_loss = {name: _mean([s["log_loss"] for s in runs]) for name, runs in by_cutoff.items()}
    y, days = (np.concatenate([getattr(c, key) for c in backtest.cutoffs]) for key in ("y", "days"))
    bl, oracle = mean_loss["bl"], mean_loss["oracle"]
    assert bl is not None and oracle is not None
    best, worst = draws.log_loss["oracle"], draws.log_loss["bl"]
    table: dict[str, dict[str, Any]] = {}
    for name, runs in by_cutoff.items():
        p = np.concatenate([c.p[name] for c in backtest.cutoffs])
        loss = mean_loss[name]
        drawn = draws.log_loss[name]
        pooled = scores(y, p)
        table[name] = {
            "log_loss": loss,
            "relative_log_loss": _number(loss / oracle - 1.0) if loss is not None else None,
            "gap_closed": _number(_gap_closed(loss, bl, oracle)),
            "pr_auc": _mean([s["pr_auc"] for s in runs]),
            "roc_auc": _mean([s["roc_auc"] for s in runs]),
            "calibration_ratio": pooled["calibration_ratio"],
            "ece": pooled["ece"],
            "intervals": {
                "log_loss": _interval(drawn),
                "relative_log_loss": _interval(drawn / best - 1.0),
                "gap_closed": _interval(_gap_closed(drawn, worst, best)),
                "calibration_ratio": _interval(draws.calibration_ratio[name]),
            },
            "better_than_bl": float((drawn < worst).mean()),
            "cutoffs": [{"l2": c.l2[name], **s} for c, s in zip(backtest.cutoffs, runs, strict=True)],
            "calibration_curve": calibration_curve(y, p),
            "by_age": calibration_by(_ages(days, backtest.settings.period), y, p),
        }
        if backtest.settings.group is not None:
            groups = np.concatenate([c.group for c in backtest.cutoffs if c.group is not None])
            table[name]["by_group"] = calibration_by(_common(groups), y, p)
    return table


def _ages(days: Floats, period: float) -> NDArray[Any]:
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


def recommend(backtest: Backtest, draws: Draws | None = None) -> Recommendation:
    """The method with the lowest mean log loss, and the l2 it would choose at the end of the log."""
    draws = draw(backtest) if draws is None else draws
    usable = [name for name in backtest.methods if name != "oracle"]
    means = {n: float(np.mean([log_losses(c.y, c.p[n]).mean() for c in backtest.cutoffs])) for n in backtest.methods}
    best = min(usable, key=means.__getitem__)
    better = {name: float((draws.log_loss[best] < draws.log_loss[name]).mean()) for name in usable if name != best}
    par = [name for name, share in sorted(better.items(), key=lambda item: item[1]) if share < _SURE]
    sure = better.get("bl", 0.0)
    l2 = _l2_now(backtest, best)
    tested = sum(len(c.y) for c in backtest.cutoffs), sum(int(c.y.sum()) for c in backtest.cutoffs)
    return Recommendation(
        best,
        backtest.settings.window,
        l2,
        sure,
        par,
        _why(best, means, draws, sure, par, len(backtest.cutoffs), tested),
    )


def _l2_now(backtest: Backtest, name: str) -> float | None:
    """Chosen by setting the clock back from the end of the log; where that cannot be done, as at the last cut-off."""
    log, settings = backtest.log, backtest.settings
    reach = round(settings.lookback * DAY) + log.until - log.last
    snap = log.at(log.until, reach, round(settings.horizon * DAY))
    y = snap.y == 1
    if y.any() and not y.all():
        observed = observe(y, snap.elapsed, snap.delay, None, settings.window, settings.horizon)
        choice = choose_l2(snap.X, observed, clone(backtest.model), {name: backtest.chosen[name]}, settings.l2)[name]
        if isinstance(choice, Choice):
            return choice.l2
    return backtest.cutoffs[-1].l2[name]


def _why(
    best: str,
    means: dict[str, float],
    draws: Draws,
    sure: float,
    par: list[str],
    count: int,
    tested: tuple[int, int],
) -> str:
    bl, oracle = means["bl"], means["oracle"]
    if min(tested) < _FEWEST:
        return (
            f"Too little to go by: there are {tested[0]} rows to test on, {tested[1]} of them positive. {best} has the lowest log loss "
            f"({means[best]:.4f}; bl {bl:.4f}, oracle {oracle:.4f}), which may well be chance."
        )
    past = f"over {count} past cut-offs" if count > 1 else "at one past cut-off"
    gap = bl - oracle
    if gap <= 0.001 * oracle:
        return (
            f"Late labels cost next to nothing here: {past}, taking them as they stand (bl) has a log loss of {bl:.4f}, and knowing "
            f"them all would have given {oracle:.4f}. {'Stay with bl.' if best == 'bl' else f'{best} is no worse.'}"
        )
    if best == "bl":
        return (
            f"No correction beats taking labels as they stand (bl): {past} its log loss is {bl:.4f}, the lowest; knowing all "
            f"labels would have given {oracle:.4f}. Look at the assumptions, and try a longer lookback."
        )
    closed = (bl - means[best]) / gap
    interval = _interval(_gap_closed(draws.log_loss[best], draws.log_loss["bl"], draws.log_loss["oracle"]))
    text = (
        f"Use {best}: {past} its log loss is {means[best]:.4f}, against {bl:.4f} for taking labels as they stand (bl) and "
        f"{oracle:.4f} for knowing them all (oracle). That closes {closed:.0%} of the gap"
    )
    if interval:
        text += f" (95% interval {interval[0]:.0%} to {interval[1]:.0%})"
    text += f"; it beat bl in {sure:.0%} of resamples."
    others = [name for name in par if name != "bl"]
    # The best of many is better than bl by chance alone more often than one would be.
    if sure < 1.0 - (1.0 - _SURE) / (len(means) - 2):
        text += " That is not enough to be sure."
    if others:
        text += f" Not clearly worse: {', '.join(others[:4])}."
    return text


def summarise(backtest: Backtest) -> dict[str, Any]:
    """The summary of a backtest; see docs/json.md."""
    draws = draw(backtest)
    table, advice = score_methods(backtest, draws), recommend(backtest, draws)
    log, settings = backtest.log, asdict(backtest.settings)
    return {
        "recommended": advice.method,
        "recommendation": asdict(advice),
        "methods": table,
        "failed": backtest.failed,
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
            "model": repr(backtest.model),
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
