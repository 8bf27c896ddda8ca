"""A delay law in one file: a hazard that falls with age, lambda0(t) = 1/(1 + t), so Lambda0(t) = log(1 + t).

It has no parameters of its own; the model learns the factor exp(h). Written against an array namespace it runs on NumPy and
on torch alike. A law with shared parameters also writes ``shared_gradient``; see Weibull in ``risks/delay_laws.py``.
"""

from __future__ import annotations

from typing import Any

from belated.arrays import namespace
from belated.risks.delay_laws import DelayLaw


class Lomax(DelayLaw):
    def evaluate(self, prepared: Any, shared: Any) -> tuple[Any, Any]:
        cumulated = namespace(prepared).log1p(prepared)
        return -cumulated, cumulated
