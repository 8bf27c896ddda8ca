"""Compiled costs of single rows, for risks of many rows; small ones stay with NumPy and wait for no compiler."""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MANY = 50_000  # rows


@nb.njit(cache=True, parallel=True)
def _logistic(z: Floats, a: Floats, b: Floats, gradient: Floats, parts: Floats) -> None:
    """Cost (a + b) softplus(z) - a z of each row, summed into ``parts``, and its derivative."""
    n, threads = z.size, parts.size
    for t in nb.prange(threads):
        total = 0.0
        for i in range(n * t // threads, n * (t + 1) // threads):
            x, c = z[i], a[i] + b[i]
            e = np.exp(-abs(x))
            total += c * (np.log1p(e) + max(x, 0.0)) - a[i] * x
            gradient[i] = c * (1.0 if x >= 0 else e) / (1.0 + e) - a[i]
        parts[t] = total


def logistic(z: Floats, a: Floats, b: Floats) -> tuple[float, Floats]:
    """Sum of (a + b) softplus(z) - a z, and its derivative in z."""
    parts, gradient = np.empty(nb.get_num_threads()), np.empty_like(z)
    _logistic(np.ascontiguousarray(z), a, b, gradient, parts)
    return float(parts.sum()), gradient
