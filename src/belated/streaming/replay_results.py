"""What a replay found: scores of every method at every step, and the table made of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from belated.data.durations import DAY, in_words
from belated.evaluation.intervals import ratio_interval
from belated.methods import METHODS
from belated.typing import Floats, Ints

START, ORACLE_NAME = "pretrained", "oracle"
_MEASURES = ("log_loss", "roc_auc", "pr_auc")
_ENOUGH = 8  # weeks
_FEW = 50  # positives, or negatives


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
    begins : array of shape (steps,)
        The same in microseconds since the end of the warm-up.
    rows, positive : arrays of shape (steps,)
    scores : dict of str to dict of str to array
        Of each method the log loss, both areas and the mean prediction at each step; NaN where an area means nothing.
    counts : dict
        What the stream counted.
    seconds : dict of str to float
        What each method took, learning and predicting.
    notes : list of str
        What a reader should know: learning that failed, say.
    """

    settings: ReplaySettings
    times: list[str]
    begins: Ints
    rows: Floats
    positive: Floats
    scores: dict[str, dict[str, Floats]]
    counts: dict[str, int]
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)

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
            "verdict": self._verdict(methods, best),
            "steps": {
                "time": self.times,
                "day": (self.begins / DAY).tolist(),
                "rows": self.rows.tolist(),
                "positive": self.positive.tolist(),
            },
            "counts": self.counts,
            "notes": self._notes(),
        }

    def _verdict(self, methods: dict[str, Any], best: str | None) -> str:
        """One sentence, with an interval from how days differ."""
        if best is None:
            return "Only the model that all start from, and the oracle, were replayed."
        text = f"{best} has a log loss of {methods[best]['log_loss']:.4f}"
        if len(methods) > 3:
            text += f", the lowest of {len(methods) - 2} (and the lowest of several is a little better than it will be)"
        text += f"; the model that all start from would have given {methods[START]['log_loss']:.4f}"
        gain, unit = self.gain_interval(best, START)
        if gain is not None:
            text += f" (95% interval of the difference {gain[0]:+.4f} to {gain[1]:+.4f}, from how {unit} differ)"
        text += f", knowing all labels at once {methods[ORACLE_NAME]['log_loss']:.4f}."
        refitted = [name for name in methods if name in METHODS]
        on_stream = [name for name in methods if name not in (START, ORACLE_NAME, *refitted)]
        if refitted and on_stream:
            one, other = (min(names, key=lambda n: methods[n]["log_loss"]) for names in (on_stream, refitted))
            gain, _ = self.gain_interval(one, other)
            better = round(methods[other]["log_loss"] - methods[one]["log_loss"], 4)
            clear = gain is not None and gain[0] * gain[1] > 0
            word = "does not clearly differ from" if not clear else "is better than" if better > 0 else "is worse than"
            how, sign = ("lower", 1.0) if better >= 0 else ("higher", -1.0)
            by = "" if gain is None else " (95% interval {:+.4f} to {:+.4f})".format(*sorted(sign * v for v in gain))
            every = in_words(self.settings.refit or 1.0).removeprefix("1 ")
            text += f" The best on the stream ({one}) {word} {other} fitted again every {every}: its log loss is {how} by {abs(better):.4f}{by}."
        return text

    def _notes(self) -> list[str]:
        found = list(self.notes)
        positive, rows = int(self.positive.sum()), int(self.rows.sum())
        if min(positive, rows - positive) < _FEW:
            found.insert(
                0,
                f"Too little to go by: {rows:,} rows were scored, {positive:,} of them positive. The order of methods is mostly chance.",
            )
        if not self._spans and {START, ORACLE_NAME} <= set(self.scores):
            found.append(
                "Knowing all labels at once would not clearly have beaten the first model, so improvements, which are shares of that difference, mean nothing and are left out."
            )
        return found

    @cached_property
    def _spans(self) -> bool:
        """Whether the oracle is clearly better than the model that all start from."""
        gain, _ = self.gain_interval(ORACLE_NAME, START)
        return gain is not None and gain[0] > 0

    def gain_interval(self, one: str, other: str) -> tuple[list[float] | None, str]:
        """The 95% interval of how much lower a mean log loss is than another, and what it comes from.

        Steps of a day are alike, and so are days of a week: sums over days, or over weeks where there are enough, count as one each.
        """
        weeks = (self.begins[-1] - self.begins[0]) / (7 * DAY) >= _ENOUGH
        length, unit = (7 * DAY, "weeks") if weeks else (DAY, "days")
        if self.settings.step * DAY > length:
            length, unit = round(self.settings.step * DAY), "steps"
        _, block = np.unique(self.begins // length, return_inverse=True)
        lower = (self.scores[other]["log_loss"] - self.scores[one]["log_loss"]) * self.rows
        if block[-1] < 2:
            return None, unit
        rows = np.bincount(block, self.rows).astype(np.float64)
        return ratio_interval(np.bincount(block, lower).astype(np.float64), rows), unit

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
        if not {START, ORACLE_NAME} <= set(self.scores) or not self._spans:
            return None
        start, end = self.mean(START, measure), self.mean(ORACLE_NAME, measure)
        return _number((self.mean(name, measure) - start) / (end - start) + 0.0) if end != start else None


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
