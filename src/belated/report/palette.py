"""The colours of charts: names of a page's own, which its style sheet turns into those of a light or dark theme, or plain ones on white."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """``series`` tells versions of a model apart, with ``MARKERS`` for those who cannot tell colours."""

    ink: str
    muted: str
    grid: str
    paper: str
    accent: str
    bad: str
    good: str
    series: tuple[str, ...]

    def of_method(self, name: str, best: str | None) -> str:
        return {best: self.accent, "bl": self.bad, "oracle": self.good}.get(name, self.muted)


MARKERS = ("o", "s", "^", "D", "v", "P")

# Placeholders, found in the finished drawing by their value.
IN_PAGE = Palette(
    ink="#101112",
    muted="#707172",
    grid="#d0d1d2",
    paper="#f0f1f2",
    accent="#1060d3",
    bad="#c03234",
    good="#208245",
    series=("#1060d3", "#c07a12", "#7040b2", "#10808a", "#b03272", "#606a22"),
)
VARIABLES = {
    **{getattr(IN_PAGE, name): f"--{name}" for name in ("ink", "muted", "grid", "paper", "accent", "bad", "good")},
    **{colour: f"--series-{k}" for k, colour in enumerate(IN_PAGE.series) if k},
}

# Okabe and Ito's colours, which most colour-blind people can tell apart.
ON_WHITE = Palette(
    ink="#222222",
    muted="#777777",
    grid="#d9d9d9",
    paper="#ffffff",
    accent="#0072b2",
    bad="#d55e00",
    good="#009e73",
    series=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
)
