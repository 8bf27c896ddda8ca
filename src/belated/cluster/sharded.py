"""Arrays whose rows are elsewhere: NumPy's functions, on partitions.

What is done to such an array row by row is written down and not done yet. What needs all rows (a sum, a maximum, counts, quantiles) is done
then, on every partition, and added up: the result is an ordinary number or array. So a method that is written for arrays of NumPy works on both, as long as it
looks up by :func:`belated.arrays.look_up` and makes arrays by :func:`numpy.zeros_like` and its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from belated.arrays import moved
from belated.cluster.base import Cluster, Kept, Part, Reduced
from belated.cluster.selection import order_statistics, weighted_quantiles_of

_serials = count()


class Node:
    """A function of other nodes and of plain values, not computed yet."""

    __slots__ = ("arguments", "function", "keywords")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords


class Leaf:
    """What a partition keeps; ``item`` is the part of it that is meant, where it is a tuple."""

    __slots__ = ("item", "kept")

    def __init__(self, kept: Kept, item: int | None = None) -> None:
        self.kept = kept
        self.item = item


class Sharded(NDArrayOperatorsMixin):
    """An array of shape (n, ...) whose rows are on a cluster."""

    __array_priority__ = 1000

    def __init__(self, cluster: Cluster, node: Node | Leaf) -> None:
        self.cluster = cluster
        self.node = node
        self._length: int | None = None
        self._serial = next(_serials)

    def __reduce__(self) -> Any:
        """Sent to a worker it is what to compute there."""
        return Elsewhere, (self.node,)

    # Row by row.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "__call__" and keywords.get("out") is None:
            return by_rows(ufunc, *inputs, **keywords)
        if method == "reduce" and keywords.get("axis", 0) in (0, None):
            return self._reduced_by(ufunc, keywords.get("initial"))
        return NotImplemented

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function in _OF_ALL:
            return _OF_ALL[function](*arguments, **keywords)
        if function in _ROW_BY_ROW:
            return by_rows(function, *arguments, **keywords)
        raise TypeError(
            f"np.{function.__name__} is not there for rows on a cluster: what it gives on each partition would not be what it gives of all rows."
        )

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | np.integer):
            if key != 0:
                raise IndexError("of rows on a cluster only the first has a place.")
            return self._first()
        return by_rows(_getitem, self, key)

    def astype(self, kind: Any, copy: bool = True) -> Sharded:
        return by_rows(_astype, self, kind)

    def look_up_in(self, values: Any) -> Sharded:
        """``values[self]``."""
        return by_rows(_getitem, values, self)

    @property
    def T(self) -> Any:
        return _Turned(self)

    # Of all rows.

    def __len__(self) -> int:
        if self._length is None:
            self._length = int(self.cluster.total(_length_on, self.node))
        return self._length

    def __bool__(self) -> bool:
        raise ValueError("the truth of many rows: say any() or all().")

    def __iter__(self) -> Any:
        raise TypeError("rows on a cluster do not come one by one: say x.sum(), np.isin(x, ...) or x.collect().")

    def __contains__(self, _: Any) -> bool:
        self.__iter__()
        return False

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("these rows are on a cluster, and this would bring them all here.")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self),)

    def _reduced(self, combine: Any, work: Callable[[Any], Any]) -> Any:
        found = self.cluster.total(_reduce_on, (self.node, combine, work))
        return None if found is None else found.value

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Any:
        if axis == 1:  # of each row
            return by_rows(np.sum, self, axis=1, keepdims=keepdims)
        return self.cluster.total(_sum_on, (self.node, axis))

    def mean(self, axis: int | None = None) -> Any:
        return self.sum(axis) / len(self) if axis != 1 else by_rows(np.mean, self, axis=1)

    def max(self, initial: Any = None) -> Any:
        return self._reduced_by(np.maximum, initial)

    def min(self, initial: Any = None) -> Any:
        return self._reduced_by(np.minimum, initial)

    def _reduced_by(self, ufunc: Any, initial: Any) -> Any:
        found = self._reduced(ufunc, partial(_if_any, ufunc.reduce))
        if found is None and initial is None:
            raise ValueError("there are no rows.")
        return found if initial is None else initial if found is None else ufunc(found, initial)

    def any(self) -> bool:
        return bool(self._reduced(np.logical_or, partial(_if_any, np.any)))

    def all(self) -> bool:
        found = self._reduced(np.logical_and, partial(_if_any, np.all))
        return True if found is None else bool(found)

    def _first(self) -> Any:
        found = self.cluster.total(_first_on, self.node)
        if not found:
            raise IndexError("there are no rows.")
        return min(found)[1]

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Sharded):  # both have rows: a sum over them
            return (self * other).sum()
        return by_rows(np.matmul, self, other)

    def kept(self) -> Sharded:
        """The same, computed once and kept on the partitions."""
        if isinstance(self.node, Leaf):
            return self
        return Sharded(self.cluster, Leaf(self.cluster.keep(_value_on, self.node)))

    def collect(self) -> Any:
        """The rows, brought here, in the order of partitions."""
        found = self.cluster.total(_rows_on, self.node)
        return np.concatenate([rows for _, rows in sorted(found, key=lambda pair: pair[0])])

    def tobytes(self) -> bytes:
        """Something that is the same for no other array."""
        return repr(self._serial).encode()


class _Turned:
    """The transpose of a matrix of rows: its product with rows is a sum over them."""

    def __init__(self, matrix: Sharded) -> None:
        self.matrix = matrix

    def __matmul__(self, other: Any) -> Any:
        return self.matrix.cluster.total(_product_on, (self.matrix.node, other))


class Elsewhere:
    """A :class:`Sharded` that has been sent to a worker."""

    def __init__(self, node: Node | Leaf) -> None:
        self.node = node


def by_rows(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """``function(...)``, where each row of its result depends on the same row of the arguments; at once unless rows are elsewhere.

    Arguments may be objects that hold such arrays. A function with several results gives a tuple only through :func:`several`.
    """
    cluster = _cluster_of((arguments, keywords))
    if cluster is None:
        return function(*arguments, **keywords)
    return Sharded(cluster, Node(function, arguments, keywords))


def several(number: int, function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """The same for a function with so many results, whose rows may be others than those of the arguments."""
    cluster = _cluster_of(arguments)
    if cluster is None:
        return tuple(function(*arguments))
    kept = cluster.keep(_value_on, Node(function, arguments, {}))
    return tuple(Sharded(cluster, Leaf(kept, item)) for item in range(number))


def row_numbers(rows: Any) -> Any:
    """The number of each row: 0, 1, ...; on a cluster, within its partition."""
    return by_rows(_numbered, rows)


def _numbered(rows: Any) -> Any:
    return np.arange(len(rows))


def _cluster_of(value: Any) -> Cluster | None:
    found: list[Cluster] = []

    def note(array: Sharded) -> Sharded:
        found.append(array.cluster)
        return array

    moved(value, note, Sharded)
    return found[0] if found else None


# On a worker.


def here(value: Any, part: Part, memo: dict[int, Any] | None = None) -> Any:
    """The value of a node on a partition, or an object with all arrays in it as they are there."""
    memo = {} if memo is None else memo
    if isinstance(value, Elsewhere | Sharded):
        value = value.node
    if isinstance(value, Leaf):
        found = part.kept[value.kept.number]
        return found if value.item is None else found[value.item]
    if not isinstance(value, Node):
        return moved(value, lambda one: here(one, part, memo), (Elsewhere, Sharded, Node, Leaf))
    key = id(value)
    if key not in memo:
        arguments = [here(one, part, memo) for one in value.arguments]
        keywords = {name: here(one, part, memo) for name, one in value.keywords.items()}
        memo[key] = value.function(*arguments, **keywords)
    return memo[key]


def _value_on(part: Part, node: Any) -> Any:
    return here(node, part)


def _rows_on(part: Part, node: Any) -> list[Any]:
    return [(part.index, here(node, part))]


def _first_on(part: Part, node: Any) -> list[Any]:
    rows = here(node, part)
    return [(part.index, rows[0])] if len(rows) else []


def _length_on(part: Part, node: Any) -> int:
    return len(here(node, part))


def _sum_on(part: Part, value: Any) -> Any:
    node, axis = value
    rows = here(node, part)
    return rows.sum() if axis is None else rows.sum(axis=axis)


def _reduce_on(part: Part, value: Any) -> Reduced | None:
    node, combine, work = value
    found = work(here(node, part))
    return None if found is None else Reduced(combine, found)


def _if_any(work: Callable[[Any], Any], rows: Any) -> Any:
    """Of no rows there is nothing to say."""
    return work(rows) if len(rows) else None


def _product_on(part: Part, value: Any) -> Any:
    matrix, other = (here(one, part) for one in value)
    return matrix.T @ other


def _work_on(part: Part, value: Any) -> Any:
    function, arguments = value
    return function(*here(arguments, part))


def _getitem(rows: Any, key: Any) -> Any:
    return rows[key]


def _astype(rows: Any, kind: Any) -> Any:
    return rows.astype(kind)


def add_up(function: Callable[..., Any], *arguments: Any) -> Any:
    """The sum over partitions of a function of their rows; at once where the rows are here."""
    cluster = _cluster_of(arguments)
    return function(*arguments) if cluster is None else cluster.total(_work_on, (function, arguments))


# NumPy's functions of all rows.


def weights_by_value(values: Any, weights: Any) -> list[tuple[Any, Any]]:
    """Each value that occurs, and the weight of the rows that have it: a list, which adds up over partitions."""
    found, code = np.unique(values, return_inverse=True)
    return [(found, np.bincount(code, weights, len(found)))]


def merge_weights(found: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The same of all rows."""
    (merged,) = weights_by_value(*(np.concatenate(part) for part in zip(*found, strict=True)))
    return merged


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if not minlength:
        minlength = int(np.max(x)) + 1
    return add_up(np.bincount, x, weights, minlength)


