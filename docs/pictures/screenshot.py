"""The README's picture of the report: python docs/pictures/screenshot.py report.html (needs Playwright and Chromium)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 1280, "height": 1440}, color_scheme="light")
    page.goto(Path(sys.argv[1]).resolve().as_uri())
    page.screenshot(path=Path(__file__).with_name("report.png"))
    browser.close()
