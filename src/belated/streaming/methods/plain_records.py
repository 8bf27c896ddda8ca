"""What streams are compared with: labels as they stand after a while, and final labels once they are there."""

from __future__ import annotations

from belated.streaming.methods.base import StreamMethod


class Vanilla(StreamMethod):
    """The label after the window counts as final: biased, the floor."""

    name = "vanilla"


class FinalLabels(StreamMethod):
    """The label at the horizon, once it is there: no bias, and news a horizon old."""

    name = "final"
    needs_window = False

    def ages(self, window: int, horizon: int) -> list[int]:
        return [horizon]
