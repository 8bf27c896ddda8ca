"""Settings chosen by setting the clock back: what was known then, and a loss corrected for late labels."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose

from belated import DelayedFeedbackClassifier, LinearModel
from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_path
from belated.evaluation.metrics import log_losses
from belated.evaluation.validation import Choice, choose_l2, set_clock_back
from belated.methods import resolve_method


def snapshot(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    X, elapsed, wait = rng.normal(size=(n, 3)), rng.uniform(0, 40, n), rng.exponential(5.0, n)
    converts = rng.uniform(size=n) < 1 / (1 + np.exp(1 - X[:, 0]))
    y = converts & (wait <= elapsed)
    return X, y, elapsed, np.where(y, wait, np.nan), converts


def test_the_corrected_loss_is_unbiased():
    """Its mean over draws is the log loss against final labels, although the labels are not final."""
    gaps, naive = [], []
    for seed in range(30):
        _, y, elapsed, delay, converts = snapshot(seed=seed)
        split = set_clock_back(check_labels(y, elapsed, delay, None, 8.0, 40.0))
        p = np.full(split.valid.sum(), 0.3)
        final = log_losses(converts[split.valid], p).mean()
        gaps.append(split.loss(p) - final)
        naive.append(log_losses(y[split.valid], p).mean() - final)
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 3 * error + 0.002
    assert abs(np.mean(naive)) > 5 * error


def test_setting_the_clock_back_uses_what_was_known_then():
    _, y, elapsed, delay, _ = snapshot()
    split = set_clock_back(check_labels(y, elapsed, delay, None, 8.0, 40.0))
    assert (elapsed[split.train] >= split.back).all() and (elapsed[split.valid] < split.back).all()
    known = split.past
    assert_allclose(known.elapsed, elapsed[split.train] - split.back)
    assert (known.delay[known.y] <= known.elapsed[known.y]).all()
    assert known.y.sum() == (delay[split.train] <= elapsed[split.train] - split.back).sum()


def test_choosing_prefers_an_l2_that_fits():
    X, y, elapsed, delay, _ = snapshot()
    labels = check_labels(y, elapsed, delay, None, 8.0, 40.0)
    choice = choose_l2(X, labels, LinearModel(), {"tw": resolve_method("tw")}, [1e-5, 10.0])["tw"]
    assert isinstance(choice, Choice) and choice.l2 == 1e-5
    short = check_labels(y[:20], elapsed[:20], delay[:20], None, 8.0, 40.0)
    assert "too little history" in choose_l2(X[:20], short, LinearModel(), {"tw": resolve_method("tw")}, [1.0])["tw"]


def test_auto_takes_a_correction_where_labels_are_late(caplog):
    X, y, elapsed, delay, converts = snapshot()
    with caplog.at_level(logging.INFO, "belated"):
        clf = DelayedFeedbackClassifier("auto", 8.0, 40.0).fit(X, y, elapsed=elapsed, delay=delay)
    assert type(clf.method_).__name__ != "BL"
    assert set(clf.selection_) >= {"bl", "dfm"} and clf.selection_["bl"] > min(
        v for v in clf.selection_.values() if isinstance(v, float)
    )
    assert_allclose(clf.predict_proba(X)[:, 1].mean(), converts.mean(), rtol=0.1)
    assert "auto:" in caplog.text
    fixed = DelayedFeedbackClassifier("auto", 8.0, 40.0, LinearModel(l2=0.01)).fit(X, y, elapsed=elapsed, delay=delay)
    assert fixed.model_.l2 == 0.01
    with pytest.raises(ValueError, match="cannot choose: too little history"):
        DelayedFeedbackClassifier("auto", 8.0, 40.0).fit(X[:20], y[:20], elapsed=elapsed[:20], delay=delay[:20])


@pytest.mark.parametrize("method", ["fsiw", "rescale", "stc", "nndf", "hazard"])
def test_every_kind_of_method_is_fitted_as_the_classifier_would(method):
    """FSIW's auxiliary fits among them, at the l2 of the main one."""
    X, y, elapsed, delay, _ = snapshot(3000)
    labels = check_labels(y, elapsed, delay, None, 8.0, 40.0)
    model = LinearModel()
    encoded = model.encode(X, labels.weight)
    fits = fit_path(model, encoded, resolve_method(method), labels, [1e-4, 1e-1])
    for fit in fits:
        clf = DelayedFeedbackClassifier(method, 8.0, 40.0, LinearModel(l2=fit.l2)).fit(
            X, y, elapsed=elapsed, delay=delay
        )
        assert_allclose(fit.predict(X), clf.predict_proba(X)[:, 1], atol=1e-6)
    assert model.l2 == LinearModel().l2


def test_weights_are_repetitions_when_the_clock_is_set_back():
    _, y, elapsed, delay, _ = snapshot(4000)
    weight = np.where(np.nan_to_num(delay) > 2.0, 3.0, 1.0)
    again = np.repeat(np.arange(4000), weight.astype(int))
    p = 0.3
    one = set_clock_back(check_labels(y, elapsed, delay, weight, 8.0, 40.0))
    two = set_clock_back(check_labels(y[again], elapsed[again], delay[again], None, 8.0, 40.0))
    assert one.back == two.back
    assert_allclose(one.loss(np.full(one.valid.sum(), p)), two.loss(np.full(two.valid.sum(), p)))


def test_a_method_that_the_present_does_not_allow_is_not_chosen():
    X, y, elapsed, delay, _ = snapshot()
    clf = DelayedFeedbackClassifier("auto", 30.0, 40.0).fit(X, y, elapsed=elapsed, delay=delay)
    assert "longer than half the history" in clf.selection_["fsiw"]
    assert isinstance(clf.selection_["dfm"], float)
    with pytest.raises(ValueError, match="needs the delay of each positive"):
        DelayedFeedbackClassifier("auto", 8.0).fit(X, y, elapsed=elapsed)


def test_without_a_horizon_targets_reach_as_far_as_predictions():
    """Delays as long as the history: a model of the past can only know of positives by the oldest age of then."""
    rng = np.random.default_rng(0)
    n = 20_000
    elapsed, wait = rng.uniform(0, 30, n), rng.exponential(15.0, n)
    converts = rng.uniform(size=n) < 0.4
    y = converts & (wait <= elapsed)
    split = set_clock_back(check_labels(y, elapsed, np.where(y, wait, np.nan), None, 7.0, None))
    reach = split.past.elapsed.max()
    target = (converts & (wait <= reach)).mean()
    assert abs(split.corrected_y.mean() - target) < 0.02 < 0.4 - target
