"""Intervals: how scores would differ over other cut-offs and other rows.

Draws are paired: cut-offs are drawn with replacement, and within each the rows, which were dealt at random into blocks
that are drawn with replacement. Every method is scored on the same draws, so that differences between methods have
intervals of their own. With two or three cut-offs that differ they are too narrow; with six they hold about what they
promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from belated.evaluation.metrics import log_losses
from belated.typing import Floats

if TYPE_CHECKING:
    from belated.evaluation.backtest import Backtest

_BLOCKS, _DRAWS = 100, 1000


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


def interval(values: Floats) -> list[float] | None:
    """The 95% interval; None where the quantity is undefined in more than 2.5% of the draws."""
    known = values[np.isfinite(values)]
    return [float(v) for v in np.quantile(known, [0.025, 0.975])] if len(known) >= 0.975 * len(values) else None
