"""What NumPy and torch share, so that a cost is written once and runs on both.

:func:`namespace` gives the functions of the Python array API standard for the library that an array comes from (through
array-api-compat). The other functions here are what costs need and the standard lacks, or has only in a slower form.
Torch is never imported here: an array that comes from it brings it along.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np
from array_api_compat import array_namespace
from array_api_compat import numpy as numpy_namespace
from scipy.special import expit

Part = TypeVar("Part")
LARGEST_EXPONENT = 300.0
_WHOLE = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, np.ndarray, np.ufunc)  # not taken apart

__all__ = [
    "LARGEST_EXPONENT",
    "at_least",
    "at_most",
    "between",
    "column_sums",
    "dot",
    "filled",
    "is_numpy_array",
    "look_up",
    "moved",
    "namespace",
    "safe_exp",
    "sigmoid",
    "softplus",
    "sums_by",
    "where",
]


def is_numpy_array(x: Any) -> bool:
    """Whether NumPy's functions take it: an array of its own, or one that hands them on to where its rows are."""
    return isinstance(x, np.ndarray) or hasattr(x, "__array_function__")


def namespace(x: Any) -> Any:
    """The functions of the library that an array comes from."""
    return numpy_namespace if is_numpy_array(x) else array_namespace(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return expit(x) if is_numpy_array(x) else namespace(x).sigmoid(x)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), for any x without overflow."""
    if is_numpy_array(x):
        return np.logaddexp(0.0, x)
    xp = namespace(x)
    return xp.logaddexp(x, xp.zeros_like(x))


def at_least(x: Any, low: float) -> Any:
    """The larger of x and ``low``."""
    return np.maximum(x, low) if is_numpy_array(x) else x.clamp(min=low)


def at_most(x: Any, top: float) -> Any:
    """The smaller of x and ``top``."""
    return np.minimum(x, top) if is_numpy_array(x) else x.clamp(max=top)


def between(x: Any, low: float, high: float) -> Any:
    """x, cut to the range from ``low`` to ``high``."""
    return np.clip(x, low, high) if is_numpy_array(x) else x.clamp(low, high)


def where(condition: Any, values: Any, other: float) -> Any:
    """Values where a condition holds, and one number elsewhere."""
    return np.where(condition, values, other) if is_numpy_array(values) else values.where(condition, other)


def safe_exp(x: Any) -> Any:
    """exp(x) with x cut, so that a wild step of a line search stays finite, and so does a product of two."""
    return namespace(x).exp(at_most(x, LARGEST_EXPONENT))


def filled(size: int, value: float, like: Any) -> Any:
    """An array (size,) of one value, in the library, on the device and of the type of another."""
    return np.full(size, value, dtype=like.dtype) if is_numpy_array(like) else like.new_full((size,), value)


def dot(x: Any, y: Any) -> Any:
    """The inner product of two vectors.

    NumPy's own goes to BLAS, whose threads go on waiting busily and hold up the compiled passes; einsum does not.
    """
    return np.einsum("i,i->", x, y) if is_numpy_array(x) else x @ y


def column_sums(x: Any) -> Any:
    """The sum of each column of a matrix; of a tall one, NumPy's einsum is faster than its sum."""
    return np.einsum("ij->j", x) if is_numpy_array(x) else x.sum(0)


def sums_by(index: Any, size: int, *values: Any) -> list[Any]:
    """For each array of values (n,): its sums over the rows of each index 0, ..., size - 1, an array (size,).

    >>> sums_by(np.array([0, 2, 2]), 3, np.array([1.0, 2.0, 3.0]))[0].tolist()
    [1.0, 0.0, 5.0]
    """
    if is_numpy_array(index):
        return [np.bincount(index, weights=value, minlength=size) for value in values]
    xp = namespace(index)
    # A product with 0/1 columns. Adding at indices would be slow on a GPU, where thousands of threads meet at a few sums.
    places = xp.astype(xp.arange(size, device=index.device)[:, None] == index[None, :], values[0].dtype)
    return list((places @ xp.stack(values, axis=1)).T)


def look_up(values: Any, index: Any) -> Any:
    """``values[index]``; where the rows of the index are elsewhere, there."""
    there = getattr(index, "look_up_in", None)
    return values[index] if there is None else there(values)


def moved(part: Part, convert: Callable[[Any], Any], kind: Any = np.ndarray) -> Part:
    """A copy of an object (and of the parts of belated in it) whose arrays have gone through ``convert``."""
    if isinstance(part, kind):
        return convert(part)
    if isinstance(part, tuple | list):
        return type(part)(moved(item, convert, kind) for item in part)
    if isinstance(part, dict):
        return type(part)({name: moved(value, convert, kind) for name, value in part.items()})
    if not hasattr(part, "__dict__") or isinstance(part, _WHOLE):
        return part
    found = copy(part)
    found.__dict__.update({name: moved(value, convert, kind) for name, value in vars(part).items()})
    return found
