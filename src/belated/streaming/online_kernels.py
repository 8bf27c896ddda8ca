"""Compiled passes of online linear models: one record after another, each seeing what the last has changed.

The state of a column and margin is two numbers side by side: (z, n) of FTRL-proximal, from which the weight is computed when it is
read, or (weight, n) of AdaGrad; n is the sum of squared gradients. The last column is the intercept.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from belated.threads import compiled
from belated.typing import Floats, Ints

FTRL, ADAGRAD = 0, 1


@nb.njit(cache=True, inline="always")
def _weight(u: Any, n: Any, rule: int, rate: float, beta: float, l1: float, l2: float) -> Any:
    if rule == ADAGRAD:
        return u
    over = abs(u) - l1
    if over <= 0.0:
        return 0.0
    w = over / ((beta + np.sqrt(n)) / rate + l2)
    return -w if u > 0.0 else w


@nb.njit(cache=True, inline="always")
def _update(
    state: Any, column: int, head: int, g: float, rule: int, rate: float, beta: float, l1: float, l2: float
) -> None:
    u, n = np.float64(state[column, head, 0]), np.float64(state[column, head, 1])
    more = n + g * g
    if rule == ADAGRAD:
        state[column, head, 0] = u - rate * (g + l2 * u) / (beta + np.sqrt(more))
    else:
        step = (np.sqrt(more) - np.sqrt(n)) / rate
        state[column, head, 0] = u + g - step * _weight(u, n, rule, rate, beta, l1, l2)
    state[column, head, 1] = more


@nb.njit(cache=True, inline="always")
def _slope(margin: float, a: float, b: float, c: float) -> float:
    """The derivative of a * -log f + b * -log(1 - c f), f = sigmoid(margin)."""
    f = 1.0 / (1.0 + np.exp(-margin)) if margin >= 0.0 else np.exp(margin) / (1.0 + np.exp(margin))
    if c == 1.0:
        return (a + b) * f - a
    return b * c * f * (1.0 - f) / max(1.0 - c * f, 1e-12) - a * (1.0 - f)


@nb.njit(cache=True)
def learn_fields(
    indices: Any, head: Ints, a: Floats, b: Floats, c: Floats, state: Any,
    rule: int, rate: float, beta: float, l1: float, l2: float,
) -> None:  # fmt: skip
    """Rows of hashed categories, every value 1; columns are folded into those that the state has."""
    n, k = indices.shape
    columns, last = np.int64(state.shape[0] - 1), state.shape[0] - 1
    fold = columns & (columns - 1) == 0
    place = np.empty(k, dtype=np.int64)
    for i in range(n):
        h = head[i]
        margin = _weight(np.float64(state[last, h, 0]), np.float64(state[last, h, 1]), rule, rate, beta, l1, l2)
        for j in range(k):
            at = np.int64(indices[i, j])
            at = at & (columns - 1) if fold else at % columns
            place[j] = at
            margin += _weight(np.float64(state[at, h, 0]), np.float64(state[at, h, 1]), rule, rate, beta, l1, l2)
        g = _slope(margin, a[i], b[i], c[i])
        if g == 0.0:
            continue
        _update(state, last, h, g, rule, rate, beta, l1, l2)
        for j in range(k):
            _update(state, place[j], h, g, rule, rate, beta, l1, l2)


@nb.njit(cache=True)
def learn_numbers(
    X: Floats, head: Ints, a: Floats, b: Floats, c: Floats, state: Any,
    rule: int, rate: float, beta: float, l1: float, l2: float,
) -> None:  # fmt: skip
    """Rows of numbers."""
    n, k = X.shape
    for i in range(n):
        h = head[i]
        margin = _weight(np.float64(state[k, h, 0]), np.float64(state[k, h, 1]), rule, rate, beta, l1, l2)
        for j in range(k):
            margin += X[i, j] * _weight(
                np.float64(state[j, h, 0]), np.float64(state[j, h, 1]), rule, rate, beta, l1, l2
            )
        g = _slope(margin, a[i], b[i], c[i])
        _update(state, k, h, g, rule, rate, beta, l1, l2)
        for j in range(k):
            if X[i, j] != 0.0:
                _update(state, j, h, g * X[i, j], rule, rate, beta, l1, l2)


@compiled()
def _margins_of_fields(
    indices: Any, state: Any, out: Floats, rule: int, rate: float, beta: float, l1: float, l2: float
) -> None:
    columns, last = np.int64(state.shape[0] - 1), state.shape[0] - 1
    fold = columns & (columns - 1) == 0
    for i in nb.prange(indices.shape[0]):
        for h in range(out.shape[1]):
            out[i, h] = _weight(np.float64(state[last, h, 0]), np.float64(state[last, h, 1]), rule, rate, beta, l1, l2)
        for j in range(indices.shape[1]):
            at = np.int64(indices[i, j])
            at = at & (columns - 1) if fold else at % columns
            for h in range(out.shape[1]):
                out[i, h] += _weight(np.float64(state[at, h, 0]), np.float64(state[at, h, 1]), rule, rate, beta, l1, l2)


def margins_of_fields(indices: Any, state: Any, *how: Any) -> Floats:
    """Margins (n, heads) of rows of hashed categories."""
    out = np.empty((len(indices), state.shape[1]))
    _margins_of_fields(indices, state, out, *how)
    return out


@nb.njit(cache=True)
def weights_of(state: Any, rule: int, rate: float, beta: float, l1: float, l2: float) -> Floats:
    """The weight of each column and margin, the intercept last."""
    out = np.empty(state.shape[:2])
    for i in range(state.shape[0]):
        for h in range(state.shape[1]):
            out[i, h] = _weight(np.float64(state[i, h, 0]), np.float64(state[i, h, 1]), rule, rate, beta, l1, l2)
    return out
