"""Several risks with one margin each that share nothing: a model can solve them one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.arrays import namespace
from belated.risks.base import EMPTY, Risk
from belated.risks.links import Link
from belated.typing import Bools, Floats, Ints


class SeparateRisks(Risk):
    """The sum of one-margin risks, each on a margin of its own."""

    def __init__(self, parts: Sequence[Risk], link: Link) -> None:
        self.parts = parts
        self.link = link
        self.n_margins = len(parts)
        self.intercepts = (True,) * len(parts)
        self.convex = all(part.convex for part in parts)

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        found = [part.value_and_gradient(margins[:, k : k + 1]) for k, part in enumerate(self.parts)]
        return sum(one[0] for one in found), namespace(margins).concat([one[1] for one in found], axis=1), shared

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        columns = [part.curvature(margins[:, k : k + 1]) for k, part in enumerate(self.parts)]
        return namespace(margins).concat(columns, axis=1)

    def kinds(self) -> Ints:
        columns = np.stack([part.kinds() for part in self.parts], axis=1)
        found = np.unique(columns, axis=0, return_inverse=True)[1]
        return np.where((columns < 0).all(axis=1), -1, found.ravel())

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        return np.sum([part.row_costs(margins[:, k : k + 1]) for k, part in enumerate(self.parts)], axis=0)

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        return SeparateRisks([part.take(rows, factor) for part in self.parts], self.link)

    def start(self) -> tuple[Floats, Floats]:
        return np.concatenate([part.start()[0] for part in self.parts]), EMPTY
