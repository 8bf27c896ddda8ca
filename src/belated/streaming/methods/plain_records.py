"""What streams are compared with: labels as they stand after a while, and labels that nobody has in time."""

from __future__ import annotations

from belated.streaming.methods.base import Moments, StreamMethod
from belated.typing import Ints


class Vanilla(StreamMethod):
    """The label after the window counts as final: biased, the floor."""

    name = "vanilla"


class FinalLabels(StreamMethod):
    """The label at the horizon, once it is there: no bias, and news a horizon old."""

    name = "final"
    needs_window = False

    def ages(self, window: int, horizon: int) -> list[int]:
        return [horizon]


class Oracle(StreamMethod):
    """The final label at arrival, which no stream can know: the ceiling. Its records are made in hindsight by a replay."""

    name = "oracle"
    needs_window = False

    def moments(self, window: int | None, horizon: int) -> Moments:
        return Moments((), window or 0, horizon)

    def ages(self, window: int, horizon: int) -> list[int]:
        return []

    def at_outcome(self, delay: Ints, moments: Moments) -> None:
        return None
