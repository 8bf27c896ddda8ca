"""Limits that a monitor must keep, as in ``calibration=0.9..1.1``, and whether it clearly does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.data.durations import to_float
from belated.monitoring.estimates import Figure

LIMITED = ("calibration", "oe", "rate", "log_loss", "brier", "auc", "delay")


@dataclass(frozen=True)
class Limit:
    name: str
    low: float | None
    high: float | None

    def __str__(self) -> str:
        low, high = ("" if end is None else f"{end:g}" for end in (self.low, self.high))
        return f"{self.name}={low}..{high}"

    def broken_by(self, figure: Figure) -> bool:
        """Whether all of a figure's interval lies outside; where there is none, nothing is clear."""
        if self.low is not None and figure.high is not None and figure.high < self.low:
            return True
        return self.high is not None and figure.low is not None and figure.low > self.high


def parse_limits(given: str | Sequence[str] | Mapping[str, Any] | None) -> list[Limit]:
    """From ``"calibration=0.9..1.1"``, several of them, or ``{"calibration": (0.9, 1.1)}``; an end may be left out."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [_limit(name, ends, f"{name}={ends!r}") for name, ends in given.items()]
    texts = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    found = []
    for text in texts:
        name, _, ends = str(text).partition("=")
        low, dots, high = ends.partition("..")
        if not dots:
            raise ValueError(
                f"fail_on={text!r} is not understood; write calibration=0.9..1.1, auc=0.7.. or log_loss=..0.4."
            )
        found.append(_limit(name.strip(), [low.strip() or None, high.strip() or None], str(text)))
    return found


def _limit(name: str, ends: Any, text: str) -> Limit:
    if name not in LIMITED:
        raise ValueError(
            f"fail_on={text!r}: {name!r} is not a figure of a monitor; choose one of {', '.join(LIMITED)}."
        )
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise ValueError(f"fail_on={text!r} needs two ends, of which one may be None.")
    try:
        low, high = (None if end is None else float(to_float(end)) for end in ends)
    except (TypeError, ValueError):
        raise ValueError(f"fail_on={text!r}: its ends must be numbers.") from None
    if any(end is not None and not np.isfinite(end) for end in (low, high)):
        raise ValueError(f"fail_on={text!r}: its ends must be finite numbers; leave out the one that does not matter.")
    if (low is None and high is None) or (low is not None and high is not None and not low < high):
        raise ValueError(f"fail_on={text!r}: it needs an end, and the first must be below the second.")
    return Limit(name, low, high)
