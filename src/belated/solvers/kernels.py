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

from belated.typing import Floats, Ints, SmallInts

_AHEAD = 8  # rows
_NEAR = 4  # rows
# Sums may be reordered and divisions shared; infinities and NaN keep their meaning.
_FREE = {"contract", "arcp", "nsz", "reassoc"}
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


@nb.njit(cache=True, inline="always")
def _bits(count: int) -> int:
    bits = 0
    while count >> bits:
        bits += 1
    return bits


@nb.njit(cache=True, parallel=True)
def count_columns(indices: SmallInts, counts: SmallInts, sizes: Ints) -> None:
    """counts[0] = how often each column occurs; ``counts`` has a line of columns for each thread.

    sizes[b, t] = how many columns in the share of thread t have a count of b bits.
    """
    threads, n, d = counts.shape[0], indices.size, counts.shape[1]
    for t in nb.prange(threads):
        counts[t, :] = 0
        for p in range(n * t // threads, n * (t + 1) // threads):
            counts[t, np.uint64(indices[p])] += 1
    for t in nb.prange(threads):
        sizes[:, t] = 0
        for j in range(d * t // threads, d * (t + 1) // threads):
            for other in range(1, threads):
                counts[0, j] += counts[other, j]
            if counts[0, j]:
                sizes[_bits(counts[0, j]), t] += 1


@nb.njit(cache=True, parallel=True)
def order_columns(counts: SmallInts, places: Ints, columns: SmallInts) -> None:
    """Columns in the order of ``places`` (the next free one by bits and thread); each count becomes its column's place."""
    d, threads = counts.size, places.shape[1]
    for t in nb.prange(threads):
        for j in range(d * t // threads, d * (t + 1) // threads):
            if counts[j]:
                bits = _bits(counts[j])
                place = places[bits, t]
                places[bits, t] += 1
                columns[place], counts[j] = j, place


@nb.njit(cache=True, parallel=True)
def renumber(indices: SmallInts, place: SmallInts, out: SmallInts) -> None:
    for p in nb.prange(indices.size):
        out[p] = place[np.uint64(indices[p])]


@nb.njit(cache=True, parallel=True)
def field_norms(indices: SmallInts, k: int, norms: Floats) -> None:
    """Squared length of each row of fields: k, and 2 more for each pair of fields in one column."""
    for i in nb.prange(norms.size):
        pairs = 0
        for p in range(i * k, (i + 1) * k):
            for r in range(i * k, p):
                pairs += indices[p] == indices[r]
        norms[i] = k + 2 * pairs


@nb.njit(inline="always")
def _ahead(indptr: Any, indices: SmallInts, k: int, i: int, end: int, line: Floats, width: int) -> None:
    """Ask for what row i will need: ``width`` numbers of ``line`` for each of its columns."""
    if i < end:
        start, stop = i * k, (i + 1) * k
        if indptr is not None:
            start, stop = indptr[i], indptr[i + 1]
        for p in range(np.uint64(start), np.uint64(stop)):
            prefetch(line, width * np.int64(indices[p]))


@nb.njit(cache=True, parallel=True, fastmath=_FREE)
def margins(
    indptr: Any, indices: SmallInts, data: Any, k: int, coef: Floats, level: Floats, out: Floats, chunks: int
) -> None:
    """out_i = level + sum over row i of the weights, of which there are out.shape[1] in a run for each column."""
    n, m = out.shape
    for t in nb.prange(chunks):
        end = n * (t + 1) // chunks
        for i in range(n * t // chunks, end):
            _ahead(indptr, indices, k, i + _NEAR, end, coef, m)
            start, stop = i * k, (i + 1) * k
            if indptr is not None:
                start, stop = indptr[i], indptr[i + 1]
            if m == 2:
                first, second = level[0], level[1]
                for p in range(np.uint64(start), np.uint64(stop)):
                    x, j = 1.0 if data is None else data[p], np.uint64(2) * np.uint64(indices[p])
                    first += x * coef[j]
                    second += x * coef[j + np.uint64(1)]
                out[i, 0], out[i, 1] = first, second
            else:
                for r in range(m):
                    total = level[r]
                    for p in range(np.uint64(start), np.uint64(stop)):
                        x, j = 1.0 if data is None else data[p], np.uint64(m) * np.uint64(indices[p]) + np.uint64(r)
                        total += x * coef[j]
                    out[i, r] = total


@nb.njit(cache=True, parallel=True, fastmath=_FREE)
def pull(indptr: Any, indices: SmallInts, data: Any, k: int, rows: Floats, squared: bool, sums: Floats) -> None:
    """sums[0] = X' rows, or the same with squared values; ``sums`` has m numbers in a run for each column, a line a thread."""
    n, m, chunks = rows.shape[0], rows.shape[1], sums.shape[0]
    for t in nb.prange(chunks):
        line = sums[t]
        line[:] = 0.0
        end = n * (t + 1) // chunks
        for i in range(n * t // chunks, end):
            _ahead(indptr, indices, k, i + _NEAR, end, line, m)
            start, stop = i * k, (i + 1) * k
            if indptr is not None:
                start, stop = indptr[i], indptr[i + 1]
            for p in range(np.uint64(start), np.uint64(stop)):
                x = 1.0
                if data is not None:
                    x = data[p] * data[p] if squared else data[p]
                if m == 2:
                    j = np.uint64(2) * np.uint64(indices[p])
                    line[j] += x * rows[i, 0]
                    line[j + np.uint64(1)] += x * rows[i, 1]
                else:
                    for r in range(m):
                        line[np.uint64(m) * np.uint64(indices[p]) + np.uint64(r)] += x * rows[i, r]
    for column in nb.prange(sums.shape[1]):
        for t in range(1, chunks):
            sums[0, column] += sums[t, column]


@nb.njit(cache=True, parallel=True, fastmath=_FREE)
def logistic_pass(
    indptr: Any,
    indices: SmallInts,
    data: Any,
    k: int,
    coef: Floats,
    level: float,
    a: Floats,
    b: Floats,
    ridge: float,
    work: Floats,
    gradient: Floats,
    parts: Floats,
) -> None:
    """Costs (a + b) softplus(z) - a z plus ridge ||coef||^2 / 2 in one pass over the rows, with the gradient.

    A thread keeps each weight beside its part of the gradient, so that one line of the cache serves both. ``parts`` gets
    the cost and the gradient in the level.
    """
    n, chunks = a.size, work.shape[0]
    for t in nb.prange(chunks):
        line = work[t]
        for j in range(coef.size):
            line[2 * j], line[2 * j + 1] = coef[j], 0.0
        cost, slope = 0.0, 0.0
        for j in range(coef.size * t // chunks, coef.size * (t + 1) // chunks):
            cost += 0.5 * ridge * coef[j] * coef[j]
        end = n * (t + 1) // chunks
        for i in range(n * t // chunks, end):
            _ahead(indptr, indices, k, i + _NEAR, end, line, 2)
            start, stop = i * k, (i + 1) * k
            if indptr is not None:
                start, stop = indptr[i], indptr[i + 1]
            z = level
            for p in range(np.uint64(start), np.uint64(stop)):
                x = 1.0 if data is None else data[p]
                z += x * line[np.uint64(2) * np.uint64(indices[p])]
            c, e = a[i] + b[i], np.exp(-abs(z))
            cost += c * (np.log(1.0 + e) + max(z, 0.0)) - a[i] * z
            d = c * (1.0 if z >= 0 else e) / (1.0 + e) - a[i]
            slope += d
            for p in range(np.uint64(start), np.uint64(stop)):
                x = 1.0 if data is None else data[p]
                line[np.uint64(2) * np.uint64(indices[p]) + np.uint64(1)] += x * d
        parts[t, 0], parts[t, 1] = cost, slope
    for j in nb.prange(gradient.size):
        total = ridge * coef[j]
        for t in range(chunks):
            total += work[t, 2 * j + 1]
        gradient[j] = total


@nb.njit(cache=True)
def shuffle(order: SmallInts, seed: int) -> None:
    """A full random permutation: shuffling within blocks makes the dual method stall."""
    np.random.seed(seed)  # noqa: NPY002 (numba's own generator)
    for i in range(order.size - 1, 0, -1):
        j = np.random.randint(0, i + 1)  # noqa: NPY002
        order[i], order[j] = order[j], order[i]


@nb.njit(cache=True, fastmath={"contract", "arcp", "nsz"})
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


@nb.njit(cache=True, parallel=True)
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


@nb.njit(cache=True, parallel=True, fastmath=_FREE)
def dots(basis: Floats, used: int, slot: int, parts: Floats) -> None:
    """parts[t] adds up to the products of rows 0, slot and slot + 1 of ``basis`` with its first ``used`` rows."""
    chunks, d, block = parts.shape[0], basis.shape[1], 2048
    for t in nb.prange(chunks):
        parts[t] = 0.0
        end = d * (t + 1) // chunks
        for left in range(d * t // chunks, end, block):
            right = min(left + block, end)
            for r in range(used):
                first, second, third = 0.0, 0.0, 0.0
                for j in range(left, right):
                    x = basis[r, j]
                    first += x * basis[0, j]
                    second += x * basis[slot, j]
                    third += x * basis[slot + 1, j]
                parts[t, 0, r] += first
                parts[t, 1, r] += second
                parts[t, 2, r] += third


@nb.njit(cache=True, parallel=True)
def combine(basis: Floats, weights: Floats, out: Floats) -> None:
    """out = sum of weights times the first rows of ``basis``."""
    block = 2048
    for part in nb.prange((out.size + block - 1) // block):
        left, right = part * block, min((part + 1) * block, out.size)
        for j in range(left, right):
            out[j] = 0.0
        for r in range(weights.size):
            weight = weights[r]
            for j in range(left, right):
                out[j] += weight * basis[r, j]


@nb.njit(cache=True, parallel=True)
def move(theta: Floats, length: float, direction: Floats, unit: Floats, trial: Floats) -> None:
    """trial = theta + length * direction, which is in units of its own."""
    for j in nb.prange(theta.size):
        trial[j] = theta[j] + length * direction[j] * unit[j]


@nb.njit(cache=True, parallel=True)
def remember(direction: Floats, length: float, gradient: Floats, unit: Floats, basis: Floats, slot: int) -> None:
    """The step, the change of the scaled gradient, and the new scaled gradient, in rows slot, slot + 1 and 0."""
    for j in nb.prange(unit.size):
        now = gradient[j] * unit[j]
        basis[slot, j], basis[slot + 1, j] = length * direction[j], now - basis[0, j]
        basis[0, j] = now
