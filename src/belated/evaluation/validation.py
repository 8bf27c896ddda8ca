"""Set the clock back within one snapshot: what was known then, and how that predicts what has come since.

The clock is set back by ``back`` days. Rows that had arrived by then, with the labels that were known then, are for
training; rows that arrived just after are for validation, with the labels known now. These labels may still be
incomplete: a row of age e has shown a share F(e) of its positives (:mod:`belated.evaluation.delay_curve`). With r = y / F(e),
whose mean is the rate of final positives where delays do not depend on the features,

    r log p + (1 - r) log(1 - p)

is an unbiased estimate of a row's final log likelihood. Nothing later than the snapshot is used. Where there is no horizon,
"final" means by the oldest age of the training rows; where the history is shorter than the horizon, by the oldest age.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from belated.data.labels import Labels, check_labels
from belated.data.time_grid import grid_step, whole_steps
from belated.evaluation.delay_curve import delay_curve
from belated.typing import Bools, Floats

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


def corrected_losses(corrected_y: Floats, p: Floats) -> Floats:
    """Log loss of each probability against r = y / F(age)."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return -(corrected_y * np.log(p) + (1.0 - corrected_y) * np.log1p(-p))


def corrected_loss(corrected_y: Floats, p: Floats, weight: Floats) -> float:
    """Their mean."""
    return float(np.average(corrected_losses(corrected_y, p), weights=weight))


def set_clock_back(labels: Labels) -> Split | None:
    """Set the clock back far enough for validation, but not so far that no history is left.

    None where that cannot be done.
    """
    if labels.elapsed is None or labels.delay is None:
        return None
    after = _how_far(labels, labels.elapsed)
    # Ages are counted from now, which is the last arrival or later.
    return rewind(labels, float(labels.elapsed.min()) + after, after / 2.0)


def rewind(labels: Labels, back: float, width: float, seen: Floats | None = None) -> Split | None:
    """Set the clock back by ``back``; rows that arrived within ``width`` after are for validation.

    ``seen`` is the share of its positives that a row of each age has shown by now; by default the same for all features.
    None where too few rows or positives are left on either side.
    """
    if labels.elapsed is None or labels.delay is None or not labels.y.any():
        return None
    oldest = float(labels.elapsed.max())
    if not 0.0 < back < oldest:
        return None
    then = replace(labels, window=back)
    train, known = then.mature, then.early
    if not known[train].any() or known[train].all():
        return None
    # Without a horizon, what counts is what comes by the oldest age of back then: nothing that was known says more.
    horizon = oldest - back if labels.horizon is None else labels.horizon
    if seen is None:
        seen = delay_curve(labels.elapsed, labels.delay, horizon, weight=labels.weight).seen(labels.elapsed)
    y = labels.y & (np.where(labels.y, labels.delay, np.inf) <= horizon + labels.tie_width)
    valid = ~train & (labels.elapsed >= back - width) & (seen >= LEAST_SEEN)
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
    return whole_steps(after, grid_step(elapsed))


def _is_enough(age: Floats, y: Bools, low: float, high: float) -> bool:
    rows = (age >= low) & (age < high)
    return bool(rows.sum() >= _ENOUGH_ROWS and y[rows].sum() >= _ENOUGH_ROWS // 10)
