"""What the methods estimate, over many draws from laws where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit
from simulate import reveal, simulate

from belated import DFM, ConvDF, DelayedFeedbackClassifier
from belated.data.labels import check_labels
from belated.methods.delayed_feedback import late_weights
from belated.methods.dual_learning import Dual
from belated.methods.future_labels import ULC
from belated.risks.weighted import WeightedRisk

DRAWS, HISTORY, WINDOW = 40, 12.0, 5.0


def mean_rates(method, draws=DRAWS, window=WINDOW, horizon=None, **law):
    """Average over draws of (mean prediction, true mean rate, mean label so far)."""
    rows = []
    for seed in range(draws):
        data = simulate(seed=seed, n=4000, history=HISTORY, longest=WINDOW, **law)
        clf = DelayedFeedbackClassifier(method=method, window=window, horizon=horizon)
        clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
        rows.append((clf.predict_proba(data.X)[:, 1].mean(), data.rate.mean(), data.y.mean()))
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("method", ["convdf", "nndf", "fsiw", "tw", "putw", "pnutw", "rescale"])
def test_corrections_recover_the_rate_where_their_assumptions_hold(method):
    predicted, truth, so_far = mean_rates(method)
    assert_allclose(predicted, truth, rtol=0.02)
    assert so_far < 0.9 * truth


def test_bl_stays_below():
    predicted, truth, so_far = mean_rates("bl")
    assert predicted < 0.9 * truth
    assert_allclose(predicted, so_far, rtol=1e-4)


def test_the_papers_normalizer_over_corrects_by_history_over_history_less_window():
    ratios, shares = [], []
    for seed in range(200):
        data = simulate(seed=seed, n=4000, history=HISTORY, longest=WINDOW)
        labels = check_labels(data.y == 1, data.elapsed, data.delay, None, WINDOW)
        still_to_come = (data.truth & (data.y == 0)).mean()
        ratios.append([late_weights(labels, kind).sum() for kind in ("matched", "paper")])
        shares.append(still_to_come)
    matched, paper = np.mean(ratios, axis=0) / np.mean(shares)
    assert_allclose(matched, 1.0, rtol=0.01)
    assert_allclose(paper, HISTORY / (HISTORY - WINDOW), rtol=0.01)


def test_the_matched_normalizer_stays_right_when_arrivals_grow():
    matched, truth = [], []
    for seed in range(200):
        data = simulate(seed=seed, n=6000, history=HISTORY, longest=WINDOW)
        keep = np.random.default_rng(seed).uniform(size=6000) < 1 - 0.8 * data.elapsed / HISTORY
        labels = check_labels(data.y[keep] == 1, data.elapsed[keep], data.delay[keep], None, WINDOW)
        matched.append(late_weights(labels, "matched").sum())
        truth.append((data.truth & (data.y == 0))[keep].mean())
    assert_allclose(np.mean(matched), np.mean(truth), rtol=0.015)


def test_the_papers_normalizer_raises_predictions_above_the_truth():
    predicted, truth, _ = mean_rates(ConvDF("paper"))
    assert predicted > 1.05 * truth


def test_convdf_risk_is_unbiased_at_a_fixed_margin():
    """The average of the risk over draws equals the average of the risk under the true labels."""
    estimated, oracle = [], []
    for seed in range(200):
        data = simulate(seed=seed, n=2000, history=HISTORY, longest=WINDOW)
        margins = (data.X @ np.array([0.5, 1.0, -0.5, 0.2, 0.0, 0.3]))[:, None]
        labels = check_labels(data.y == 1, data.elapsed, data.delay, None, WINDOW)
        estimated.append(ConvDF().risk(labels, None).value_and_gradient(margins)[0])
        final = check_labels(data.truth)
        oracle.append(ConvDF().risk(final, None).value_and_gradient(margins)[0])
    difference = np.array(estimated) - np.array(oracle)
    assert abs(difference.mean()) < 3 * difference.std() / np.sqrt(len(difference))


def test_dfm_recovers_rate_and_delay_under_its_own_law():
    slopes = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(8000, 1))
        rate = expit(-0.5 + x[:, 0])
        truth = rng.uniform(size=8000) < rate
        wait = rng.exponential(np.exp(-(-1.0 + 0.4 * x[:, 0])))
        data = reveal(x, truth, rate, rng.uniform(0, HISTORY, 8000), wait)
        clf = DelayedFeedbackClassifier(method="dfm").fit(x, data.y, elapsed=data.elapsed, delay=data.delay)
        slopes.append(np.concatenate([clf.model_.coef_.ravel(), clf.model_.intercept_]))
    assert_allclose(np.mean(slopes, axis=0), [1.0, 0.4, -0.5, -1.0], atol=0.06)


LAWS = {
    "exponential": lambda rng, n: rng.exponential(2.0, n),
    "weibull": lambda rng, n: 2.0 * rng.weibull(0.6, n),
    "half-normal": lambda rng, n: np.abs(rng.normal(0.0, 3.0, n)),
    "two-component": lambda rng, n: rng.exponential(np.where(rng.uniform(size=n) < 0.5, 0.1, 3.0)),
}


def recovered(law, method, drift, draws=12, window=None):
    """Mean prediction over true mean rate, where nothing arrives after 14 days."""
    ratios = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        n = 6000
        x = rng.normal(size=(n, 2))
        elapsed = rng.uniform(0, 21.0, n)
        # A drifting rate is a rate that depends on the arrival; the model sees which week it was.
        week = np.minimum(elapsed // 7, 2)
        rate = expit(-1.0 + 0.7 * x[:, 0] - drift * week)
        truth = rng.uniform(size=n) < rate
        wait = LAWS[law](rng, n)
        while (late := wait > 14.0).any():
            wait[late] = LAWS[law](rng, int(late.sum()))
        X = np.column_stack([x, week == 0, week == 1])
        data = reveal(X, truth, rate, elapsed, wait)
        clf = DelayedFeedbackClassifier(method=method, window=window, horizon=14.0)
        clf.fit(X, data.y, elapsed=data.elapsed, delay=data.delay)
        ratios.append(clf.predict_proba(X)[:, 1].mean() / rate.mean())
    return float(np.mean(ratios))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("drift", [0.0, 0.4])
def test_the_piecewise_law_recovers_the_rate_whatever_the_delay(law, drift):
    assert_allclose(recovered(law, DFM("piecewise"), drift), 1.0, atol=0.02)


def test_the_exponential_law_does_not():
    assert recovered("two-component", DFM("exponential"), 0.0) < 0.97


@pytest.mark.parametrize("method", ["dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel", "hazard"])
@pytest.mark.parametrize("law", ["ceil 0.5", "ceil 2", "floor 0.5", "floor 2", "mostly 0"])
def test_delays_recorded_to_the_day(law, method):
    """Ties at a few whole days, as in a log stamped by the day, do not bias what is learned."""
    rng = np.random.default_rng(0)
    n = 20000
    wait = {
        "ceil 0.5": np.ceil(rng.exponential(0.5, n)),
        "ceil 2": np.ceil(rng.exponential(2.0, n)),
        "floor 0.5": np.floor(rng.exponential(0.5, n)),
        "floor 2": np.floor(rng.exponential(2.0, n)),
        "mostly 0": np.where(rng.uniform(size=n) < 0.9, 0.0, np.floor(rng.exponential(5.0, n))),
    }[law]
    truth = (rng.uniform(size=n) < 0.5) & (wait <= 14.0)
    data = reveal(np.zeros((n, 1)), truth, np.full(n, truth.mean()), rng.integers(0, 61, n).astype(float), wait)
    clf = DelayedFeedbackClassifier(method=method, horizon=14.0)
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert_allclose(clf.predict_proba(data.X)[0, 1], truth.mean(), rtol=0.015)


@pytest.mark.parametrize("horizon", [5.0, 10.0, 20.0, None])
def test_hazard_recovers_the_rate_whatever_the_horizon_beyond_the_last_delay(horizon):
    predicted, truth, _ = mean_rates("hazard", draws=10, horizon=horizon, window=None)
    assert_allclose(predicted, truth, rtol=0.02)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("method", [ULC(), Dual(), DFM("kernel")], ids=str)
def test_the_siblings_recover_the_rate_whatever_the_delay(law, method):
    assert_allclose(recovered(law, method, 0.0, window=5.0), 1.0, atol=0.03)


def test_a_drifting_rate_is_none_of_ulcs_business_and_misleads_dual_learning():
    """Young rows of a rising rate look to dual learning as if delays were shorter than they are."""
    assert_allclose(recovered("exponential", ULC(), 0.4, window=5.0), 1.0, atol=0.03)
    assert recovered("exponential", Dual(), 0.4) < 0.98


def test_one_round_of_ulc_misses_what_comes_after_a_window():
    whole, once = (recovered("half-normal", ULC(rounds=rounds), 0.0, window=1.0) for rounds in (8, 1))
    assert once < 0.95 and abs(whole - 1.0) < abs(once - 1.0) / 2


def test_with_exact_auxiliary_models_the_risks_are_unbiased():
    """Given the true u or theta, the mean risk over draws is that of final labels."""
    differences = {"ulc": [], "dual": []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = 2000
        x, elapsed = rng.normal(size=(n, 2)), rng.uniform(0, 20.0, n)
        rate, mean = expit(-1.0 + x[:, 0]), np.exp(0.5 + 0.3 * x[:, 1])
        truth, wait = rng.uniform(size=n) < rate, rng.exponential(mean)
        data = reveal(x, truth, rate, elapsed, wait)
        labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0)
        margins = (x @ np.array([0.5, 1.0]))[:, None]
        waiting = np.exp(-elapsed / mean)
        later, seen = rate * waiting / (1 - rate + rate * waiting), 1 - waiting
        share = np.full(n, 1 / n)
        soft = np.where(data.y == 1, 1.0, later)
        label = (data.y == 1) / seen
        final = WeightedRisk(share * truth, share * ~truth).value_and_gradient(margins)[0]
        for name, (a, b) in {"ulc": (soft, 1 - soft), "dual": (label, 1 - label)}.items():
            differences[name].append(WeightedRisk(share * a, share * b).value_and_gradient(margins)[0] - final)
        dual = Dual(rounds=1, least=1e-9).risk(labels, lambda *_, seen=seen: logit(seen))
        assert_allclose(dual.a, share * label, rtol=1e-6)
    for values in differences.values():
        assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(len(values))
