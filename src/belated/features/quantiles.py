"""Quantiles of weighted values."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats


def weighted_quantiles(values: Floats, weight: Floats, count: int) -> Floats:
    """Distinct weighted quantiles at 1/count, ..., (count-1)/count; integer weights count as repetition."""
    if len(values) == 0:
        return np.empty(0)
    levels = np.arange(1, count) / count
    # Equal weights count as ones, whose sums are exact, so that a tie is one wherever they are added up.
    weights = np.ones_like(weight) if weight.min() == weight.max() else weight
    return np.unique(np.quantile(values, levels, weights=weights, method="inverted_cdf"))
