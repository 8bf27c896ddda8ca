"""Choose a method and l2 from one snapshot alone, by setting the clock back.

The clock is set back by ``back`` days. Rows that had arrived by then, with the labels that were known then, are for
training; rows that arrived just after are for validation, with the labels known now. These labels may still be
incomplete: a row of age e has shown a share F(e) of its positives (:mod:`belated.evaluation.delay_curve`). With r = y / F(e),
whose mean is the rate of final positives where delays do not depend on the features,

    r log p + (1 - r) log(1 - p)

is an unbiased estimate of a row's final log likelihood. Nothing later than the snapshot is used. Where there is no horizon,
"final" means by the oldest age of the training rows; where the history is shorter than the horizon, by the oldest age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from belated.data.labels import Labels, check_labels
from belated.data.time_grid import grid_step
from belated.evaluation.delay_curve import delay_curve
from belated.evaluation.fitting import fit_path
from belated.methods.base import Method
from belated.models.base import Model
from belated.notices import logger, quietly
from belated.tables.frames import take_rows
from belated.typing import Bools, Floats

AUTO = ("bl", "tw", "rescale", "fsiw", "nndf", "dfm", "dfm-piecewise", "hazard")
L2_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)

_FEWEST_ROWS, _FEWEST_POSITIVES = 30, 5
_ENOUGH_ROWS = 1000
LEAST_SEEN = 0.05  # rows so young that less than this share of positives has come are not used for validation


@dataclass(frozen=True)
class Split:
    """A clock set back: what was known then, which rows came after, and what is known of them now."""

    back: float
    train: Bools
    past: Labels  # of the training rows, as known back then
    valid: Bools
    corrected_y: Floats  # of the validation rows: r = y / F(age)
    weight: Floats

    def loss(self, p: Floats) -> float:
        """Corrected log loss on the rows in valid."""
        return corrected_loss(self.corrected_y, p, self.weight)


def corrected_loss(corrected_y: Floats, p: Floats, weight: Floats) -> float:
    """Mean log loss of probabilities against r = y / F(age)."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return float(-np.average(corrected_y * np.log(p) + (1.0 - corrected_y) * np.log1p(-p), weights=weight))


def set_clock_back(labels: Labels) -> Split | None:
    """Set the clock back far enough for validation, but not so far that no history is left.

    None where that cannot be done.
    """
    if labels.elapsed is None or labels.delay is None:
        return None
    after = _how_far(labels, labels.elapsed)
    # Ages are counted from now, which is the last arrival or later.
    youngest, oldest = float(labels.elapsed.min()), float(labels.elapsed.max())
    back = youngest + after
    if not 0.0 < back < oldest:
        return None
    then = replace(labels, window=back)
    train, known = then.mature, then.early
    if not labels.y.any() or not known[train].any() or known[train].all():
        return None
    # Without a horizon, what counts is what comes by the oldest age of back then: nothing that was known says more.
    horizon = oldest - back if labels.horizon is None else labels.horizon
    seen = delay_curve(labels.elapsed, labels.delay, horizon, weight=labels.weight).seen(labels.elapsed)
    y = labels.y & (np.where(labels.y, labels.delay, np.inf) <= horizon + labels.tie_width)
    valid = ~train & (labels.elapsed >= back - after / 2.0) & (seen >= LEAST_SEEN)
    if valid.sum() < _FEWEST_ROWS or y[valid].sum() < _FEWEST_POSITIVES:
        return None
    past = check_labels(
        known[train],
        then.rewound_age[train],
        np.where(known, labels.delay, np.nan)[train],
        labels.weight[train],
        None if labels.window is None else min(labels.window, (oldest - back) / 2.0),
        labels.horizon,
    )
    return Split(back, train, past, valid, y[valid] / seen[valid], labels.weight[valid])


def _how_far(labels: Labels, elapsed: Floats) -> float:
    """How long before the last arrival the clock should stand.

    Methods that rewind need a history of two windows in training too. Of a small log a longer stretch is for validation.
    """
    youngest, span = float(elapsed.min()), float(elapsed.max() - elapsed.min())
    window = min(labels.window or span / 4.0, span / 2.0)
    least = float(np.clip(span - 2.0 * window, span / 12.0, max(window, span / 12.0)))
    longer = [max(least, share * span) for share in (0.0, 1 / 6, 1 / 4, 1 / 3)]
    enough = (after for after in longer if _is_enough(elapsed, labels.y, youngest + after / 2.0, youngest + after))
    after = next(enough, max(least, span / 3.0))
    # In a log stamped by the day, the clock must not stand between two days.
    if step := grid_step(elapsed):
        after = max(round(after / step), 1) * step
    return after


def _is_enough(age: Floats, y: Bools, low: float, high: float) -> bool:
    rows = (age >= low) & (age < high)
    return bool(rows.sum() >= _ENOUGH_ROWS and y[rows].sum() >= _ENOUGH_ROWS // 10)


@dataclass(frozen=True)
class Choice:
    """The corrected validation loss of each l2, or of the model's own, and the best of them."""

    l2: float | None
    losses: dict[float | None, float]

    @property
    def loss(self) -> float:
        return min(self.losses.values())


def choose_l2(
    X: Any, labels: Labels, model: Model, methods: Mapping[str, Method], l2: Sequence[float] | None
) -> dict[str, Choice | str]:
    """For each method the l2 that would have served best, or why the method cannot be fitted in the past."""
    split = set_clock_back(labels)
    if split is None:
        why = "too little history to set the clock back and validate"
        return dict.fromkeys(methods, why)
    encoded = model.encode(take_rows(X, split.train), split.past.weight)
    later = model.transform(take_rows(X, split.valid))
    found: dict[str, Choice | str] = {}
    for name, method in methods.items():
        try:
            method.check(labels)  # a method that cannot be used now is not tried in the past
            with quietly():
                fits = fit_path(model, encoded, method, split.past, l2)
        except ValueError as error:
            found[name] = str(error)
            continue
        losses = {fit.l2: split.loss(fit.predict(later)) for fit in fits}
        found[name] = choice = Choice(min(losses, key=losses.__getitem__), losses)
        logger.info("%s: with the clock set back by %.3g, the best l2 is %s", name, split.back, choice.l2)
    return found
