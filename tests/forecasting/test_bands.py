"""Bands: of known distributions, and the parts that they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from belated.forecasting.bands import Spread, band, drift, jackknife, overdispersion


def spread(drawn, fitted=0.0, off=0.0, fits=9.0, dates=3.0):
    return Spread(*(np.array([value]) for value in (drawn, fitted, off)), fits, dates)


@pytest.mark.parametrize("mean", [3.0, 50.0, 2000.0])
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_counts_that_vary_by_chance_alone_are_covered(mean, level):
    low, high = band(np.array([mean]), spread(mean), level, whole=True)
    inside = stats.poisson.cdf(high, mean) - stats.poisson.cdf(low - 1, mean)
    assert level - 0.01 <= inside[0] <= level + max(0.02, 1.3 / np.sqrt(mean))


def test_estimates_of_few_widen_bands():
    """Where the variance is an estimate with three degrees of freedom, quantiles are Student's."""
    mean = np.array([1e6])
    low, high = band(mean, spread(0.0, off=1e8, dates=3.0), 0.95, whole=False)
    assert (high - low)[0] / 2e4 == pytest.approx(stats.t.ppf(0.975, 3), rel=0.01)
    low, high = band(mean, spread(1e8), 0.95, whole=False)
    assert (high - low)[0] / 2e4 == pytest.approx(stats.norm.ppf(0.975), rel=0.01)


def test_the_jackknife_gives_the_variance_of_a_mean():
    values = np.random.default_rng(0).normal(size=200)
    left_out = np.array([[np.delete(values, np.arange(k, 200, 10)).mean()] for k in range(10)])
    groups = values.reshape(20, 10).mean(axis=0)
    assert jackknife(left_out)[0] == pytest.approx(groups.var(ddof=1) / 10)


def test_days_that_vary_by_chance_show_no_overdispersion_and_others_do():
    rng = np.random.default_rng(0)
    expected = np.full(400, 25.0)
    assert overdispersion(rng.poisson(25.0, 400), expected, expected) == pytest.approx(1.0, abs=0.2)
    uneven = rng.poisson(25.0 * rng.gamma(4.0, 0.25, 400))  # variance 25 + 25^2 / 4
    assert overdispersion(uneven, expected, expected) == pytest.approx(1 + 25 / 4, rel=0.25)


def test_drift_is_what_draws_do_not_explain():
    rng = np.random.default_rng(0)
    means = np.full(4000, 100.0)
    assert drift(means, rng.poisson(100.0, 4000), means) < 0.002
    assert drift(means, rng.poisson(100.0 * np.exp(0.3 * rng.normal(size=4000))), means) == pytest.approx(0.09, rel=0.1)
    assert drift(*np.zeros((3, 0))) == 0.0
