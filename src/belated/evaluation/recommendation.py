"""What to use now, how much it gains, how sure that is, and why, from the predictions of a backtest.

The best of many methods looks better than it is on the very cut-offs that made it the best. So what is reported is what the
choosing itself achieves: at each cut-off the method is chosen by the others, and scored there. Intervals come from how
cut-offs differ (:mod:`belated.evaluation.intervals`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from belated.data.durations import DAY, in_words
from belated.data.labels import check_labels
from belated.evaluation.cross_validation import Choice, choose_setting
from belated.evaluation.fitting import value_of
from belated.evaluation.intervals import confidence_above_zero, inflation, mean_interval, ratio_interval
from belated.evaluation.metrics import log_losses
from belated.evaluation.pairs import is_oracle
from belated.evaluation.teachers import Teachers
from belated.tables.refusal import counted
from belated.typing import Floats, Ints

if TYPE_CHECKING:
    from belated.evaluation.backtest import Backtest

_SURE = 0.95
_FEWEST = 30  # rows, and positives, that a recommendation needs
_OFF = 0.05  # of predicted over actual, from which on the oracle itself is off
_NOTHING = 0.001  # of the oracle's log loss: a gap as small as this is none


@dataclass(frozen=True)
class Recommendation:
    """What to use now.

    Attributes
    ----------
    name : str
        The pair of model and method with the lowest mean log loss over all cut-offs.
    method, model : str
        Its parts.
    window : float
        In days.
    l2 : float or None
        Of a model that has one, by cross-validation at the end of the log.
    setting : dict
        The same by name for any model: ``{"l2": 0.001}`` or ``{"rounds": 150}``.
    log_loss : float
        Of choosing a method by the other cut-offs, averaged over cut-offs; of ``method`` itself where there is one cut-off.
    gap_closed : float or None
        The same as a share of the way from BL to the oracle; None where late labels cost next to nothing.
    interval : list of two floats, or None
        The 95% interval of ``gap_closed``; None where the cut-offs are too few or too unlike to carry one.
    sure : float or None
        How sure it is that choosing this way beats BL, by a t test over cut-offs; None with fewer than three.
    on_a_par : list of str
        Methods that are not clearly worse.
    why : str
    """

    name: str
    method: str
    model: str
    window: float
    l2: float | None
    setting: dict[str, float]
    log_loss: float
    gap_closed: float | None
    interval: list[float] | None
    sure: float | None
    on_a_par: list[str]
    why: str


@dataclass(frozen=True)
class CrossFit:
    """Log losses (cut-offs, methods), and what choosing by the other cut-offs achieves at each."""

    names: list[str]
    losses: Floats
    chosen: list[str]  # by the other cut-offs, at each
    achieved: Floats
    achieved_without: Floats  # the mean that choosing would have achieved had there not been each cut-off

    @classmethod
    def of(cls, losses: dict[str, Floats]) -> CrossFit:
        """From the log losses of each method at each cut-off; an oracle is no method."""
        names = [name for name in losses if not is_oracle(name)]
        table = np.column_stack([losses[name] for name in names])
        best = _chosen_by_others(table)
        achieved = table[np.arange(len(table)), best]
        without = np.full(len(table), np.nan)
        if len(table) > 2:
            for k in range(len(table)):
                fewer = np.delete(table, k, axis=0)
                without[k] = fewer[np.arange(len(fewer)), _chosen_by_others(fewer)].mean()
        return cls(names, table, [names[k] for k in best], achieved, without)

    @property
    def best(self) -> str:
        """The method with the lowest mean over all cut-offs."""
        return self.names[int(self.losses.mean(axis=0).argmin())]

    def on_a_par(self) -> list[str]:
        """Methods that are not clearly worse than the best, the closest first."""
        best = self.losses[:, self.names.index(self.best)]
        worse = {name: confidence_above_zero(self.losses[:, k] - best) for k, name in enumerate(self.names)}
        means = dict(zip(self.names, self.losses.mean(axis=0), strict=True))
        close = [name for name, sure in worse.items() if name != self.best and (sure is None or sure < _SURE)]
        return sorted(close, key=means.__getitem__)


def _chosen_by_others(table: Floats) -> Ints:
    """For each cut-off, the method with the lowest mean loss over the others."""
    count = len(table)
    others = (table.sum(axis=0) - table) / (count - 1) if count > 1 else table
    return others.argmin(axis=1)


def share_of_gap(losses: dict[str, Floats], fit: CrossFit) -> tuple[float, list[float] | None]:
    """What choosing achieves as a share of the way from BL to the oracle, with its 95% interval."""
    gain, gap = losses["bl"] - fit.achieved, losses["bl"] - losses["oracle"]
    share = float(gain.mean() / gap.mean())
    left = gain - share * gap
    gain_without, gap_without = (_means_without(v) for v in (losses["bl"], gap))
    without = gain_without - fit.achieved_without - share * gap_without
    return share, ratio_interval(gain, gap, inflation(left, without))


def confidence_in_gain(losses: dict[str, Floats], fit: CrossFit) -> float | None:
    """How sure it is that choosing beats BL."""
    gain, without = losses["bl"] - fit.achieved, _means_without(losses["bl"]) - fit.achieved_without
    return confidence_above_zero(gain, inflation(gain, without))


def _means_without(values: Floats) -> Floats:
    """The mean of all values but each."""
    return (values.sum() - values) / max(len(values) - 1, 1)


def losses_by_cutoff(backtest: Backtest) -> dict[str, Floats]:
    """The mean log loss of each method at each cut-off."""
    return {name: np.array([log_losses(c.y, c.p[name]).mean() for c in backtest.cutoffs]) for name in backtest.methods}


def recommend(backtest: Backtest) -> Recommendation:
    """The method with the lowest mean log loss, the l2 it would choose at the end of the log, and what that gains."""
    losses = losses_by_cutoff(backtest)
    fit = CrossFit.of(losses)
    best, bl, oracle = fit.best, losses["bl"], losses["oracle"]
    closed, interval = share_of_gap(losses, fit) if _gap_is_real(bl, oracle) else (None, None)
    sure, par = confidence_in_gain(losses, fit), fit.on_a_par()
    tested = sum(len(c.y) for c in backtest.cutoffs), sum(int(c.y.sum()) for c in backtest.cutoffs)
    why = _short_of_history(backtest) + _why(fit, bl, oracle, closed, interval, sure, par, tested)
    if closed is None and min(tested) >= _FEWEST:
        why += _cancelling(_predicted_over_actual(backtest, "bl"), _predicted_over_actual(backtest, "oracle"), best)
    pair, value = backtest.pairs[best], _value_now(backtest, best)
    setting = {} if pair.model.setting is None or value is None else {pair.model.setting: value}
    return Recommendation(
        best,
        pair.method_name,
        pair.model_name,
        pair.window,
        setting.get("l2"),
        setting,
        float(fit.achieved.mean()),
        closed,
        interval,
        sure,
        par,
        why,
    )


def _short_of_history(backtest: Backtest) -> str:
    """A warning where no fit has seen a delay as long as the horizon."""
    lookback, horizon = backtest.settings.lookback, backtest.settings.horizon
    if lookback > horizon:
        return ""
    return (
        f"With care, for the log is short: each fit knew only {in_words(lookback)} of it, and outcomes come within {in_words(horizon)}, so nobody knew of the late ones. "
        f"With all of the log the order may be another. "
    )


def predicted_and_actual(backtest: Backtest, name: str) -> tuple[Floats, Floats]:
    """How many positives were predicted at each cut-off, and how many there were."""
    predicted = np.array([c.p[name].sum() for c in backtest.cutoffs])
    return predicted, np.array([float(c.y.sum()) for c in backtest.cutoffs])


def _predicted_over_actual(backtest: Backtest, name: str) -> float:
    predicted, actual = predicted_and_actual(backtest, name)
    return float(predicted.sum() / actual.sum())


def _cancelling(bl: float, oracle: float, best: str) -> str:
    """A warning where labels as they stand look as good as final ones because the rate has fallen by as much as they are too low."""
    if not (oracle > 1 + _OFF and abs(np.log(max(bl, 1e-300))) < np.log(oracle) / 2):
        return ""
    advice = " Prefer a method whose predictions are close to the oracle's." if best.rpartition(":")[2] == "bl" else ""
    return (
        f" But two errors cancel here: rates have fallen, so that final labels would have predicted {oracle - 1:.0%} too much, and labels as they stand are too low "
        f"by about as much (predicted over actual {bl:.2f}). When rates no longer fall, bl will be too low.{advice}"
    )


def _gap_is_real(bl: Floats, oracle: Floats) -> bool:
    """Whether knowing all labels would clearly have been better: not a thousandth only, and not by chance."""
    sure = confidence_above_zero(bl - oracle)
    return not _is_small(bl, oracle) and (sure is None or sure >= _SURE)


def _is_small(bl: Floats, oracle: Floats) -> bool:
    return bool((bl - oracle).mean() <= _NOTHING * oracle.mean())


def _value_now(backtest: Backtest, name: str) -> float | None:
    """By cross-validation at the end of the log; where that cannot be done, as at the last cut-off."""
    log, settings, pair = backtest.log, backtest.settings, backtest.pairs[name]
    if pair.values is None:
        return value_of(pair.model)
    snap = log.latest(round(settings.lookback * DAY), round(settings.horizon * DAY))
    y = snap.y == 1
    if y.any() and not y.all():
        labels = check_labels(y, snap.elapsed, snap.delay, None, pair.window, settings.horizon)
        engine, teachers = pair.model.for_trials(), Teachers(snap.X)
        choice = choose_setting(snap.X, {name: labels}, engine, {name: pair.method}, pair.values, teachers)[name]
        if isinstance(choice, Choice) and choice.value is not None:
            return choice.value
    return backtest.cutoffs[-1].values[name]


def _why(
    fit: CrossFit,
    bl: Floats,
    oracle: Floats,
    closed: float | None,
    interval: list[float] | None,
    sure: float | None,
    par: list[str],
    tested: tuple[int, int],
) -> str:
    best, count = fit.best, len(bl)
    own = float(fit.losses[:, fit.names.index(best)].mean())
    known = f"bl {bl.mean():.4f}, oracle {oracle.mean():.4f}"
    if min(tested) < _FEWEST:
        return (
            f"Too little to go by: there {'is' if tested[0] == 1 else 'are'} {counted(tested[0], 'row')} to test on, {tested[1]} of them positive. {best} has the lowest log loss "
            f"({own:.4f}; {known}), which may well be chance."
        )
    past = f"over {count} past cut-offs" if count > 1 else "at one past cut-off"
    if closed is None:
        small = _is_small(bl, oracle)
        says = "Late labels cost next to nothing here" if small else "What late labels cost here is within noise"
        gain = "no more" if small else "to be seen: take more cut-offs"
        others = [name for name in par if name != best]
        same = f" Not clearly worse: {', '.join(others[:4])}." if others else ""
        return (
            f"{says}: {past}, taking them as they stand (bl) has a log loss of {bl.mean():.4f}, and knowing "
            f"them all (oracle) would have given {oracle.mean():.4f}{_range(bl - oracle)}. "
            f"{'Stay with bl.' if best == 'bl' else f'{best} has {own:.4f}, the lowest of {len(fit.names)}; its gain is {gain}.'}{same}"
        )
    if fit.names == ["bl"]:
        return f"Only bl was tried: {past} its log loss is {bl.mean():.4f}; knowing all labels would have given {oracle.mean():.4f}."
    if best == "bl":
        return (
            f"No correction beats taking labels as they stand (bl): {past} its log loss is {bl.mean():.4f}, the lowest; knowing all "
            f"labels would have given {oracle.mean():.4f}. Look at the assumptions, and try a longer lookback."
        )
    if count == 1:
        return (
            f"Use {best}, with care: at one past cut-off its log loss is {own:.4f} ({known}), the lowest of {len(fit.names)}. The best of "
            f"several looks better than it is, and one cut-off cannot say by how much: take three or more."
        )
    use = (
        f"Use {best}"
        if fit.achieved.mean() < bl.mean()
        else f"{best} is not shown to beat bl, so keep bl until there is more data"
    )
    text = f"{use}: {past} its log loss is {own:.4f} ({known}), the lowest of {len(fit.names)}. {_achieved(fit, bl, closed, interval)}"
    if sure is None:
        text += " With two cut-offs nobody can say how sure that is: take three or more."
    elif sure < _SURE:
        text += f" That it beats bl is {sure:.0%} sure, which is not enough."
    others = [name for name in par if name != "bl"]
    if others:
        text += f" Not clearly worse: {', '.join(others[:4])}."
    return text


def _achieved(fit: CrossFit, bl: Floats, closed: float, interval: list[float] | None) -> str:
    """What choosing by the other cut-offs achieves."""
    same = sum(name == fit.best for name in fit.chosen)
    often = "each time" if same == len(fit.chosen) else f"{same} times of {len(fit.chosen)}"
    text = f"Choosing at each cut-off by the others ({often} this one) would have scored {fit.achieved.mean():.4f}"
    if closed > 1:
        return text + ", better than the oracle."
    if fit.achieved.mean() >= bl.mean():
        return text + ", no better than bl."
    bounds = " (the cut-offs are too few or too unlike for an interval)"
    if interval is not None:
        bounds = f" (95% interval {interval[0]:.0%} to {interval[1]:.0%})"
    return text + f", which closes {closed:.0%} of the gap between bl and oracle{bounds}."


def _range(gap: Floats) -> str:
    bounds = mean_interval(gap)
    return "" if bounds is None else f" (95% interval of the difference {bounds[0]:+.4f} to {bounds[1]:+.4f})"
