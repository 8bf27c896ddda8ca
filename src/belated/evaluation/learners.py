"""What a method may ask for while it builds its risk: a fit of something else first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belated.data.labels import Labels
from belated.methods.base import Method, Taught
from belated.models.base import Model
from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from belated.evaluation.teachers import Teachers


@dataclass(frozen=True)
class EngineLearner:
    """Auxiliary fits by the engine itself on the rows it has encoded, and teachers; both see the rows in ``known`` alone."""

    engine: Model
    encoded: Any
    teachers: Teachers | None = None
    known: Bools | None = None

    def __call__(self, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        if self.known is not None:
            inside = self.known[rows]
            risk = risk.take(inside, len(inside) / max(inside.sum(), 1))
            rows, groups = rows & self.known, groups[inside]
        return self.engine.auxiliary_margin(self.encoded, risk, rows, groups, new_groups)

    def teach(self, method: Method, labels: Labels, known: Bools | None = None, l2: float | None = None) -> Taught:
        assert self.teachers is not None, "a method with a teacher was given no rows to teach it with"
        if self.known is not None:
            known = self.known if known is None else known & self.known
        return self.teachers.teach(method, labels, known, l2)