def _einsum(what: str, *arrays: Any) -> Any:
    assert what in ("i,i->", "ij->j"), what
    return add_up(np.einsum, what, *arrays)


def _quantile(values: Sharded, levels: Any, *, weights: Any = None, method: str = "linear") -> Any:
    if method == "linear":
        assert weights is None
        place = np.asarray(levels) * (len(values) - 1)
        below = np.floor(place).astype(np.int64)
        low, high = np.split(ranked(values, [*below.ravel(), *np.ceil(place).astype(np.int64).ravel()]), 2)
        return (low + (high - low) * (place - below).ravel()).reshape(np.shape(levels))
    assert method == "inverted_cdf", method
    weights = np.ones_like(values, dtype=np.float64) if weights is None else weights
    sorted_rows = values.cluster.keep(_value_on, Node(_sorted_with_weights, (values, weights), {}))
    return weighted_quantiles_of(values.cluster, sorted_rows, levels)


def _sorted_with_weights(values: Any, weights: Any) -> tuple[Any, Any]:
    order = np.argsort(values, kind="stable")
    return values[order], np.concatenate([[0.0], np.cumsum(weights[order])])


def _unique(x: Sharded) -> Any:
    return x._reduced(np.union1d, np.unique)


def ranked(values: Any, ranks: Any) -> Any:
    """The values of these ranks among all, counted from 0."""
    if not isinstance(values, Sharded):
        return np.partition(values, sorted(set(ranks)))[ranks] if len(ranks) else np.zeros(0)
    ones = np.ones_like(values, dtype=np.float64)
    sorted_rows = values.cluster.keep(_value_on, Node(_sorted_with_weights, (values, ones), {}))
    return order_statistics(values.cluster, sorted_rows, np.asarray(ranks) + 1.0)


