"""Compiled versions of the two costs that are evaluated most; a test holds them equal to their definitions.

They serve risks of many rows. Small ones stay with NumPy and wait for no compiler.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from belated.arrays import LARGEST_EXPONENT
from belated.threads import compiled
from belated.typing import Floats

MANY = 5_000  # rows
_PARTS = 16  # of which sums are made up


@compiled()
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
    parts, gradient = np.empty(_PARTS), np.empty_like(z)
    _logistic(np.ascontiguousarray(z), a, b, gradient, parts)
    return float(parts.sum()), gradient


@compiled()
def _logistic_curvature(z: Floats, a: Floats, b: Floats, out: Floats) -> None:
    for i in nb.prange(z.size):
        e = np.exp(-abs(z[i]))
        out[i] = (a[i] + b[i]) * e / (1.0 + e) ** 2


def logistic_curvature(z: Floats, a: Floats, b: Floats) -> Floats:
    """(a + b) sigmoid(z) sigmoid(-z)."""
    out = np.empty_like(a)
    _logistic_curvature(np.ascontiguousarray(z), a, b, out)
    return out


@compiled()
def _cure(
    margins: Floats,
    y: Any,
    weight: Floats,
    log_hazard: Floats,
    cumulated: Floats,
    end: Any,
    d_margins: Floats,
    d_cumulated: Floats,
    d_end: Any,
    parts: Floats,
) -> None:
    n, threads = weight.size, parts.size
    for part in nb.prange(threads):
        value = 0.0
        for i in range(n * part // threads, n * (part + 1) // threads):
            g, h, w = margins[i, 0], min(margins[i, 1], LARGEST_EXPONENT), weight[i]
            factor = np.exp(h)
            total = cumulated[i] * factor
            e = np.exp(-abs(g))
            softplus = np.log1p(e) + max(g, 0.0)
            share = (1.0 if g >= 0 else e) / (1.0 + e)
            if not y[i]:
                rest = g - total
                e = np.exp(-abs(rest))
                still = (1.0 if rest >= 0 else e) / (1.0 + e)
                value += w * (softplus - np.log1p(e) - max(rest, 0.0))
                d_margins[i, 0], d_margins[i, 1] = w * (share - still), w * still * total
                d_cumulated[i] = w * still * factor
                if end is not None:
                    d_end[i] = 0.0
                continue
            d_margins[i, 0] = w * (share - 1.0)
            if end is None:
                value += w * (softplus - g + total - h - log_hazard[i])
                d_margins[i, 1], d_cumulated[i] = w * (total - 1.0), w * factor
            else:
                inside = min(max((end[i] - cumulated[i]) * factor, 1e-150), 300.0)
                growth = np.expm1(inside)
                value += w * (softplus - g + total - np.log(-np.expm1(-inside)))
                d_margins[i, 1], d_cumulated[i] = w * (total - inside / growth), w * factor * (1.0 + 1.0 / growth)
                d_end[i] = -w * factor / growth
        parts[part] = value


def cure(
    margins: Floats, y: Any, weight: Floats, log_hazard: Floats, cumulated: Floats, end: Floats | None
) -> tuple[float, Floats, Floats, Floats | None]:
    """Cost of rows under a law with a cure share: the sum, and gradients in the margins, Lambda0 and Lambda0 at the end.

    ``end`` is Lambda0 at the end of each event's cell, or None where delays are exact; see
    :mod:`belated.risks.delays`.
    """
    parts, d_margins, d_cumulated = np.empty(_PARTS), np.empty(margins.shape), np.empty(len(weight))
    d_end = None if end is None else np.empty(len(weight))
    _cure(np.ascontiguousarray(margins), y, weight, log_hazard, cumulated, end, d_margins, d_cumulated, d_end, parts)
    return float(parts.sum()), d_margins, d_cumulated, d_end
