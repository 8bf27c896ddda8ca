"""Quantiles of rows on a cluster: exact, by narrowing down where each lies, without bringing rows together."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.cluster.base import Cluster, Kept, Part, Reduced
from belated.typing import Floats

_AT_A_TIME = 4096  # places asked for in a round


def weighted_quantiles_of(cluster: Cluster, rows: Kept, levels: Any) -> Floats:
    """For each level, the smallest value whose cumulated weight is at least that share; each partition keeps (values, cumulated weights), sorted."""
    total = cluster.total(_weight_on, rows)
    return order_statistics(cluster, rows, np.atleast_1d(levels), total).reshape(np.shape(levels))


def order_statistics(cluster: Cluster, rows: Kept, wanted: Floats, scale: float = 1.0) -> Floats:
    """For each number, the smallest value whose cumulated weight, divided by ``scale``, is at least that."""
    low, high = cluster.total(_range_on, rows)
    # As ordered whole numbers floats can be halved exactly.
    first, last = _as_order(np.array([low.value]))[0], _as_order(np.array([high.value]))[0]
    lows, highs = (np.full(len(wanted), end, dtype=np.int64) for end in (first, last))
    while (lows < highs).any():
        asked = np.stack([_between(a, b) for a, b in zip(lows.tolist(), highs.tolist(), strict=True)])
        below = cluster.total(_cumulated_on, (rows, _as_float(asked))) / scale
        for k, (places, reached) in enumerate(zip(asked, below >= wanted[:, None], strict=True)):
            at = int(np.argmax(reached)) if reached.any() else len(places) - 1
            highs[k] = places[at]
            lows[k] = min(places[at - 1] + 1 if at else lows[k], highs[k])
    return _as_float(lows)


def _between(low: int, high: int) -> Any:
    """Places from one order number to another, both included; as many for each, so some may be there twice."""
    span, last = high - low, _AT_A_TIME - 1
    # In steps from below that are whole numbers, in two parts so that no product is too large for 64 bits.
    step, rest = divmod(span, last)
    k = np.arange(_AT_A_TIME, dtype=np.int64)
    with np.errstate(over="ignore"):
        away = np.uint64(step) * k.astype(np.uint64) + (rest * k // last).astype(np.uint64)
        return (np.int64(low).astype(np.uint64) + away).astype(np.int64)


def _as_order(values: Floats) -> Any:
    """Floats as whole numbers of the same order."""
    bits = (values.astype(np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _as_float(order: Any) -> Floats:
    return np.where(order < 0, np.int64(-(2**63)) - order, order).view(np.float64)


def _weight_on(part: Part, rows: Kept) -> float:
    return float(part.kept[rows.number][1][-1])


def _range_on(part: Part, rows: Kept) -> Any:
    values = part.kept[rows.number][0]
    if not len(values):
        return None
    return Reduced(min, float(values[0])), Reduced(max, float(values[-1]))


def _cumulated_on(part: Part, value: Any) -> Floats:
    rows, places = value
    values, cumulated = part.kept[rows.number]
    return cumulated[np.searchsorted(values, places, side="right")]
