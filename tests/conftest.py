"""Options of the test run, and what the oldest supported versions do otherwise."""

from functools import partialmethod
from inspect import signature

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
