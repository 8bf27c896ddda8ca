"""Options of the test run, a real browser for pages, and what the oldest supported versions do otherwise."""

import importlib.util
import os
import shutil
from functools import partialmethod
from inspect import signature

import pytest
from click.testing import CliRunner, Result

if (
    "mix_stderr" in signature(CliRunner).parameters
):  # click before 8.2 gives both streams apart or together, not both ways
    CliRunner.__init__ = partialmethod(CliRunner.__init__, mix_stderr=False)
    Result.output = property(lambda result: result.stdout + result.stderr)


def pytest_addoption(parser):
    parser.addoption(
        "--browser-required", action="store_true", help="fail, rather than skip, where there is no Chromium"
    )


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
