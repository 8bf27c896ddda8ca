"""A linear model of rows on a cluster: the objective is the sum of what the local one is on each partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from belated.cluster.base import Cluster, Kept, Part, Reduced
from belated.cluster.sharded import Sharded, add_up, by_rows, here, merge_weights
from belated.features.cluster_table import ClusterTable, learn_encoder
from belated.features.encoder import TableEncoder
from belated.features.field_matrix import FieldMatrix
from belated.models.linear_objective import DENSE_BLOCK, LinearObjective
from belated.risks.base import Risk
from belated.solvers.centring import FAR, with_zeros
from belated.solvers.preconditioner import Preconditioner
from belated.solvers.rows import PlainRows, SparseRows, in_increasing_order, most_frequent_first
from belated.solvers.stopping import Solution
from belated.tables.frames import open_table
from belated.typing import Bools, Floats, SmallInts


@dataclass(frozen=True)
class ClusterRows:
    """Rows of a matrix on a cluster, as a solver sees them. ``rows`` stands for those of each partition."""

    rows: Sharded
    n_columns: int
    columns: SmallInts | None  # of wide data, the original column of each one that occurs
    width: int
    center: Floats | None
    row_sum: int | None
    largest_entry: tuple[int, float]
    least_spread: tuple[int, float]
    device: None = None

    @classmethod
    def of(cls, table: ClusterTable, encoder: TableEncoder | None, centred: bool) -> ClusterRows:
        """Encode rows, once; all partitions have the same columns in the same order."""
        matrix: Sharded = by_rows(_matrix, table.rows, encoder).kept()
        n_columns, wide, fields = _of_first(add_up(_kind, matrix))
        center, idle, entry, spread = (
            (None, None, (0, 1.0), (0, np.inf)) if fields else _moments(matrix, n_columns, centred)
        )
        columns = None
        if wide:
            found, counts = merge_weights(add_up(_occurring, matrix))
            columns = found[most_frequent_first(counts)].astype(np.int32)
            center = None if center is None else center[columns]
        rows = by_rows(_design, matrix, columns, center, idle).kept()
        width = n_columns if columns is None else len(columns)
        row_sum = fields if fields else None
        return cls(rows, n_columns, columns, width, center, row_sum, entry, spread)

    @property
    def cluster(self) -> Cluster:
        return self.rows.cluster

    @property
    def wide(self) -> bool:
        return self.columns is not None

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.width

    @property
    def size(self) -> int:
        return 0  # passes are the workers' own

    @cached_property
    def by_number(self) -> tuple[SmallInts, SmallInts]:
        """The columns that occur in increasing order, and the place of each."""
        assert self.columns is not None
        return in_increasing_order(self.columns)

    def take(self, rows: Any) -> ClusterRows:
        return replace(self, rows=by_rows(_take, self.rows, rows))

    def with_groups(self, groups: Any, count: int) -> ClusterRows:
        added = self.n_columns + np.arange(count, dtype=np.int32)
        return replace(
            self,
            rows=by_rows(_with_groups, self.rows, groups, count),
            n_columns=self.n_columns + count,
            columns=None if self.columns is None else np.concatenate([self.columns, added]),
            width=self.width + count,
            center=None if self.center is None else np.append(self.center, np.zeros(count)),
            row_sum=None if self.row_sum is None else self.row_sum + 1,
        )

    def margins(self, coef: Floats, intercept: Floats) -> Sharded:
        return by_rows(_margins, self.rows, coef, intercept).kept()

    def objective(self, risk: Risk, l2: float, fit_intercept: bool) -> ClusterObjective:
        return ClusterObjective(self, risk, l2, fit_intercept)


def encode_on_cluster(model: Any, table: ClusterTable, weight: Any) -> ClusterRows:
    """Learn a linear model's encoding of a table, and encode it."""
    model.encoder_, model._hashed = None, table.hashed
    if not table.hashed:
        encoder = TableEncoder() if model.encoder is None else model.encoder
        model.encoder_ = learn_encoder(TableEncoder(**encoder.get_params(deep=False)), table, weight)
        model.encoder_.set_output(transform="default")
    return ClusterRows.of(table, model.encoder_, model.fit_intercept)


class ClusterObjective(LinearObjective):
    """The same function of theta, its value and gradient added up over partitions; the penalty is added here."""

    rows: ClusterRows  # type: ignore[assignment]

    def __init__(self, rows: ClusterRows, risk: Risk, l2: float, fit_intercept: bool) -> None:
        super().__init__(rows, risk, l2, fit_intercept)  # type: ignore[arg-type]

    @cached_property
    def _problem(self) -> Kept:
        """Rows and risk of each partition, as a local objective without penalty."""
        value = (self.rows.rows, self.risk, 0 in self.free)
        return self.rows.cluster.keep(_open_problem, value)

    def _total(self, work: Any, theta: Any) -> Any:
        return self.rows.cluster.total(work, (self._problem, theta))

    def value_and_gradient(self, theta: Any) -> tuple[float, Any]:
        value, gradient = self._total(_value_and_gradient, theta)
        coef, _, shared = self.unpack(theta)
        size, more = coef.size, self.rows.cluster.partitions - 1
        if len(shared):  # a penalty on them is in the value of every partition
            rough, d_rough = self.risk.penalty(shared)
            value -= more * rough
            gradient[len(theta) - len(shared) :] -= more * d_rough
        gradient[:size] += 2.0 * self.l2 * theta[:size]
        return value + self.l2 * float(theta[:size] @ theta[:size]), gradient

    def margins(self, theta: Any) -> Any:
        coef, intercept, _ = self.unpack(theta)
        return self.rows.margins(coef, intercept)

    def solve(self, start: Floats | None, tol: float, max_iter: int) -> Solution:
        first = self.start() if start is None else start
        if self.rows.wide:
            return self._solve_long(first, tol, max_iter)
        return self._solve_narrow(first, tol, max_iter)

    def diagonal(self, theta: Any) -> Any:
        return self._diagonal(*self._total(_diagonal, theta))

    def precondition(self, theta: Floats) -> Preconditioner:
        return self._preconditioner(*self._total(_curvatures, theta))


