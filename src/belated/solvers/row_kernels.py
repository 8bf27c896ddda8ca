"""Compiled passes over sparse rows.

Rows are either fields (``indptr`` None: row i holds ``indices[i * k : (i + 1) * k]``, every value 1) or CSR (``indptr``,
``data``). Numba compiles a version for each, and drops the branches on None. Indices stay int32: widening them doubles
the traffic that bounds these loops. Sums are float64, and cut into parts by :mod:`belated.threads`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from belated.threads import compiled
from belated.typing import Floats, Ints, SmallInts

_NEAR = 4  # rows ahead of the current one, whose weights are fetched
# The compiler may reorder sums and share divisions, but not assume that there are no infinities or NaN.
FREE = {"contract", "arcp", "nsz", "reassoc"}


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


@compiled()
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


@compiled()
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


@compiled()
def renumber(indices: SmallInts, place: SmallInts, out: SmallInts) -> None:
    for p in nb.prange(indices.size):
        out[p] = place[np.uint64(indices[p])]


@compiled()
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


@compiled(fastmath=FREE)
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


@compiled(fastmath=FREE)
def transpose_dot(
    indptr: Any, indices: SmallInts, data: Any, k: int, rows: Floats, squared: bool, sums: Floats
) -> None:
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


@compiled(fastmath=FREE)
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


@nb.njit(cache=True, fastmath=FREE)
def second_moments(indptr: Any, indices: SmallInts, data: Floats, weight: Floats, out: Floats) -> None:
    """M with M + M' = X' diag(weight) X: each pair of a row's entries is added once, on either side."""
    for i in range(weight.size):
        w = weight[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, line = w * data[p], indices[p]
            for r in range(indptr[i], p):
                out[line, indices[r]] += x * data[r]
            out[line, line] += 0.5 * x * data[p]
