"""KeyMap: from the key of a row to its number, in two columns and no objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.compiling import njit
from belated.features.hashing import mix
from belated.typing import Ints

_SMALLEST = 1024


@njit(inline="always")
def _place(key: Any, mask: Any) -> Any:
    return np.int64(mix(np.uint64(key)) & np.uint64(mask))


@njit()
def _put(keys: Ints, numbers: Ints, new: Ints, first: int, gone: int, found: Ints) -> int:
    """Number new keys from ``first`` on. ``found`` gets the number of one that is there already, and -1 where it is new."""
    mask, count = keys.size - 1, 0
    for i in range(new.size):
        at = _place(new[i], mask)
        while numbers[at] >= 0 and keys[at] != new[i]:
            at = (at + 1) & mask
        if numbers[at] >= gone and keys[at] == new[i]:
            found[i] = numbers[at]
            continue
        keys[at], numbers[at], found[i] = new[i], first + count, -1
        count += 1
    return count


@njit()
def _get(keys: Ints, numbers: Ints, asked: Ints, gone: int, found: Ints) -> None:
    mask = keys.size - 1
    for i in range(asked.size):
        at = _place(asked[i], mask)
        while numbers[at] >= 0 and keys[at] != asked[i]:
            at = (at + 1) & mask
        found[i] = numbers[at] if numbers[at] >= gone else -1


class KeyMap:
    """Whole numbers (n,) to the numbers of their rows, by open addressing; rows below ``gone`` count as absent."""

    def __init__(self) -> None:
        self._clear(_SMALLEST)

    def _clear(self, size: int) -> None:
        self._keys, self._numbers = np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
        self._used = 0

    def put(self, new: Ints, first: int, gone: int, held: Ints) -> Ints:
        """Add keys as rows ``first``, ``first + 1``, ...; of those that are there already, the row, else -1.

        ``held`` are the keys of the rows from ``gone`` to ``first``, from which the map is made anew where it is too small.
        """
        if self._used + len(new) > 0.7 * len(self._keys):
            size = max(_SMALLEST, 1 << int(np.ceil(np.log2(2 * (len(held) + len(new))))))
            self._clear(size)
            self._used = _put(self._keys, self._numbers, held, gone, gone, np.empty(len(held), dtype=np.int64))
        found = np.empty(len(new), dtype=np.int64)
        self._used += _put(self._keys, self._numbers, new, first, gone, found)
        return found

    def get(self, asked: Ints, gone: int) -> Ints:
        """The row of each key, -1 where there is none."""
        found = np.empty(len(asked), dtype=np.int64)
        _get(self._keys, self._numbers, asked, gone, found)
        return found

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._numbers.nbytes
