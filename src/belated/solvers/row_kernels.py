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

from belated.compiling import njit
from belated.threads import compiled
from belated.typing import Floats, SmallInts

_NEAR = 4  # rows ahead of the current one, whose weights are fetched
_FAR = 24  # entries ahead of the current one, whose word of bits is
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


@intrinsic
def ones_in(typing_context: Any, word: Any) -> Any:
    """How many bits of a word are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@compiled()
def mark_columns(indices: SmallInts, marks: Any) -> None:
    """Set a bit for each column that occurs; ``marks`` has a line of words for each part of the entries."""
    parts, n = marks.shape[0], indices.size
    for t in nb.prange(parts):
        marks[t, :] = np.uint64(0)
        for p in range(n * t // parts, n * (t + 1) // parts):
            j = np.uint64(indices[p])
            marks[t, j >> np.uint64(6)] |= np.uint64(1) << (j & np.uint64(63))


@njit()
def list_columns(words: Any, columns: SmallInts) -> None:
    """The columns whose bits are set in ``words[:, 0]``; ``words[:, 1]`` gets how many come before each word."""
    found = 0
    for w in range(words.shape[0]):
        word, words[w, 1] = words[w, 0], found
        while word:
            lowest = word & (~word + np.uint64(1))
            columns[found] = 64 * w + ones_in(lowest - np.uint64(1))
            word ^= lowest
            found += 1


@compiled()
def rank_columns(indices: SmallInts, words: Any, ranks: SmallInts, counts: Any) -> None:
    """The rank of each entry's column among those that occur, and how often each does.

    ``words`` are as :func:`list_columns` leaves them; ``counts`` has a line for each part of the entries. Bits and counts
    stay in the cache, where a table of all columns would not.
    """
    parts, n = counts.shape[0], indices.size
    flat = words.reshape(-1)
    for t in nb.prange(parts):
        counts[t, :] = 0
        end = n * (t + 1) // parts
        for p in range(n * t // parts, end):
            if p + _FAR < end:
                prefetch(flat, 2 * (np.int64(indices[p + _FAR]) >> 6))
            j = np.uint64(indices[p])
            below = (np.uint64(1) << (j & np.uint64(63))) - np.uint64(1)
            rank = words[j >> np.uint64(6), 1] + ones_in(words[j >> np.uint64(6), 0] & below)
            ranks[p] = rank
            counts[t, rank] += 1


@compiled()
def renumber(ranks: SmallInts, place: SmallInts) -> None:
    """Each rank becomes its place."""
    for p in nb.prange(ranks.size):
        ranks[p] = place[np.uint64(ranks[p])]


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


@njit(fastmath=FREE)
def second_moments(indptr: Any, indices: SmallInts, data: Floats, weight: Floats, out: Floats) -> None:
    """M with M + M' = X' diag(weight) X: each pair of a row's entries is added once, on either side."""
    for i in range(weight.size):
        w = weight[i]
        for p in range(indptr[i], indptr[i + 1]):
            x, line = w * data[p], indices[p]
            for r in range(indptr[i], p):
                out[line, indices[r]] += x * data[r]
            out[line, line] += 0.5 * x * data[p]
