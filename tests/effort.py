"""How hard to look: a little in every run of the tests, long under ``-m slow``."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

QUIET = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.function_scoped_fixture,
]


def given_some(*strategies, few=60, many=3000):
    """A property that is checked on a few examples by default, and on many under ``-m slow``."""

    def decorate(function):
        @pytest.mark.parametrize("effort", ["little", pytest.param("long", marks=pytest.mark.slow)])
        def test(effort):
            count = few if effort == "little" else many
            # Every run looks at the same examples, so that a failure is one of the code and not of the day.
            how = settings(
                max_examples=count, deadline=None, suppress_health_check=QUIET, derandomize=True, database=None
            )
            how(given(*strategies)(function))()

        test.__name__, test.__doc__ = function.__name__, function.__doc__
        return test

    return decorate
