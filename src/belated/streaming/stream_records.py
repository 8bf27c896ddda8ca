"""Records: what a stream gives a method to learn, in the order in which it became known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belated.typing import Bools, Ints

Kinds = NDArray[np.int16]

# What a record is about. Methods with several ages count them from 0.
FIRST, LATE, SECOND = 0, 1, 2
# Rows at the horizon, for auxiliary models: positive by the window, positive after it, negative.
MATURE_EARLY, MATURE_LATE, MATURE_NEGATIVE = 10_001, 10_002, 10_003


@dataclass(frozen=True)
class Records:
    """n records, ordered by time.

    Attributes
    ----------
    X : FieldMatrix or array
        The features of the row that each record is about.
    time : array of shape (n,)
        When it became known, in microseconds on the stream's clock.
    row : array of shape (n,)
        The number of its row, in order of arrival.
    label : array of shape (n,)
        Whether the row was positive then.
    delay : array of shape (n,)
        In microseconds, where the row was positive then; else the largest number there is.
    kind : array of shape (n,)
        Which of a row's records it is: a number that its method understands.
    """

    X: Any
    time: Ints
    row: Ints
    label: Bools
    delay: Ints
    kind: Kinds

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, some: Any) -> Records:
        return Records(
            self.X[some], self.time[some], self.row[some], self.label[some], self.delay[some], self.kind[some]
        )

    @property
    def nbytes(self) -> int:
        features = self.X.indices if hasattr(self.X, "indices") else self.X
        return int(
            features.nbytes + sum(part.nbytes for part in (self.time, self.row, self.label, self.delay, self.kind))
        )

    @property
    def is_mature(self) -> Bools:
        """Which of them are for auxiliary models alone."""
        return self.kind >= MATURE_EARLY

    @classmethod
    def joined(cls, parts: list[Records]) -> Records:
        """One after another, as they are."""
        from belated.features.field_matrix import FieldMatrix

        if len(parts) == 1:
            return parts[0]
        first = parts[0].X
        if isinstance(first, FieldMatrix):
            X: Any = FieldMatrix._trusted(np.concatenate([part.X.indices for part in parts]), first.n_columns)
            X.encoder = first.encoder
        else:
            X = np.concatenate([part.X for part in parts])
        names = ("time", "row", "label", "delay", "kind")
        return cls(X, *(np.concatenate([getattr(part, name) for part in parts]) for name in names))
