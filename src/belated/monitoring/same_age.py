"""The rate of a period beside that of earlier periods, each cut when it was as old: what assumes nothing of delays or scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from belated.monitoring.scored_rows import ScoredRows
from belated.typing import Bools

_BEFORE = 6  # periods to compare one with


def same_age(rows: ScoredRows, start: int, size: int, version: str) -> dict[str, Any] | None:
    """The rate so far beside that of earlier periods of the same version, each cut when it was as old."""
    mine = _cut(rows, start, size, rows.now, version)
    if mine is None:
        return None
    before = [_cut(rows, start - k * size, size, rows.now - k * size, version) for k in range(1, _BEFORE + 1)]
    others = [one for one in before if one is not None and one[0] >= 0.5 * mine[0] and one[1] > 0]
    if len(others) < 3 or not mine[1]:
        return None
    rates = np.array([positive / count for count, positive, _ in others])
    logs, noise = np.log(rates), 1.0 / mine[1]
    chance = float(np.mean([1.0 / positive for _, positive, _ in others]))
    spread = max(float(logs.var(ddof=1)), chance)
    # Where rates vary by no more than chance, their variance is known, and else an estimate from a few periods.
    wide = float(stats.norm.ppf(0.975) if spread == chance else stats.t.ppf(0.975, len(others) - 1))
    wide *= float(np.sqrt(max(spread, noise) + spread / len(others)))
    ratio = float(np.log(mine[1] / mine[0]) - logs.mean())
    return {
        "rate": mine[1] / mine[0],
        "before": float(np.exp(logs.mean())),
        "ratio": [float(np.exp(ratio + k * wide)) for k in (0, -1, 1)],
        "periods": len(others),
    }


def _cut(rows: ScoredRows, start: int, size: int, now: int, version: str) -> tuple[int, int, float] | None:
    """Of a period as it was known at a time: its rows, the positives among them, and the sum of its scores."""
    first, last = np.searchsorted(rows.time, [start, start + size])
    last = min(int(last), int(np.searchsorted(rows.time, now, side="right")))
    if last <= first:
        return None
    mine: Bools = rows.version[first:last] == rows.versions.index(version)
    known = mine & (rows.outcome[first:last] <= now)
    return (int(mine.sum()), int(known.sum()), float(rows.score[first:last][mine].sum())) if mine.any() else None
