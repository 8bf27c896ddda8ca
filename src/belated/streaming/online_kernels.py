"""Compiled passes of online linear models: one record after another, each seeing what the last has changed.

The state of a column and margin is two numbers side by side: (z, n) of FTRL-proximal, from which the weight is computed when it is
read, or (weight, n) of AdaGrad; n is the sum of squared gradients. The last column is the intercept. Where there are several margins
the last of their places is shared: what is learned there counts for all of them.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from belated.compiling import njit
from belated.threads import compiled
from belated.typing import Floats, Ints

FTRL, ADAGRAD = 0, 1


@njit(inline="always")
def _weight(u: Any, n: Any, rule: int, rate: float, beta: float, l1: float, l2: float) -> Any:
    if rule == ADAGRAD:
        return u
    over = abs(u) - l1
    if over <= 0.0:
        return 0.0
    w = over / ((beta + np.sqrt(n)) / rate + l2)
    return -w if u > 0.0 else w


@njit(inline="always")
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


@njit(inline="always")
def _slope(margin: float, a: float, b: float, c: float) -> float:
    """The derivative of a * -log f + b * -log(1 - c f), f = sigmoid(margin)."""
    f = 1.0 / (1.0 + np.exp(-margin)) if margin >= 0.0 else np.exp(margin) / (1.0 + np.exp(margin))
    if c == 1.0:
        return (a + b) * f - a
    return b * c * f * (1.0 - f) / max(1.0 - c * f, 1e-12) - a * (1.0 - f)


@njit(inline="always")
def _read(state: Any, column: Any, head: int, shared: int, how: Any) -> float:
    """The weight of a column for a margin, with what all margins share."""
    rule, rate, beta, l1, l2 = how
    w = _weight(np.float64(state[column, head, 0]), np.float64(state[column, head, 1]), rule, rate, beta, l1, l2)
    if shared >= 0:
        w += _weight(
            np.float64(state[column, shared, 0]), np.float64(state[column, shared, 1]), rule, rate, beta, l1, l2
        )
    return w


@njit(inline="always")
def _write(state: Any, column: Any, head: int, shared: int, g: float, how: Any) -> None:
    rule, rate, beta, l1, l2 = how
    _update(state, column, head, g, rule, rate, beta, l1, l2)
    if shared >= 0:
        _update(state, column, shared, g, rule, rate, beta, l1, l2)


@njit()
def learn_fields(indices: Any, head: Ints, a: Floats, b: Floats, c: Floats, state: Any, shared: int, how: Any) -> None:
    """Rows of hashed categories, every value 1; columns are folded into those that the state has."""
    n, k = indices.shape
    columns, last = np.int64(state.shape[0] - 1), state.shape[0] - 1
    fold = columns & (columns - 1) == 0
    place = np.empty(k, dtype=np.int64)
    for i in range(n):
        h = head[i]
        margin = _read(state, last, h, shared, how)
        for j in range(k):
            at = np.int64(indices[i, j])
            at = at & (columns - 1) if fold else at % columns
            place[j] = at
            margin += _read(state, at, h, shared, how)
        g = _slope(margin, a[i], b[i], c[i])
        if g == 0.0:
            continue
        _write(state, last, h, shared, g, how)
        for j in range(k):
            _write(state, place[j], h, shared, g, how)


@njit()
def learn_numbers(X: Floats, head: Ints, a: Floats, b: Floats, c: Floats, state: Any, shared: int, how: Any) -> None:
    """Rows of numbers."""
    n, k = X.shape
    for i in range(n):
        h = head[i]
        margin = _read(state, k, h, shared, how)
        for j in range(k):
            margin += X[i, j] * _read(state, j, h, shared, how)
        g = _slope(margin, a[i], b[i], c[i])
        _write(state, k, h, shared, g, how)
        for j in range(k):
            if X[i, j] != 0.0:
                _write(state, j, h, shared, g * X[i, j], how)


@compiled()
def _margins_of_fields(indices: Any, state: Any, out: Floats, shared: int, how: Any) -> None:
    rule, rate, beta, l1, l2 = how
    columns, last = np.int64(state.shape[0] - 1), state.shape[0] - 1
    fold = columns & (columns - 1) == 0
    for i in nb.prange(indices.shape[0]):
        common = 0.0
        for h in range(out.shape[1]):
            out[i, h] = 0.0
        for j in range(indices.shape[1] + 1):
            at = last
            if j < indices.shape[1]:
                at = np.int64(indices[i, j])
                at = at & (columns - 1) if fold else at % columns
            for h in range(out.shape[1]):
                out[i, h] += _weight(np.float64(state[at, h, 0]), np.float64(state[at, h, 1]), rule, rate, beta, l1, l2)
            if shared >= 0:
                common += _weight(
                    np.float64(state[at, shared, 0]), np.float64(state[at, shared, 1]), rule, rate, beta, l1, l2
                )
        for h in range(out.shape[1]):
            out[i, h] += common


def margins_of_fields(indices: Any, state: Any, shared: int, how: Any) -> Floats:
    """Margins (n, heads) of rows of hashed categories."""
    out = np.empty((len(indices), state.shape[1] - (shared >= 0)))
    _margins_of_fields(indices, state, out, shared, how)
    return out


@njit()
def weights_of(state: Any, heads: int, shared: int, how: Any) -> Floats:
    """The weight of each column and margin, the intercept last."""
    out = np.empty((state.shape[0], heads))
    for i in range(state.shape[0]):
        for h in range(heads):
            out[i, h] = _read(state, i, h, shared, how)
    return out