def _average(x: Any, weights: Any = None) -> float:
    return float(x.mean()) if weights is None else float((x * weights).sum() / weights.sum())


def _variance(x: Any) -> float:
    return float(((x - x.mean()) ** 2).mean())


# NumPy's functions whose results have a row for each row, which depends on no other.
_ROW_BY_ROW = {
    *(
        np.where,
        np.clip,
        np.isin,
        np.interp,
        np.nan_to_num,
        np.round,
        np.around,
        np.isclose,
        np.searchsorted,
        np.digitize,
    ),
    *(
        np.zeros_like,
        np.ones_like,
        np.full_like,
        np.empty_like,
        np.copy,
        np.column_stack,
        np.concatenate,
        np.take,
        np.select,
    ),
}


_OF_ALL: dict[Any, Callable[..., Any]] = {
    np.average: _average,
    np.mean: lambda x, **how: x.mean(**how),
    np.var: _variance,
    np.std: lambda x: _variance(x) ** 0.5,
    np.median: lambda x: float(_quantile(x, 0.5)),
    np.percentile: lambda x, q: _quantile(x, np.asarray(q) / 100.0),
    np.count_nonzero: lambda x: int((x != 0).sum()),
    np.bincount: _bincount,
    np.einsum: _einsum,
    np.quantile: _quantile,
    np.unique: _unique,
    np.sum: lambda x, **how: x.sum(**how),
    np.max: lambda x, **how: x.max(**how),
    np.min: lambda x, **how: x.min(**how),
    np.any: lambda x: x.any(),
    np.all: lambda x: x.all(),
    np.shape: lambda x: x.shape,
}
