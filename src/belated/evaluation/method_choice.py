"""Choose a method from one snapshot alone: what would each have predicted, had it been fitted a while ago?

The clock is set back several times. What was known then is for training, and rows that arrived just after are for
validation, with the labels known now. Some of these are still open: a row of age e has shown a share F(e | x) of its
positives, and y / F(e | x) stands in for its final label (:mod:`belated.evaluation.validation`). F depends on the features, for
methods differ most where slow rows differ from fast ones: rows are grouped by how fast their positives come under
dfm-piecewise, and F is the Kaplan-Meier curve of each group.

dfm-piecewise under a linear model makes the weakest assumptions and is taken unless another pair of model and method is clearly
better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from belated.data.labels import Labels
from belated.data.time_grid import grid_step, whole_steps
from belated.evaluation.compatibility import why_not
from belated.evaluation.cross_validation import Choice, choose_setting
from belated.evaluation.delay_curve import delay_curve
from belated.evaluation.fitting import fit_method, value_of
from belated.evaluation.pairs import Pair
from belated.evaluation.teachers import Teachers
from belated.evaluation.validation import Split, corrected_losses, rewind
from belated.methods import resolve_method
from belated.methods.base import Method, no_learner
from belated.models.base import Model
from belated.notices import logger, quietly
from belated.tables.frames import take_rows
from belated.typing import Floats

AUTO = ("bl", "tw", "rescale", "fsiw", "nndf", "dfm", "dfm-piecewise", "hazard")
AUTO_MORE = ("soft-labels", "dfm-piecewise", "tw")  # of further models
USUAL = "dfm-piecewise"

_BACK = (1 / 4, 3 / 8, 1 / 2)  # of the history: how far the clock is set back
_WIDTH = 1 / 8  # of the history: how long after that rows are for validation
_GROUPS, _FEWEST_POSITIVES = 5, 100
_CLEARLY = 2.0  # standard errors
_TOO_LITTLE = "too little history to set the clock back and compare methods"


@dataclass(frozen=True)
class MethodChoice:
    """The pair of model and method to take, a sentence why, and the validation loss of each, or why it could not be tried."""

    pair: Pair
    why: str
    losses: dict[str, float | str]


def auto_pairs(engines: Mapping[str, Model], method: Method | None = None) -> list[Pair]:
    """What to try: one method under each engine that can fit it, or the usual ones; the first is taken unless another is clearly better."""
    pairs: list[Pair] = []
    refused: list[str] = []
    for model_name, model in engines.items():
        values = model.grid if model.setting is not None and value_of(model) is None else None
        if method is not None:
            reason = why_not(method, model)
            if reason is None:
                pairs.append(Pair(model_name, type(method).__name__, model_name, method, model, values))
            else:
                refused.append(reason)
            continue
        first = not pairs
        for name in AUTO if first else AUTO_MORE:
            full = name if first else f"{model_name}:{name}"
            pairs.append(Pair(full, name, model_name, resolve_method(name), model, values))
    if not pairs:
        raise ValueError(refused[0])
    return sorted(pairs, key=lambda pair: pair.name != USUAL)


def choose_method(X: Any, labels: Labels, pairs: Sequence[Pair]) -> MethodChoice:
    """The first pair, or one that would clearly have predicted better what has come since."""
    usual = _usual(labels, pairs)
    splits = _splits(X, labels)
    if not splits:
        return MethodChoice(
            usual, f"{usual.name}, because there is {_TOO_LITTLE}", {pair.name: _TOO_LITTLE for pair in pairs}
        )
    rows: dict[str, list[Floats]] = {pair.name: [] for pair in pairs}
    failed: dict[str, str] = {}
    for split in splits:
        for name, found in _losses(X, labels, split, pairs).items():
            if isinstance(found, str):
                failed[name] = found
            else:
                rows[name].append(found)
    losses = {name: np.concatenate(parts) for name, parts in rows.items() if name not in failed}
    if not losses:
        return MethodChoice(usual, f"{usual.name}, because nothing could be fitted in the past", dict(failed))
    best, why, means = pick(losses, pairs[0].name, np.concatenate([split.weight for split in splits]))
    logger.info("auto: %s; losses %s", why, means)
    return MethodChoice(next(pair for pair in pairs if pair.name == best), why, {**means, **failed})


def _usual(labels: Labels, pairs: Sequence[Pair]) -> Pair:
    """The first; bl where that is dfm-piecewise and there are no delays for it to learn."""
    if pairs[0].name != USUAL:
        return pairs[0]
    try:
        pairs[0].method.build_risk(labels, no_learner)
    except ValueError:
        return next(pair for pair in pairs if pair.name == "bl")
    return pairs[0]


def pick(losses: Mapping[str, Floats], usual: str, weight: Floats) -> tuple[str, str, dict[str, float | str]]:
    """The one to take, why, and the mean losses, from the losses of the same rows under each."""
    means: dict[str, float | str] = {name: float(np.average(one, weights=weight)) for name, one in losses.items()}
    best = min(means, key=means.__getitem__)
    if usual not in losses:
        return best, f"{best}, which has the lowest loss; {usual} could not be fitted in the past", means
    if best == usual:
        return best, f"{best}, which has the lowest loss", means
    rows = losses[usual] - losses[best]
    gain = float(np.average(rows, weights=weight))
    error = float(np.sqrt(((weight * (rows - gain)) ** 2).sum()) / weight.sum())
    by = f"{best} is better by {gain:.4f} with a standard error of {error:.4f}"
    if gain > _CLEARLY * error:
        return best, f"{best}, which is clearly better than {usual}: {by}", means
    return usual, f"{usual}, because nothing is clearly better: {by}", means


def _splits(X: Any, labels: Labels) -> list[Split]:
    """The clock set back by several spans, as far as there are rows and positives enough."""
    if labels.elapsed is None or labels.delay is None:
        return []
    # Of the history that most rows have: a stray arrival years ago is none.
    youngest, oldest = (float(v) for v in np.quantile(labels.elapsed, [0.0, 0.98]))
    span = oldest - youngest
    if not span > 0:
        return []
    # Without a horizon, what counts is what comes by half the span: as far as the shortest history reaches.
    labels = labels if labels.horizon is not None else _within(labels, span / 2.0)
    assert labels.horizon is not None and labels.elapsed is not None
    try:
        seen = _share_seen(X, labels, labels.horizon)
    except ValueError:  # no delays to learn from: the same curve for all
        seen = None
    # In a log stamped by the day, the clock must not stand between two days.
    step = grid_step(labels.elapsed)
    backs, width = {whole_steps(share * span, step) for share in _BACK}, whole_steps(_WIDTH * span, step)
    found = [rewind(labels, youngest + back, width, seen) for back in sorted(backs)]
    return [split for split in found if split is not None]


def _within(labels: Labels, horizon: float) -> Labels:
    """The same with a horizon: what comes later counts as negative."""
    assert labels.delay is not None
    y = labels.y & (np.where(labels.y, labels.delay, np.inf) <= horizon)
    window = None if labels.window is None else min(labels.window, horizon)
    return replace(labels, y=y, delay=np.where(y, labels.delay, np.nan), horizon=horizon, window=window)


def _share_seen(X: Any, labels: Labels, horizon: float) -> Floats:
    """F(e | x): the share of its positives that each row has shown at its age, by groups of how fast they come."""
    assert labels.elapsed is not None and labels.delay is not None
    group = _speed_groups(X, labels)
    seen = np.zeros_like(labels.weight)
    for k in np.unique(group):
        mine = group == k
        curve = delay_curve(labels.elapsed[mine], labels.delay[mine], horizon, labels.weight[mine])
        seen = np.where(mine, curve.seen(labels.elapsed), seen)
    return seen


def _speed_groups(X: Any, labels: Labels) -> Any:
    """Groups of rows by the delay that dfm-piecewise expects, each with positives enough for a curve of its own."""
    speed = Teachers(X, tol=1e-5).teach(resolve_method(USUAL), labels).margins[:, 1]
    count = int(np.clip(labels.y.sum() // _FEWEST_POSITIVES, 1, _GROUPS))
    edges = np.quantile(speed[labels.y], np.arange(1, count) / count)
    return np.searchsorted(edges, speed)


def _losses(X: Any, labels: Labels, split: Split, pairs: Sequence[Pair]) -> dict[str, Floats | str]:
    """The corrected loss of each validation row under each pair, or why it could not be fitted back then."""
    before, after = take_rows(X, split.train), take_rows(X, split.valid)
    found: dict[str, Floats | str] = {}
    with quietly():
        teachers = Teachers(before, tol=1e-5)
        for model_name in dict.fromkeys(pair.model_name for pair in pairs):
            mine = [pair for pair in pairs if pair.model_name == model_name]
            engine, methods = clone(mine[0].model), {pair.name: pair.method for pair in mine}
            choices: dict[str, Choice | str] = {}
            if mine[0].values is not None:
                known = dict.fromkeys(methods, split.past)
                choices = choose_setting(before, known, engine, methods, mine[0].values, teachers)
            encoded = engine.encode(before, split.past.weight)
            later = engine.transform(after)
            for name, method in methods.items():
                choice = choices.get(name)
                try:
                    method.check(labels)  # a method that cannot be used now is not tried in the past
                    if isinstance(choice, str):
                        raise ValueError(choice)
                    value = None if choice is None else choice.value
                    fit = fit_method(engine, encoded, method, split.past, value, teachers)
                    found[name] = corrected_losses(split.corrected_y, fit.predict(later))
                except ValueError as error:
                    found[name] = str(error)
    return found
