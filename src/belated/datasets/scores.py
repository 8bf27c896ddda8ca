"""Simulated scores of a model, and the outcomes that came later."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_HORIZON = 30.0


def simulate_scores(
    rows: int = 100_000,
    rate_change: float = 1.0,
    delay_change: float = 1.0,
    days: int = 90,
    changed_at: float = 70.0,
    uneven: float = 0.0,
    seed: int = 0,
) -> tuple[pa.Table, pa.Table]:
    """Simulate ``days`` of scores, and the outcomes known at their end: two tables that share ``id``.

    Scores are right until day ``changed_at``. From then on, the true probabilities are ``rate_change`` times the scores, and delays
    ``delay_change`` times what they were. Half of the outcomes come within about three days, and none after 30. ``uneven`` is the standard deviation of the logarithm
    of each day's rate.

    >>> scores, outcomes = simulate_scores(1000)
    >>> scores.column_names, outcomes.column_names
    (['id', 'scored_at', 'p', 'segment', 'version'], ['id', 'converted_at'])
    """
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0.0, days, rows))
    segment = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    p = 1.0 / (1.0 + np.exp(-(-1.6 + 0.8 * rng.normal(size=rows) + np.array([0.0, -0.3, 0.3, 0.6])[segment])))
    changed = time >= changed_at
    daily = np.exp(uneven * rng.normal(size=days + 1))[time.astype(int)]
    turns = rng.uniform(size=rows) < np.minimum(np.where(changed, rate_change, 1.0) * daily * p, 1.0)
    mean = np.where(rng.uniform(size=rows) < 0.4, 0.5, 8.0) * np.where(changed, delay_change, 1.0)
    # A delay drawn from the exponential law cut at the horizon.
    delay = -mean * np.log1p(-rng.uniform(size=rows) * -np.expm1(-_HORIZON / mean))
    seen = turns & (time + delay <= days)
    numbers = np.arange(rows)
    start = np.datetime64("2024-01-01", "us")

    def stamp(days: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pa.Array:
        return pa.array(start + np.rint(days * 86400e6).astype("timedelta64[us]"))

    scores = {
        "id": numbers,
        "scored_at": stamp(time),
        "p": p.round(6),
        "segment": np.array(["search", "social", "mail", "partner"])[segment].tolist(),
        "version": np.where(time < 45.0, "v1", "v2").tolist(),
    }
    return pa.table(scores), pa.table({"id": numbers[seen], "converted_at": stamp((time + delay)[seen])})
