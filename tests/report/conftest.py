"""A real browser, for pages."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest


def chromium():
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser(request):
    required = request.config.getoption("--browser-required")
    missing = chromium() is None or importlib.util.find_spec("playwright") is None
    if missing and not required:
        pytest.skip("Chromium or Playwright is missing (make test-browser)")
    sync_api = importlib.import_module("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


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