# On a worker.


def _matrix(table: Any, encoder: TableEncoder | None) -> Any:
    if encoder is None:
        return table
    return encoder._transform(open_table(table, "the table", may_be_empty=True))


def _kind(matrix: Any) -> list[tuple[int, bool, int]]:
    fields = isinstance(matrix, FieldMatrix)
    width = matrix.n_columns if fields else matrix.shape[1]
    return [(width, fields or (sparse.issparse(matrix) and width > DENSE_BLOCK), matrix.n_fields if fields else 0)]


def _of_first(found: list[Any]) -> Any:
    assert len(set(found)) == 1, "partitions differ in their columns"
    return found[0]


def _occurring(matrix: Any) -> list[tuple[Any, Any]]:
    rows = SparseRows.compact(matrix, centred=False)
    return [(rows.columns, rows.counts)]


def _moments(
    matrix: Sharded, n_columns: int, centred: bool
) -> tuple[Floats | None, Bools | None, tuple[int, float], Any]:
    """The centre of columns far from zero, which sparse ones of these are constant, the largest entry, and the column that varies least."""
    rows, sums, highest, lowest, dense = add_up(_sums, matrix, n_columns)
    highest, lowest = highest.value, lowest.value
    constant = highest == lowest
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(constant, highest, sums / rows)
        variance = add_up(_squares, matrix, mean) / rows
        far = np.abs(mean) > FAR * np.sqrt(variance)
    size = np.maximum(np.abs(highest), np.abs(lowest))
    column = int(np.argmax(size))
    entry = column, float(size[column])
    spread = np.where(constant, np.inf, np.sqrt(variance))
    least = (int(np.argmin(spread)), float(spread.min())) if dense else (0, np.inf)
    if not (centred and far.any()):
        return None, None, entry, least
    if dense:
        return np.where(far, mean, 0.0), None, entry, least
    center = np.where(far & ~constant, mean, 0.0)
    return center if center.any() else None, far & constant, entry, least


def _sums(matrix: Any, n_columns: int) -> Any:
    """Rows, the sum, the highest and the lowest value of each column, and whether the matrix is dense."""
    n = matrix.shape[0]
    if not n:
        return None
    if not sparse.issparse(matrix):
        ends = Reduced(np.maximum, matrix.max(axis=0)), Reduced(np.minimum, matrix.min(axis=0))
        return n, matrix.sum(axis=0), *ends, 1
    high, low = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    np.maximum.at(high, matrix.indices, matrix.data)
    np.minimum.at(low, matrix.indices, matrix.data)
    sums, absent = (
        np.bincount(matrix.indices, matrix.data, n_columns),
        np.bincount(matrix.indices, minlength=n_columns) < n,
    )
    high, low = np.where(absent, np.maximum(high, 0.0), high), np.where(absent, np.minimum(low, 0.0), low)
    return n, sums, Reduced(np.maximum, high), Reduced(np.minimum, low), 0


def _squares(matrix: Any, mean: Floats) -> Floats:
    n = matrix.shape[0]
    if not sparse.issparse(matrix):
        return ((matrix - mean) ** 2).sum(axis=0)
    count = np.bincount(matrix.indices, minlength=len(mean))
    off = np.bincount(matrix.indices, (matrix.data - mean[matrix.indices]) ** 2, len(mean))
    return off + (n - count) * mean**2


def _design(
    matrix: Any, columns: SmallInts | None, center: Floats | None, idle: Bools | None
) -> PlainRows | SparseRows:
    if idle is not None and idle.any():
        matrix = with_zeros(matrix, idle)
    if columns is None:
        if center is None or sparse.issparse(matrix):
            return PlainRows(sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix, center)
        return PlainRows(matrix - center, center)
    rows = SparseRows.of(matrix)
    place = np.empty(rows.n_columns, dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    indices = place[rows.indices]
    counts = np.bincount(indices, minlength=len(columns)) if rows.data is None else None
    return replace(rows, indices=indices, columns=columns, center=center, counts=counts)


def _take(rows: Any, keep: Any) -> Any:
    return rows.take(keep)


def _with_groups(rows: Any, groups: Any, count: int) -> Any:
    return rows.with_groups(groups, count)


def _margins(rows: Any, coef: Floats, intercept: Floats) -> Any:
    return rows.margins(coef, intercept)


def _open_problem(part: Part, value: Any) -> LinearObjective | None:
    rows, risk, intercept = here(value, part)
    return LinearObjective(rows, risk, 0.0, intercept)


def _value_and_gradient(part: Part, value: Any) -> tuple[float, Any]:
    problem, theta = value
    return part.kept[problem.number].value_and_gradient(theta)


def _diagonal(part: Part, value: Any) -> Any:
    problem, theta = value
    return part.kept[problem.number].diagonal_parts(theta)


def _curvatures(part: Part, value: Any) -> Any:
    problem, theta = value
    return part.kept[problem.number].curvatures(theta)
