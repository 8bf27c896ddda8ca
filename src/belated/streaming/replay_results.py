"""What a replay found: scores of every method at every step, and the table made of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from belated.typing import Floats

START, ORACLE_NAME = "pretrained", "oracle"
_MEASURES = ("log_loss", "roc_auc", "pr_auc")


@dataclass(frozen=True)
class ReplaySettings:
    """Durations in days."""

    warmup: float
    step: float
    wait: float
    horizon: float
    refit: float | None
    methods: tuple[str, ...]
    model: str


@dataclass(frozen=True, repr=False)
class Replay:
    """Results of all steps; :meth:`summary` has the table.

    Attributes
    ----------
    times : list of str
        When each step's rows began to arrive.
    rows, positive : arrays of shape (steps,)
    scores : dict of str to dict of str to array
        Of each method the log loss, both areas and the mean prediction at each step; NaN where an area means nothing.
    counts : dict
        What the stream counted.
    seconds : dict of str to float
        What each method took, learning and predicting.
    """

    settings: ReplaySettings
    times: list[str]
    rows: Floats
    positive: Floats
    scores: dict[str, dict[str, Floats]]
    counts: dict[str, int]
    seconds: dict[str, float]

    def __repr__(self) -> str:
        return f"Replay({len(self.scores)} methods over {len(self.times)} steps from {self.times[0]}, {int(self.rows.sum())} rows tested)"

    def mean(self, name: str, measure: str) -> float:
        """Over steps, weighted by rows; steps in which a measure means nothing do not count."""
        values = self.scores[name][measure]
        known = np.isfinite(values)
        return float(np.average(values[known], weights=self.rows[known])) if known.any() else float("nan")

    def summary(self) -> dict[str, Any]:
        """Plain data, as ``--json`` writes it."""
        methods = {name: self._row(name) for name in self.scores}
        best = min(
            (n for n in methods if n not in (START, ORACLE_NAME)), key=lambda n: methods[n]["log_loss"], default=None
        )
        return {
            "settings": asdict(self.settings),
            "rows": int(self.rows.sum()),
            "rate": float(self.positive.sum() / self.rows.sum()),
            "methods": methods,
            "best": best,
            "steps": {"time": self.times, "rows": self.rows.tolist(), "positive": self.positive.tolist()},
            "counts": self.counts,
        }

    def _row(self, name: str) -> dict[str, Any]:
        means = {measure: _number(self.mean(name, measure)) for measure in _MEASURES}
        predicted = float((self.scores[name]["prediction"] * self.rows).sum())
        gains = {measure: self._improvement(name, measure) for measure in _MEASURES}
        return {
            **means,
            "calibration_ratio": predicted / float(self.positive.sum()) if self.positive.any() else None,
            "relative_improvement": gains["log_loss"],
            "relative_improvements": gains,
            "seconds": self.seconds.get(name),
            "log_losses": [_number(v) for v in self.scores[name]["log_loss"]],
            "predictions": [_number(v) for v in self.scores[name]["prediction"]],
        }

    def _improvement(self, name: str, measure: str) -> float | None:
        """The share of the way from the model that all start from to the oracle."""
        if not {START, ORACLE_NAME} <= set(self.scores):
            return None
        start, end = self.mean(START, measure), self.mean(ORACLE_NAME, measure)
        return _number((self.mean(name, measure) - start) / (end - start)) if end != start else None


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
