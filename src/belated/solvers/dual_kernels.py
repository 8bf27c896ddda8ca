"""Compiled passes of dual coordinate ascent; see :mod:`belated.solvers.dual` for what they compute."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from belated.compiling import njit
from belated.solvers.row_kernels import prefetch
from belated.threads import compiled
from belated.typing import Floats, SmallInts

_AHEAD = 8  # rows ahead of the current one, whose state is fetched


@njit()
def shuffle(order: SmallInts, seed: int) -> None:
    """A full random permutation: shuffling within blocks makes the dual method stall."""
    np.random.seed(seed)  # noqa: NPY002 (numba's own generator)
    for i in range(order.size - 1, 0, -1):
        j = np.random.randint(0, i + 1)  # noqa: NPY002
        order[i], order[j] = order[j], order[i]


@njit(fastmath={"contract", "arcp", "nsz"})
def dual_epoch(
    indptr: Any,
    indices: SmallInts,
    data: Any,
    k: int,
    order: SmallInts,
    coef: Floats,
    bias: Floats,
    state: Floats,
    spread: float,
    bias_spread: float,
) -> None:
    """One pass of dual coordinate ascent over the rows in ``order``; see :mod:`belated.solvers.dual`.

    ``state`` holds (c, s, t, ||x||^2) for each row, s = sigmoid(t), 32 bytes in one line of the cache; ``bias`` holds the centre of the intercept and its distance
    from there. Row i asks for the root of t - z + q c (sigmoid(t) - s) = 0, found by Newton's steps kept inside a
    bracket, to a precision that grows with its own.
    """
    n = order.size
    for step in range(n):
        if step + _AHEAD < n:
            ahead = np.int64(order[step + _AHEAD])
            prefetch(state, 4 * ahead)
            if indptr is None:
                prefetch(indices, ahead * k)
                prefetch(indices, ahead * k + 16)
            else:
                prefetch(indptr, ahead)
        if step + 3 < n:
            ahead = np.int64(order[step + 3])
            start, stop = ahead * k, (ahead + 1) * k
            if indptr is not None:
                start, stop = indptr[ahead], indptr[ahead + 1]
            for p in range(np.uint64(start), np.uint64(stop)):
                prefetch(coef, np.int64(indices[p]))
        i = np.int64(order[step])
        c, s = state[4 * i], state[4 * i + 1]
        if c == 0.0:
            continue
        start, stop = i * k, (i + 1) * k
        if indptr is not None:
            start, stop = indptr[i], indptr[i + 1]
        z = bias[0] + bias[1]
        for p in range(np.uint64(start), np.uint64(stop)):
            if data is None:
                z += coef[np.uint64(indices[p])]
            else:
                z += data[p] * coef[np.uint64(indices[p])]
        q = c * (state[4 * i + 3] * spread + bias_spread)
        low, high = z - q * (1.0 - s), z + q * s
        old = state[4 * i + 2]
        t = min(max(old, low), high)
        target = max(1e-2 * abs(z - old), 1e-7)
        share = s
        for _ in range(50):
            e = np.exp(-abs(t))
            share = 1.0 / (1.0 + e) if t >= 0 else e / (1.0 + e)
            miss = t - z + q * (share - s)
            if abs(miss) < target:
                break
            if miss > 0:
                high = t
            else:
                low = t
            t -= miss / (1.0 + q * share * (1.0 - share))
            if not (low < t < high):
                t = 0.5 * (low + high)
        state[4 * i + 1], state[4 * i + 2] = share, t
        change = c * (share - s)
        for p in range(np.uint64(start), np.uint64(stop)):
            if data is None:
                coef[np.uint64(indices[p])] -= change * spread
            else:
                coef[np.uint64(indices[p])] -= change * spread * data[p]
        bias[1] -= change * bias_spread


@compiled()
def dual_start(a: Floats, b: Floats, norms: Floats, z: Any, margin: float, state: Floats, u: Floats) -> None:
    """Each dual variable where margins z put it, or near the label that its weights stand for; off its boundary."""
    for i in nb.prange(a.size):
        c = a[i] + b[i]
        share = a[i] / c if c > 0 else 0.5
        if z is not None:
            share = 1.0 / (1.0 + np.exp(-z[i]))
        share = min(max(share, margin), 1.0 - margin)
        state[4 * i], state[4 * i + 1] = max(c, 0.0), share
        state[4 * i + 2], state[4 * i + 3] = np.log(share / (1.0 - share)), norms[i]
        u[i] = max(c, 0.0) * share - a[i]


@compiled()
def dual_sums(state: Floats, parts: Floats) -> None:
    """Sums of c (s log s + (1 - s) log(1 - s)) and of c s, from t = logit(s) so that s near 0 or 1 loses nothing."""
    n, threads = state.size // 4, parts.shape[0]
    for part in nb.prange(threads):
        entropy, mass = 0.0, 0.0
        for i in range(n * part // threads, n * (part + 1) // threads):
            t = state[4 * i + 2]
            e = np.exp(-abs(t))
            # s log s + (1-s) log(1-s) = -log(1 + e) - |t| e / (1 + e)
            entropy -= state[4 * i] * (np.log1p(e) + abs(t) * e / (1.0 + e))
            mass += state[4 * i] * state[4 * i + 1]
        parts[part, 0], parts[part, 1] = entropy, mass


@compiled()
def shifted_shares(z: Floats, state: Floats, shift: float, parts: Floats) -> None:
    """Sums of c sigmoid(z + shift), and of its derivative in the shift."""
    n, threads = state.size // 4, parts.shape[0]
    for part in nb.prange(threads):
        total, slope = 0.0, 0.0
        for i in range(n * part // threads, n * (part + 1) // threads):
            x = z[i] + shift
            e = np.exp(-abs(x))
            p = (1.0 if x >= 0 else e) / (1.0 + e)
            total += state[4 * i] * p
            slope += state[4 * i] * p * (1.0 - p)
        parts[part, 0], parts[part, 1] = total, slope
