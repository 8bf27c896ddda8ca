"""Intervals from how cut-offs differ, and what choosing among many methods achieves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, logit

from belated.evaluation.intervals import confidence_above_zero, mean_interval, ratio_interval
from belated.evaluation.recommendation import CrossFit, share_of_gap


def test_the_interval_of_a_mean_is_students():
    values = np.array([0.1, 0.4, 0.2, 0.9])
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert_allclose(mean_interval(values), expected)
    test = stats.ttest_1samp(values, 0.0, alternative="greater")
    assert_allclose(confidence_above_zero(values), 1 - test.pvalue)


def test_too_few_cutoffs_carry_no_interval():
    for few in (np.array([1.0]), np.array([1.0, 2.0])):
        assert mean_interval(few) is None and ratio_interval(few, few) is None and confidence_above_zero(few) is None


def test_the_ends_of_a_ratio_are_where_its_t_test_turns():
    rng = np.random.default_rng(0)
    bottom = rng.normal(1.0, 0.2, 6)
    top = 0.4 * bottom + rng.normal(0.0, 0.1, 6)
    for end in ratio_interval(top, bottom):
        assert_allclose(stats.ttest_1samp(top - end * bottom, 0.0).pvalue, 0.05)
    assert ratio_interval(top, bottom - 1.0) is None  # what it is divided by may be 0


def test_each_choice_is_made_without_the_cutoff_it_is_scored_on():
    losses = {"bl": np.array([0.5, 0.5, 0.5]), "a": np.array([0.1, 0.6, 0.6]), "b": np.array([0.6, 0.4, 0.4])}
    fit = CrossFit.of({**losses, "oracle": np.zeros(3)})
    assert fit.best == "a"
    assert fit.chosen == ["b", "a", "a"]
    assert_allclose(fit.achieved, [0.6, 0.6, 0.6])


def simulated_losses(rng, count, methods=13, shock=0.15, rows=1500):
    """Log losses at unlike cut-offs: every method is equally good but for shocks of its own in log odds at each.

    ``bl`` predicts too little; methods are on average a third better. Returns the losses and the share of the gap that
    each method closes in expectation.
    """
    rate, names = 0.2, [f"method {k}" for k in range(methods)]
    shift = {"bl": -0.45, "oracle": 0.0, **dict.fromkeys(names, -0.33)}
    losses = {}
    actual = expit(logit(rate) + rng.normal(0.0, shock, count))  # what happens differs from cut-off to cut-off
    seen = rng.binomial(rows, actual) / rows
    for name, off in shift.items():
        noise = rng.normal(0.0, shock if name.startswith("method") else 0.05, count)
        p = expit(logit(actual) + off + noise)
        losses[name] = -(seen * np.log(p) + (1 - seen) * np.log1p(-p))
    return losses


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 6, 12])
def test_the_reported_share_covers_what_choosing_achieves(count):
    rng = np.random.default_rng(count)
    mean = {name: found.mean() for name, found in simulated_losses(rng, 400_000).items()}
    truth = (mean["bl"] - mean["method 0"]) / (mean["bl"] - mean["oracle"])
    covered, reported, naive = [], [], []
    for _ in range(4000):
        losses = simulated_losses(rng, count)
        fit = CrossFit.of(losses)
        share, interval = share_of_gap(losses, fit)
        naive.append((losses["bl"] - losses[fit.best]).mean() / (losses["bl"] - losses["oracle"]).mean())
        if interval is not None:
            covered.append(interval[0] <= truth <= interval[1])
            reported.append(share)
    assert len(covered) > 500  # of three cut-offs, few carry an interval
    assert 0.90 <= np.mean(covered) <= 0.97, np.mean(covered)
    assert abs(np.median(reported) - truth) < 0.05
    assert np.median(naive) > truth + 0.1  # the best of many looks better than it is
