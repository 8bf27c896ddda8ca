"""GrowingColumn: an array that grows at its end and shrinks at its beginning, as rows come and go."""

from __future__ import annotations

from typing import Any

import numpy as np


class GrowingColumn:
    """Rows ``first`` to ``first + len``, in one array that is moved seldom: adding and dropping rows costs next to nothing."""

    def __init__(self, values: Any, first: int = 0) -> None:
        self._data, self._begin, self._end, self.first = values, 0, len(values), first

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def values(self) -> Any:
        """All rows, as a view."""
        return self._data[self._begin : self._end]

    def add(self, more: Any) -> None:
        if self._end + len(more) > len(self._data):
            room = np.empty((max(2 * (len(self) + len(more)), 1024), *self._data.shape[1:]), dtype=self._data.dtype)
            room[: len(self)] = self.values
            self._begin, self._end, self._data = 0, len(self), room
        self._data[self._end : self._end + len(more)] = more
        self._end += len(more)

    def drop(self, below: int) -> None:
        """Forget the rows before number ``below``."""
        count = min(max(below - self.first, 0), len(self))
        self._begin, self.first = self._begin + count, self.first + count
        if len(self._data) > 4096 and len(self) < len(self._data) // 4:
            self._data = self.values.copy()
            self._begin, self._end = 0, len(self._data)

    @property
    def nbytes(self) -> int:
        return int(self._data.nbytes)
