"""Blocks of arrival time and the method's own risk, in scikit-learn's searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulate import simulate
from sklearn import config_context
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from stubs import FIXED

from belated import DelayedFeedbackClassifier, LinearModel, RiskScorer, TimeBlocks
from belated.data.labels import check_labels


def test_folds_hold_whole_stretches_and_every_row_once():
    age = np.random.default_rng(0).uniform(0, 30, 1200)
    tested = []
    for train, test in TimeBlocks().split(age, groups=age):
        assert not set(train) & set(test)
        order = np.argsort(age)
        inside = np.isin(order, test).astype(int)
        assert np.abs(np.diff(inside)).sum() <= 4  # two stretches
        tested.extend(test)
    assert_array_equal(np.sort(tested), np.arange(1200))
    backwards = [test for _, test in TimeBlocks().split(age, groups=-age)]
    assert {frozenset(b) for b in backwards} == {frozenset(t) for _, t in TimeBlocks().split(age, groups=age)}


def test_what_is_missing_is_told():
    with pytest.raises(ValueError, match="pass groups=elapsed"):
        next(TimeBlocks().split(np.zeros(9)))
    with pytest.raises(ValueError, match="n_splits=9 must be at least 2"):
        next(TimeBlocks(n_splits=9).split(np.zeros(9), groups=np.arange(9)))


# Of age and person-period, levels of groups are penalised too, and those are among the intercepts.
@pytest.mark.parametrize("method", [name for name in FIXED if name not in ("age", "person-period")], ids=str)
def test_the_risk_of_the_training_rows_is_what_was_minimised(method):
    data = simulate(seed=0, n=1500)
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, LinearModel(l2=1e-3, tol=1e-10))
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    found = clf.risk(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    if hasattr(clf.link_, "law"):  # of delay models, whether a row of its age is positive yet
        p = [
            replace(clf.link_, horizon=e).probability(clf.model_.margins(x[None]), clf.model_.shared_)[0]
            for x, e in zip(data.X, np.minimum(data.elapsed, 20.0), strict=True)
        ]
        assert_allclose(found, log_loss(data.y, p), rtol=1e-9)
    else:
        assert_allclose(found + 1e-3 * (clf.coef_**2).sum(), clf.model_.objective_, rtol=1e-6)


@pytest.mark.parametrize("method", ["age", "person-period"])
def test_other_rows_are_judged_by_the_levels_that_were_learned(method):
    data, other = simulate(seed=0, n=3000), simulate(seed=5, n=60)
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, LinearModel(l2=1e-4))
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    again = clf.risk(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    risk = clf.method_.build_risk(check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0), None)
    assert_allclose(again, risk.row_costs(clf.model_.margins(data.X)).sum(), rtol=1e-9)
    # A few rows, of few ages: their own quantiles and rates would be others.
    young = other.elapsed < 8
    parts = [np.flatnonzero(young), *np.array_split(np.flatnonzero(young), 3)]
    few, *thirds = (
        clf.risk(other.X[at], other.y[at], elapsed=other.elapsed[at], delay=other.delay[at]) * len(at) for at in parts
    )
    assert_allclose(few, sum(thirds), rtol=1e-9)


def test_without_times_it_is_the_log_loss():
    data = simulate(seed=1, n=500)
    clf = DelayedFeedbackClassifier().fit(data.X, data.y)
    p = clf.predict_proba(data.X)[:, 1]
    assert_allclose(clf.risk(data.X, data.y), -np.mean(np.log(np.where(data.y == 1, p, 1 - p))))


@pytest.mark.parametrize("method", ["bl", "convdf", "fsiw", "dfm-piecewise", "hazard", "stc"])
def test_a_search_takes_what_serves_rows_left_out(method):
    data = simulate(seed=2, n=2000)
    noise = np.random.default_rng(0).normal(size=(2000, 40))
    with config_context(enable_metadata_routing=True):
        clf = DelayedFeedbackClassifier(method, 5.0, 20.0, LinearModel(tol=1e-5)).set_fit_request(
            elapsed=True, delay=True
        )
        search = GridSearchCV(
            clf, {"model__l2": [1e-7, 1e-2]}, cv=TimeBlocks(), scoring=RiskScorer(), error_score="raise"
        )
        times = {"elapsed": data.elapsed, "delay": data.delay}
        search.fit(np.hstack([data.X, noise]), data.y, **times, groups=data.elapsed)
        assert search.best_params_ == {"model__l2": 1e-2}
        scores = cross_validate(
            clf, data.X, data.y, cv=TimeBlocks(), scoring=RiskScorer(), params={**times, "groups": data.elapsed}
        )
    assert np.isfinite(scores["test_score"]).all() and len(scores["test_score"]) == 3


def test_a_classifier_at_the_end_of_a_pipeline_is_scored_on_what_it_is_given():
    data = simulate(seed=3, n=800)
    times = {"elapsed": data.elapsed, "delay": data.delay}
    scaler = StandardScaler().fit(data.X)
    clf = DelayedFeedbackClassifier(horizon=20.0, model=LinearModel(1e-3))
    alone = clf.fit(scaler.transform(data.X), data.y, **times)
    score = RiskScorer().score(alone, scaler.transform(data.X), data.y, **times)
    for steps in ([("scale", scaler)], [("scale", scaler), ("nothing", "passthrough")]):
        pipe = Pipeline([*steps, ("classify", alone)])
        assert RiskScorer().score(pipe, data.X, data.y, **times) == score
    short = Pipeline([("classify", alone)])
    assert RiskScorer().score(short, scaler.transform(data.X), data.y, **times) == score
