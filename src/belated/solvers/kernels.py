"""Compiled passes over sparse rows.

Rows are either fields (``indptr`` None: row i holds ``indices[i * k : (i + 1) * k]``, every value 1) or CSR (``indptr``,
``data``). Numba compiles a version for each, and drops the branches on None. Indices stay int32: widening them doubles
the traffic that bounds these loops. Sums are float64 and each thread owns one fixed share of the rows, so a result
depends on the number of threads only through rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_AHEAD = 8  # rows
_MANY = 300_000  # entries


@contextmanager
def threads(entries: int) -> Iterator[None]:
    """As many threads as there are for long passes, one for short ones, which would spend their time on waking others."""
    usual = nb.get_num_threads()
    nb.set_num_threads(usual if entries >= _MANY else 1)
    try:
        yield
    finally:
        nb.set_num_threads(usual)


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for ``array[index]`` to be brought into the cache; the processor goes on meanwhile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        item = cgutils.get_item_pointer(context, builder, signature.args[0], struct, [arguments[1]], wraparound=False)
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(call, [builder.bitcast(item, pointer), word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@nb.njit(cache=True, parallel=True)
def count_columns(indices: NDArray[np.int32], counts: NDArray[np.int32]) -> None:
    """counts[0] = how often each column occurs; ``counts`` has a line of columns for each thread."""
    threads, n = counts.shape[0], indices.size
    for t in nb.prange(threads):
        counts[t, :] = 0
        for p in range(n * t // threads, n * (t + 1) // threads):
            counts[t, indices[p]] += 1
    for j in nb.prange(counts.shape[1]):
        for t in range(1, threads):
            counts[0, j] += counts[t, j]


@nb.njit(cache=True, parallel=True)
def renumber(indices: NDArray[np.int32], place: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    for p in nb.prange(indices.size):
        out[p] = place[indices[p]]


@nb.njit(cache=True, parallel=True)
def field_norms(indices: NDArray[np.int32], k: int, norms: Floats) -> None:
    """Squared length of each row of fields: k, and 2 more for each pair of fields in one column."""
    for i in nb.prange(norms.size):
        pairs = 0
        for p in range(i * k, (i + 1) * k):
            for r in range(i * k, p):
                pairs += indices[p] == indices[r]
        norms[i] = k + 2 * pairs


@nb.njit(cache=True, parallel=True)
def margins(
    indptr: Any, indices: NDArray[np.int32], data: Any, k: int, coef: Floats, intercept: float, out: Floats
) -> None:
    """out_i = intercept + sum of coef over row i."""
    for i in nb.prange(out.size):
        start, stop = i * k, (i + 1) * k
        if indptr is not None:
            start, stop = indptr[i], indptr[i + 1]
        total = intercept
        for p in range(start, stop):
            if data is None:
                total += coef[indices[p]]
            else:
                total += data[p] * coef[indices[p]]
        out[i] = total


@nb.njit(cache=True, parallel=True)
def pull(indptr: Any, indices: NDArray[np.int32], data: Any, k: int, row: Floats, squared: bool, sums: Floats) -> None:
    """sums[0] = X' row, or the same with squared values; ``sums`` has a line of columns for each thread."""
    threads, n = sums.shape[0], row.size
    for t in nb.prange(threads):
        sums[t, :] = 0.0
        for i in range(n * t // threads, n * (t + 1) // threads):
            start, stop = i * k, (i + 1) * k
            if indptr is not None:
                start, stop = indptr[i], indptr[i + 1]
            value = row[i]
            for p in range(start, stop):
                if data is None:
                    sums[t, indices[p]] += value
                elif squared:
                    sums[t, indices[p]] += value * data[p] * data[p]
                else:
                    sums[t, indices[p]] += value * data[p]
    for j in nb.prange(sums.shape[1]):
        for t in range(1, threads):
            sums[0, j] += sums[t, j]


@nb.njit(cache=True)
def shuffle(order: NDArray[np.int32], seed: int) -> None:
    """A full random permutation: shuffling within blocks makes the dual method stall."""
    np.random.seed(seed)  # noqa: NPY002 (numba's own generator)
    for i in range(order.size - 1, 0, -1):
        j = np.random.randint(0, i + 1)  # noqa: NPY002
        order[i], order[j] = order[j], order[i]


@nb.njit(cache=True, fastmath={"contract", "arcp", "nsz"})
def dual_epoch(
    indptr: Any,
    indices: NDArray[np.int32],
    data: Any,
    k: int,
    order: NDArray[np.int32],
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
            for p in range(start, stop):
                prefetch(coef, np.int64(indices[p]))
        i = np.int64(order[step])
        c, s = state[4 * i], state[4 * i + 1]
        if c == 0.0:
            continue
        start, stop = i * k, (i + 1) * k
        if indptr is not None:
            start, stop = indptr[i], indptr[i + 1]
        z = bias[0] + bias[1]
        for p in range(start, stop):
            if data is None:
                z += coef[indices[p]]
            else:
                z += data[p] * coef[indices[p]]
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
        for p in range(start, stop):
            if data is None:
                coef[indices[p]] -= change * spread
            else:
                coef[indices[p]] -= change * spread * data[p]
        bias[1] -= change * bias_spread


@nb.njit(cache=True, parallel=True)
def dual_start(a: Floats, b: Floats, norms: Floats, margin: float, state: Floats, u: Floats) -> None:
    """Each dual variable near the label that its weights stand for, ``margin`` away from its boundary."""
    for i in nb.prange(a.size):
        c = a[i] + b[i]
        share = min(max(a[i] / c, margin), 1.0 - margin) if c > 0 else 0.5
        state[4 * i], state[4 * i + 1] = max(c, 0.0), share
        state[4 * i + 2], state[4 * i + 3] = np.log(share / (1.0 - share)), norms[i]
        u[i] = c * share - a[i]


@nb.njit(cache=True, parallel=True)
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


@nb.njit(cache=True, parallel=True)
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


@nb.njit(cache=True, parallel=True)
def dots(basis: Floats, used: int, vectors: Floats, parts: Floats) -> None:
    """parts[t] adds up to the products of ``vectors`` (v, d) with the first ``used`` rows of ``basis``."""
    threads, d = parts.shape[0], vectors.shape[1]
    block = 2048
    for t in nb.prange(threads):
        parts[t] = 0.0
        begin, end = d * t // threads, d * (t + 1) // threads
        for left in range(begin, end, block):
            right = min(left + block, end)
            for r in range(used):
                for v in range(vectors.shape[0]):
                    total = 0.0
                    for j in range(left, right):
                        total += basis[r, j] * vectors[v, j]
                    parts[t, v, r] += total


@nb.njit(cache=True, parallel=True)
def combine(basis: Floats, used: int, weights: Floats, out: Floats) -> None:
    """out = sum of weights times the first ``used`` rows of ``basis``."""
    block = 2048
    for part in nb.prange((out.size + block - 1) // block):
        left, right = part * block, min((part + 1) * block, out.size)
        for j in range(left, right):
            out[j] = 0.0
        for r in range(used):
            weight = weights[r]
            for j in range(left, right):
                out[j] += weight * basis[r, j]
