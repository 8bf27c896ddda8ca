"""The clock set back: what was known then, and a loss corrected for late labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from belated import DelayedFeedbackClassifier, LinearModel
from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_path
from belated.evaluation.metrics import log_losses
from belated.evaluation.validation import rewind, set_clock_back
from belated.methods import resolve_method


def snapshot(n=8000, seed=0):
    rng = np.random.default_rng(seed)
    X, elapsed, wait = rng.normal(size=(n, 3)), rng.uniform(0, 40, n), rng.exponential(5.0, n)
    converts = rng.uniform(size=n) < 1 / (1 + np.exp(1 - X[:, 0]))
    y = converts & (wait <= elapsed)
    return X, y, elapsed, np.where(y, wait, np.nan), converts


def test_the_corrected_loss_is_unbiased():
    """Its mean over draws is the log loss against final labels, although the labels are not final; p depends on features."""
    gaps, naive = [], []
    for seed in range(30):
        X, y, elapsed, delay, converts = snapshot(seed=seed)
        split = set_clock_back(check_labels(y, elapsed, delay, None, 8.0, 40.0))
        p = 1 / (1 + np.exp(0.5 - 1.5 * X[split.valid, 0] + X[split.valid, 1]))
        final = log_losses(converts[split.valid], p).mean()
        gaps.append(split.loss(p) - final)
        naive.append(log_losses(y[split.valid], p).mean() - final)
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 3 * error + 0.002
    assert abs(np.mean(naive)) > 5 * error


def test_where_delays_depend_on_features_so_must_the_correction():
    gaps, same_for_all = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 8000
        slow, elapsed = rng.uniform(size=n) < 0.5, rng.uniform(0, 40, n)
        wait, converts = rng.exponential(np.where(slow, 10.0, 0.5)), rng.uniform(size=n) < np.where(slow, 0.5, 0.2)
        y = converts & (wait <= elapsed)
        labels = check_labels(y, elapsed, np.where(y, wait, np.nan), None, 10.0, 40.0)
        seen = np.where(slow, -np.expm1(-elapsed / 10.0), -np.expm1(-elapsed / 0.5))
        for found, share in ((gaps, seen), (same_for_all, None)):
            split = rewind(labels, 10.0, 5.0, share)
            p = np.where(slow[split.valid], 0.6, 0.15)
            found.append(split.loss(p) - log_losses(converts[split.valid], p).mean())
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 3 * error + 0.002
    assert abs(np.mean(same_for_all)) > 5 * error + 0.01


def test_setting_the_clock_back_uses_what_was_known_then():
    _, y, elapsed, delay, _ = snapshot()
    split = set_clock_back(check_labels(y, elapsed, delay, None, 8.0, 40.0))
    assert (elapsed[split.train] >= split.back).all() and (elapsed[split.valid] < split.back).all()
    known = split.past
    assert_allclose(known.elapsed, elapsed[split.train] - split.back)
    assert (known.delay[known.y] <= known.elapsed[known.y]).all()
    assert known.y.sum() == (delay[split.train] <= elapsed[split.train] - split.back).sum()


@pytest.mark.parametrize("method", ["fsiw", "rescale", "stc", "nndf", "hazard"])
def test_every_kind_of_method_is_fitted_as_the_classifier_would(method):
    """FSIW's auxiliary fits among them, at the l2 of the main one."""
    X, y, elapsed, delay, _ = snapshot(3000)
    labels = check_labels(y, elapsed, delay, None, 8.0, 40.0)
    model = LinearModel()
    encoded = model.encode(X, labels.weight)
    fits = fit_path(model, encoded, resolve_method(method), labels, [1e-4, 1e-1])
    for fit in fits:
        clf = DelayedFeedbackClassifier(method, 8.0, 40.0, LinearModel(l2=fit.value)).fit(
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
