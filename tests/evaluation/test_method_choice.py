"""``method="auto"``: the usual method, unless another is clearly better."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from belated import DelayedFeedbackClassifier, LinearModel
from belated.data.labels import check_labels
from belated.evaluation import method_choice
from belated.evaluation.delay_curve import delay_curve
from belated.evaluation.method_choice import USUAL, auto_pairs, choose_method, pick


def two_speeds(seed, n=12_000, span=40.0, horizon=30.0):
    """Half of the rows turn positive within hours, half within weeks; the second half of the rows is for testing."""
    rng = np.random.default_rng(seed)
    x, slow = rng.normal(size=(2 * n, 2)), rng.uniform(size=2 * n) < 0.5
    mean, rate = np.where(slow, 12.0, 0.3), expit(-1 + x[:, 0])
    wait, converts = rng.exponential(mean), rng.uniform(size=2 * n) < rate
    elapsed = rng.uniform(0, span, n)
    y = converts[:n] & (wait[:n] <= np.minimum(elapsed, horizon))
    final = rate * -np.expm1(-horizon / mean)
    return np.column_stack([x, slow]).astype(float), y, elapsed, np.where(y, wait[:n], np.nan), final


def excess(p, q):
    """The log loss of p above that of the truth."""
    return float(np.mean(q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))))


def compare(seed):
    X, y, elapsed, delay, final = two_speeds(seed)
    n, found = len(y), {}
    for method in ("auto", "bl", "dfm", "dfm-piecewise", "hazard", "tw", "fsiw", "nndf"):
        model = None if method == "auto" else LinearModel(l2=1e-5)
        clf = DelayedFeedbackClassifier(method, 10.0, 30.0, model).fit(X[:n], y, elapsed=elapsed, delay=delay)
        found[method] = excess(clf.predict_proba(X[n:])[:, 1], final[n:])
    return found


def test_auto_is_near_the_best_where_delays_depend_on_features():
    found = compare(0)
    assert found["auto"] < min(found.values()) + 0.001
    assert found["hazard"] > found["bl"] > found["auto"] + 0.002


@pytest.mark.slow
def test_auto_is_near_the_best_in_every_draw():
    for seed in range(1, 9):
        found = compare(seed)
        assert found["auto"] < min(found.values()) + 0.001, (seed, found)


def test_the_share_seen_depends_on_features():
    X, y, elapsed, delay, _ = two_speeds(1)
    labels, X = check_labels(y, elapsed, delay, None, 10.0, 30.0), X[: len(y)]
    seen = method_choice._share_seen(X, labels, 30.0)
    slow = X[:, 2] == 1
    for rows, mean in ((slow, 12.0), (~slow, 0.3)):
        truth = np.minimum(np.expm1(-elapsed[rows] / mean) / np.expm1(-30.0 / mean), 1.0)
        assert np.abs(seen[rows] - truth).mean() < 0.03
    alike = delay_curve(elapsed, delay, 30.0).seen(elapsed)
    assert np.abs(alike - seen).mean() > 0.1


def test_another_method_is_taken_only_where_it_is_clearly_better():
    rng = np.random.default_rng(0)
    usual, weight = rng.uniform(0.4, 0.6, 1000), np.ones(1000)
    assert pick({USUAL: usual, "tw": usual - 0.01 + rng.normal(0, 0.05, 1000)}, USUAL, weight)[0] == "tw"
    chosen, why, _ = pick({USUAL: usual, "tw": usual - np.resize([0.05, -0.049], 1000)}, USUAL, weight)
    assert chosen == USUAL and "nothing is clearly better" in why
    chosen, why, _ = pick({"bl": usual, "tw": usual - 0.001}, USUAL, weight)
    assert chosen == "tw" and f"{USUAL} could not be fitted" in why


def test_too_little_history_is_said(caplog):
    X, y, elapsed, delay, _ = two_speeds(2, n=60)
    found = choose_method(
        X[:60], check_labels(y, elapsed, delay, None, 10.0, 30.0), auto_pairs({"linear": LinearModel(l2=None)})
    )
    assert found.pair.name == USUAL and "too little history" in found.why
    clf = DelayedFeedbackClassifier("auto", 10.0, 30.0).fit(X[:60], y, elapsed=elapsed, delay=delay)
    assert "too little history" in clf.selection_why_


def test_a_stray_arrival_years_ago_is_no_history():
    X, y, elapsed, delay, _ = two_speeds(3, n=4000)
    elapsed[y.argmin()] = 40_000.0
    found = choose_method(
        X[:4000], check_labels(y, elapsed, delay, None, 10.0, 30.0), auto_pairs({"linear": LinearModel(l2=1e-4)})
    )
    assert all(isinstance(found.losses[name], float) for name in ("bl", "dfm", USUAL))


def test_what_was_decided_is_kept_and_logged(caplog):
    X, y, elapsed, delay, final = two_speeds(4, n=4000)
    with caplog.at_level(logging.INFO, "belated"):
        clf = DelayedFeedbackClassifier("auto", 10.0, 30.0).fit(X[:4000], y, elapsed=elapsed, delay=delay)
    assert "auto: dfm" in caplog.text
    assert set(clf.selection_) == set(method_choice.AUTO) and clf.selection_why_.startswith("dfm")
    assert_allclose(clf.predict_proba(X)[:, 1].mean(), final.mean(), rtol=0.1)
    fixed = DelayedFeedbackClassifier("auto", 10.0, 30.0, LinearModel(l2=0.01)).fit(
        X[:4000], y, elapsed=elapsed, delay=delay
    )
    assert fixed.model_.l2 == 0.01


def test_a_method_that_the_present_does_not_allow_is_not_chosen():
    X, y, elapsed, delay, _ = two_speeds(5, n=4000)
    clf = DelayedFeedbackClassifier("auto", 25.0, 30.0).fit(X[:4000], y, elapsed=elapsed, delay=delay)
    assert "longer than half the history" in clf.selection_["fsiw"]
    assert isinstance(clf.selection_["dfm"], float)
    with pytest.raises(ValueError, match="needs the delay of each positive"):
        DelayedFeedbackClassifier("auto", 8.0).fit(X[:4000], y, elapsed=elapsed)


def test_without_delays_to_learn_from_it_is_something_else():
    X, y, elapsed, _, _ = two_speeds(6, n=2000)
    at_once = np.where(y, 0.0, np.nan)
    clf = DelayedFeedbackClassifier("auto", 10.0, 30.0).fit(X[:2000], y, elapsed=elapsed, delay=at_once)
    assert "same delay" in clf.selection_[USUAL] and np.isfinite(clf.predict_proba(X)).all()


def test_the_clock_does_not_stand_between_two_days():
    X, y, elapsed, delay, _ = two_speeds(7, n=3000, span=22.0, horizon=15.0)
    labels = check_labels(y, np.floor(elapsed), np.floor(np.minimum(delay, elapsed)), None, 5.0, 15.0)
    splits = method_choice._splits(X[:3000], labels)
    assert len(splits) == 3 and all(split.back == round(split.back) for split in splits)


def test_rows_of_large_weight_count_in_the_error():
    rng = np.random.default_rng(0)
    weight = np.where(np.arange(1000) < 20, 100.0, 1.0)
    usual = rng.uniform(0.4, 0.6, 1000)
    other = usual - np.where(weight > 1, rng.normal(0.06, 0.2, 1000), 0.0)
    chosen, why, _ = pick({USUAL: usual, "tw": other}, USUAL, weight)
    assert chosen == USUAL and "nothing is clearly better" in why
