"""Rows of a matrix, as a solver sees them: products with weights, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from belated.features.field_matrix import FieldMatrix
from belated.solvers import row_kernels
from belated.solvers.centring import far_centre, without_constants
from belated.threads import parts_of
from belated.typing import Bools, Floats, Ints, SmallInts

_SAMPLE = 20_000  # rows from which the curvature is estimated


@dataclass(frozen=True)
class PlainRows:
    """Rows of a dense array or a narrow CSR matrix, through NumPy and SciPy.

    ``center`` is what was taken off columns far from zero, None where there are none. Of a dense array it was taken off
    the matrix itself, of a CSR matrix it is taken off in products.
    """

    matrix: Any
    center: Floats | None = None
    columns: ClassVar[None] = None
    wide: ClassVar[bool] = False
    device: ClassVar[None] = None
    row_sum: ClassVar[None] = None

    @classmethod
    def of(cls, matrix: Any, centred: bool = True) -> PlainRows:
        """With columns far from zero centred, where that is asked."""
        center = far_centre(matrix) if centred else None
        if center is None:
            return cls(matrix)
        return cls(*without_constants(matrix, center)) if sparse.issparse(matrix) else cls(matrix - center, center)

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def n_columns(self) -> int:
        return self.matrix.shape[1]

    @property
    def _to_subtract(self) -> Floats | None:
        return self.center if sparse.issparse(self.matrix) else None

    @property
    def size(self) -> int:
        return self.matrix.size

    def margins(self, coef: Floats, intercept: Floats) -> Floats:
        """Margins (n, m) under weights (m, columns) and intercepts (m,)."""
        # A CSR matrix takes one vector at a time faster than several at once.
        product = (
            np.stack([self.matrix @ line for line in coef], axis=1)
            if sparse.issparse(self.matrix)
            else self.matrix @ coef.T
        )
        return product + _lowered(intercept, coef, self._to_subtract)

    def transpose_dot(self, rows: Floats, squared: bool = False) -> Floats:
        """X' rows of shape (m, columns), from rows (n, m); with the squares of X's values where asked."""
        matrix = self.matrix
        if squared:
            matrix = matrix.power(2) if sparse.issparse(matrix) else matrix**2
        turned = matrix.T
        sums = np.stack([turned @ column for column in rows.T]) if sparse.issparse(matrix) else (turned @ rows).T
        return _centred(sums, rows, self._to_subtract, self._spread if squared else None)

    def second_moments(self, weight: Floats) -> tuple[Floats, Floats]:
        """X' diag(weight) X, and X' weight."""
        if not sparse.issparse(self.matrix):
            weighted = self.matrix * weight[:, None]
            return weighted.T @ self.matrix, weighted.sum(axis=0)
        near, far, dense = self._split
        moments, border = np.zeros((self.shape[1], self.shape[1])), np.asarray(near.T @ weight)
        row_kernels.second_moments(near.indptr, near.indices, near.data, weight, moments)
        moments += moments.T  # each pair of entries was added on one side
        if len(far):
            beside = dense * weight[:, None]
            moments[:, far] = near.T @ beside
            moments[far] = moments[:, far].T
            moments[np.ix_(far, far)] = beside.T @ dense
            border[far] = beside.sum(axis=0)
        return moments, border

    @cached_property
    def _split(self) -> tuple[sparse.csr_array, Ints, Floats]:
        """A CSR matrix without its columns far from zero, which these are, and they themselves, centred and dense."""
        if self._to_subtract is None:
            return self.matrix, np.zeros(0, dtype=np.intp), np.zeros((len(self), 0))
        far = np.flatnonzero(self._to_subtract)
        keep = np.ones(self.shape[1])
        keep[far] = 0.0
        near = (self.matrix @ sparse.diags_array(keep)).tocsr()
        return near, far, self.matrix[:, far].toarray() - self._to_subtract[far]

    @cached_property
    def _spread(self) -> Floats:
        """The mean square of each column, where that is far from zero."""
        _, far, dense = self._split
        spread = np.zeros(self.shape[1])
        spread[far] = np.einsum("ij,ij->j", dense, dense) / len(dense)
        return spread

    def __len__(self) -> int:
        return self.matrix.shape[0]

    def to_csr(self) -> sparse.csr_array:
        return self.matrix

    @cached_property
    def least_spread(self) -> tuple[int, float]:
        """The column of a dense array that varies least without being constant, and its standard deviation."""
        if sparse.issparse(self.matrix):
            return 0, np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            spread = self.matrix.std(axis=0)
        spread = np.where(np.ptp(self.matrix, axis=0) > 0, spread, np.inf)
        column = int(np.argmin(spread))
        return column, float(spread[column])

    @cached_property
    def largest_entry(self) -> tuple[int, float]:
        """The column with the largest entry by size, counted from 0, and that entry's size."""
        size = np.asarray(
            abs(self.matrix).max(axis=0).toarray() if sparse.issparse(self.matrix) else abs(self.matrix).max(axis=0)
        )
        column = int(np.argmax(size))
        return column, float(size.ravel()[column])

    @cached_property
    def sample(self) -> tuple[PlainRows, int]:
        """Every so many rows, for estimates, and how many rows each of them stands for."""
        step = max(-(-len(self) // _SAMPLE), 1)
        return self if step == 1 else PlainRows(self.matrix[::step], self.center), step

    def take(self, rows: Bools | Ints) -> PlainRows:
        return PlainRows(self.matrix[rows], self.center)

    def with_groups(self, groups: Ints, count: int) -> PlainRows:
        """The same rows with one 0/1 column more for each group."""
        n = len(groups)
        center = _longer(self.center, count)
        one_hot = sparse.csr_array((np.ones(n), (np.arange(n), groups)), shape=(n, count))
        if sparse.issparse(self.matrix):
            return PlainRows(sparse.hstack([self.matrix, one_hot], format="csr"), center)
        return PlainRows(np.hstack([self.matrix, one_hot.toarray()]), center)


@dataclass(frozen=True)
class SparseRows:
    """Rows of a wide sparse matrix, with only the columns that occur, the most frequent first.

    Hot weights then lie side by side and stay in the cache, and every vector of the solver is as short as it can be.
    Rows of fields (``indptr`` and ``data`` None, k entries each) or of a CSR matrix.

    ``columns`` gives the original column of each compacted one, ``n_columns`` is how many columns there were. ``center`` is
    taken off columns far from zero in products, None where there are none. ``counts`` says how many entries each column has,
    where that is known.
    """

    n: int
    k: int
    indices: SmallInts
    indptr: Any
    data: Any
    columns: SmallInts
    n_columns: int
    center: Floats | None = None
    counts: Ints | None = None
    wide: ClassVar[bool] = True
    device: ClassVar[None] = None

    @classmethod
    def of(cls, matrix: FieldMatrix | sparse.csr_array) -> SparseRows:
        """All columns, as they are."""
        columns = np.zeros(0, dtype=np.int32)
        if isinstance(matrix, FieldMatrix):
            return cls(*matrix.indices.shape, matrix.indices.ravel(), None, None, columns, matrix.n_columns)
        indices, indptr = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
        data = None if (matrix.data == 1.0).all() else matrix.data
        return cls(matrix.shape[0], 0, indices, indptr, data, columns, matrix.shape[1])

    @classmethod
    def compact(cls, matrix: FieldMatrix | sparse.csr_array, centred: bool = True) -> SparseRows:
        rows = cls.of(matrix)
        center = far_centre(matrix) if centred and rows.data is not None else None
        if center is not None:
            matrix, center = without_constants(matrix, center)
            rows = cls.of(matrix)
        parts = parts_of(rows.size)
        marks = np.empty((parts, rows.n_columns // 64 + 1), dtype=np.uint64)
        row_kernels.mark_columns(rows.indices, marks)
        words = np.zeros((marks.shape[1], 2), dtype=np.uint64)
        np.bitwise_or.reduce(marks, axis=0, out=words[:, 0])
        known = np.empty(np.bitwise_count(words[:, 0]).sum(), dtype=np.int32)
        row_kernels.list_columns(words, known)
        indices, counts_by_part = np.empty_like(rows.indices), np.empty((parts, len(known)), dtype=np.int32)
        row_kernels.rank_columns(rows.indices, words, indices, counts_by_part)
        counts = counts_by_part.sum(axis=0)
        order = most_frequent_first(counts)
        columns, place = known[order], np.empty(len(known), dtype=np.int32)
        place[order] = np.arange(len(known), dtype=np.int32)
        row_kernels.renumber(indices, place)
        center = None if center is None else center[columns]
        return replace(rows, indices=indices, columns=columns, center=center, counts=counts[order])

    @cached_property
    def by_number(self) -> tuple[SmallInts, SmallInts]:
        """The columns that occur in increasing order, and the compacted place of each."""
        return in_increasing_order(self.columns)

    def __len__(self) -> int:
        return self.n

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, len(self.columns)

    @property
    def size(self) -> int:
        return self.indices.size

    @property
    def row_sum(self) -> int | None:
        """What the entries of every row add up to, None where that differs or is not known."""
        return self.k if self.indptr is None else None

    @property
    def layout(self) -> tuple[Any, ...]:
        return self.indptr, self.indices, self.data, self.k

    def margins(self, coef: Floats, intercept: Floats) -> Floats:
        """Margins (n, m) under weights (m, columns) and intercepts (m,)."""
        if not coef.any():  # as at the start of a fit
            return np.tile(intercept, (self.n, 1))
        out = np.empty((self.n, len(coef)))
        level = _lowered(intercept, coef, self.center)
        row_kernels.margins(*self.layout, np.ascontiguousarray(coef.T).ravel(), level, out, 64)
        return out

    def transpose_dot(self, rows: Floats, squared: bool = False) -> Floats:
        """X' rows of shape (m, columns), from rows (n, m); with the squares of X's values where asked."""
        m, columns = rows.shape[1], len(self.columns)
        if self.data is None and self.counts is not None and len(rows) and (rows == rows[0]).all():
            return rows[:1].T * self.counts  # as of the curvature at the start of a fit
        sums = np.empty((parts_of(self.size), columns * m))
        row_kernels.transpose_dot(*self.layout, np.ascontiguousarray(rows), squared, sums)
        return _centred(sums[0].reshape(columns, m).T, rows, self.center, self._spread if squared else None)

    @cached_property
    def _spread(self) -> Floats:
        """The mean square of each column that is far from zero, 0 for the others."""
        if self.center is None:
            return np.zeros(len(self.columns))
        values, center = self.data, self.center
        off = np.bincount(self.indices, (values - center[self.indices]) ** 2, len(center))
        absent = self.n - np.bincount(self.indices, minlength=len(center))
        return np.where(center != 0, off + absent * center**2, 0.0) / self.n

    def logistic_pass(
        self, theta: Floats, weights: tuple[Floats, Floats], l2: float, work: Floats
    ) -> tuple[float, Floats]:
        """Value and gradient of a logistic risk with penalty at theta = (weights, perhaps an intercept), in one pass."""
        d = len(self.columns)
        coef, level = theta[:d], float(theta[d]) if len(theta) > d else 0.0
        gradient, parts = np.empty(len(theta)), np.empty((len(work), 2))
        row_kernels.logistic_pass(*self.layout, coef, level, *weights, 2.0 * l2, work, gradient[:d], parts)
        value, gradient[d:] = parts.sum(axis=0)
        return float(value), gradient

    @cached_property
    def norms(self) -> Floats:
        """Squared length of each row; of fields in very many columns as if none of a row shared one.

        The dual method only scales its steps by this, and its gap does not depend on it.
        """
        if self.indptr is None and self.n_columns >= 1000 * self.k**2:
            return np.full(self.n, float(self.k))
        if self.indptr is None:
            norms = np.empty(self.n)
            row_kernels.field_norms(self.indices, self.k, norms)
            return norms
        matrix = self.to_csr()
        matrix.data **= 2
        return np.asarray(matrix.sum(axis=1))

    def take(self, rows: Bools | Ints) -> SparseRows:
        """Some of the rows, with the same columns."""
        if self.indptr is None:
            kept = self.indices.reshape(self.n, self.k)[rows]
            return replace(self, n=len(kept), indices=kept.ravel(), counts=None)
        matrix = self.to_csr()[rows]
        data = None if self.data is None else matrix.data
        indptr = matrix.indptr.astype(np.int64)
        return replace(self, n=matrix.shape[0], indices=matrix.indices, indptr=indptr, data=data, counts=None)

    def with_groups(self, groups: Ints, count: int) -> SparseRows:
        """The same rows with one 0/1 column more for each group."""
        extra = (len(self.columns) + groups).astype(np.int32)
        columns = np.concatenate([self.columns, self.n_columns + np.arange(count, dtype=np.int32)])
        if self.indptr is None:
            indices = np.column_stack([self.indices.reshape(self.n, self.k), extra]).ravel()
            return SparseRows(self.n, self.k + 1, indices, None, None, columns, self.n_columns + count)
        ends = self.indptr[1:]
        data = None if self.data is None else np.insert(self.data, ends, 1.0)
        indptr = self.indptr + np.arange(self.n + 1)
        indices, center = np.insert(self.indices, ends, extra), _longer(self.center, count)
        return SparseRows(self.n, 0, indices, indptr, data, columns, self.n_columns + count, center)

    least_spread: ClassVar[tuple[int, float]] = (0, np.inf)  # of sparse columns it says how often they occur

    @cached_property
    def largest_entry(self) -> tuple[int, float]:
        """The column with the largest entry by size, counted from 0, and that entry's size."""
        if self.data is None:
            return int(self.columns[0]), 1.0
        place = int(np.argmax(np.abs(self.data)))
        return int(self.columns[self.indices[place]]), float(abs(self.data[place]))

    def to_csr(self) -> sparse.csr_array:
        """The compacted rows as CSR."""
        indptr = np.arange(0, self.size + 1, self.k) if self.indptr is None else self.indptr
        # SciPy may sort a matrix in place, so it gets a copy of the values.
        data = np.ones(self.size) if self.data is None else self.data.copy()
        return sparse.csr_array((data, self.indices, indptr), shape=self.shape)


def most_frequent_first(counts: Ints) -> Ints:
    """The order of columns by the number of bits of their counts: a finer one would not help the cache."""
    return np.argsort(-np.frexp(counts)[1].astype(np.int8), kind="stable")


def in_increasing_order(columns: SmallInts) -> tuple[SmallInts, SmallInts]:
    """Columns sorted, and the place of each before."""
    # They come as a few increasing runs, one for each number of bits, which a stable sort merges quickly.
    places = np.argsort(columns, kind="stable").astype(np.int32)
    return columns[places], places


def _lowered(intercept: Floats, coef: Floats, center: Floats | None) -> Floats:
    """Intercepts for products with a matrix from which ``center`` has not been taken off."""
    return intercept if center is None else intercept - coef @ center


def _centred(sums: Floats, rows: Floats, center: Floats | None, spread: Floats | None) -> Floats:
    """Sums over rows of a matrix (m, columns), as if ``center`` had been taken off it.

    Of squares, the mean square ``spread`` of a centred column stands in for each of its rows: the difference of two
    large sums would be rounding.
    """
    if center is None:
        return sums
    total = rows.sum(axis=0)[:, None]
    return sums - total * center if spread is None else np.where(center != 0, total * spread, sums)


def _longer(center: Floats | None, count: int) -> Floats | None:
    return None if center is None else np.append(center, np.zeros(count))
