"""Pages with fewer charts, where that is enough."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_width(monkeypatch):
    """Charts at one width alone, where that is enough."""
    drawing = pytest.importorskip("belated.report.drawing")
    monkeypatch.setattr(drawing, "WIDTHS", {"narrow": drawing.WIDTHS["narrow"]})


@pytest.fixture
def no_pictures(monkeypatch):
    """Pages whose words alone matter."""
    drawing = pytest.importorskip("belated.report.drawing")
    monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
