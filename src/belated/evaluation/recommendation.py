"""What to use now, how sure that is, and why, from the predictions of a backtest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from belated.data.durations import DAY
from belated.data.labels import check_labels
from belated.evaluation.metrics import gap_closed, log_losses
from belated.evaluation.resampling import Draws, draw, interval
from belated.evaluation.validation import Choice, choose_l2

if TYPE_CHECKING:
    from belated.evaluation.backtest import Backtest

_SURE = 0.95
_FEWEST = 30  # rows, and positives, that a recommendation needs


@dataclass(frozen=True)
class Recommendation:
    """What to use now. ``sure`` is the share of draws in which the method had a lower log loss than BL."""

    method: str
    window: float
    l2: float | None
    sure: float
    on_a_par: list[str]
    why: str


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
    snap = log.latest(round(settings.lookback * DAY), round(settings.horizon * DAY))
    y = snap.y == 1
    if y.any() and not y.all():
        labels = check_labels(y, snap.elapsed, snap.delay, None, settings.window, settings.horizon)
        choice = choose_l2(snap.X, labels, clone(backtest.model), {name: backtest.chosen[name]}, settings.l2)[name]
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
    bounds = interval(gap_closed(draws.log_loss[best], draws.log_loss["bl"], draws.log_loss["oracle"]))
    text = (
        f"Use {best}: {past} its log loss is {means[best]:.4f}, against {bl:.4f} for taking labels as they stand (bl) and "
        f"{oracle:.4f} for knowing them all (oracle). That closes {closed:.0%} of the gap"
    )
    if bounds:
        text += f" (95% interval {bounds[0]:.0%} to {bounds[1]:.0%})"
    text += f"; it beat bl in {sure:.0%} of resamples."
    others = [name for name in par if name != "bl"]
    # The best of many methods beats bl by chance more often than a single method would.
    if sure < 1.0 - (1.0 - _SURE) / (len(means) - 2):
        text += " That is not enough to be sure."
    if others:
        text += f" Not clearly worse: {', '.join(others[:4])}."
    return text
