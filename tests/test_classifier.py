"""The classifier as a scikit-learn estimator."""

from __future__ import annotations

import pickle
from datetime import timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from simulate import simulate
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from belated import BL, PNUTW, PU, STC, ConvDF, DelayedFeedbackClassifier, EventLog, FieldMatrix, LinearModel, NnDF
from belated.datasets import simulate_campaigns
from belated.methods import METHODS


@parametrize_with_checks([DelayedFeedbackClassifier(method=name) for name in METHODS])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_nested_parameters_and_repr():
    clf = DelayedFeedbackClassifier(method=ConvDF(normalizer="paper"), window=7.0, model=LinearModel(l2=1e-3))
    clf.set_params(model__l2=0.5, method__normalizer="matched")
    assert clf.get_params()["model__l2"] == 0.5
    assert clone(clf).method.normalizer == "matched"
    assert repr(clf.set_params(window=None)) == "DelayedFeedbackClassifier(method=ConvDF(), model=LinearModel(l2=0.5))"


def test_grid_search_over_method_window_and_l2(routing):
    data = simulate(seed=0, n=2000)
    clf = DelayedFeedbackClassifier(model=LinearModel()).set_fit_request(elapsed=True, delay=True)
    grid = {"method": ["bl", "convdf", PNUTW(omega=0.3)], "window": [2.0, 5.0], "model__l2": [1e-4, 1e-1]}
    search = GridSearchCV(clf, grid, scoring="neg_log_loss", cv=2, error_score="raise")
    search.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert len(search.cv_results_["params"]) == 12
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipeline_and_cross_validate(routing):
    data = simulate(seed=1, n=2000)
    times = {"elapsed": data.elapsed, "delay": data.delay}
    clf = DelayedFeedbackClassifier(method="fsiw", window=5.0).set_fit_request(elapsed=True, delay=True)
    pipe = make_pipeline(StandardScaler(), clf).fit(data.X, data.y, **times)
    direct = clone(clf).fit(StandardScaler().fit_transform(data.X), data.y, **times)
    assert_array_equal(pipe.predict_proba(data.X), direct.predict_proba(StandardScaler().fit_transform(data.X)))
    scores = cross_validate(pipe, data.X, data.y, params=times, cv=3, error_score="raise")["test_score"]
    assert len(scores) == 3


def test_calibrated_classifier(routing):
    data = simulate(seed=2, n=2000)
    clf = DelayedFeedbackClassifier(method="nndf", window=5.0).set_fit_request(elapsed=True, delay=True)
    calibrated = CalibratedClassifierCV(clf, cv=2).fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert calibrated.predict_proba(data.X).shape == (2000, 2)


@pytest.mark.parametrize("method", METHODS)
def test_pickle_and_skops_keep_predictions(method):
    skops = pytest.importorskip("skops.io")
    data = simulate(seed=3, n=1000, frame="pandas")
    clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=30.0)
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    p = clf.predict_proba(data.X)
    assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(data.X), p)
    dumped = skops.dumps(clf)
    foreign = [name for name in skops.get_untrusted_types(data=dumped) if not name.startswith("belated.")]
    assert foreign == []
    loaded = skops.loads(dumped, trusted=skops.get_untrusted_types(data=dumped))
    assert_array_equal(loaded.predict_proba(data.X), p)


def test_attributes_and_string_classes():
    data = simulate(seed=4, n=1000, frame="pandas")
    labels = np.where(data.y == 1, "yes", "no")
    clf = DelayedFeedbackClassifier(method="tw", window=5.0)
    clf.fit(data.X, labels, elapsed=data.elapsed, delay=data.delay)
    assert clf.classes_.tolist() == ["no", "yes"]
    assert clf.n_features_in_ == data.X.shape[1]
    assert clf.feature_names_in_.tolist() == list(data.X.columns)
    assert set(clf.predict(data.X)) <= {"no", "yes"}
    assert clf.model_.coef_.shape[1] == len(clf.model_.encoder_.get_feature_names_out())


@pytest.mark.parametrize("method", METHODS)
def test_decision_and_probability_agree(method):
    data = simulate(seed=5, n=2000)
    clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=30.0)
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    p = clf.predict_proba(data.X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert_array_equal(clf.predict(data.X), (p[:, 1] > 0.5).astype(int))


def test_no_probabilities_from_the_double_hinge():
    data = simulate(seed=6, n=500)
    clf = DelayedFeedbackClassifier(method=BL(loss="double_hinge")).fit(data.X, data.y)
    assert not hasattr(clf, "predict_proba")
    assert_array_equal(clf.predict(data.X), (clf.decision_function(data.X) > 0).astype(int))


@pytest.mark.parametrize("kind", ["durations", "list of timedeltas", "polars", "pyarrow", "nullable"])
def test_kinds_of_time_columns(kind):
    data = simulate(seed=7, n=300)
    hours = [np.rint(values * 24) for values in (data.elapsed + 1, data.delay)]
    convert = {
        "durations": lambda v: pd.Series(pd.to_timedelta(v, unit="h")),
        "list of timedeltas": lambda v: [None if np.isnan(h) else timedelta(hours=h) for h in v],
        "polars": lambda v: pl.Series(v / 24, nan_to_null=True),
        "pyarrow": lambda v: pa.array(v / 24),
        "nullable": lambda v: pd.Series(v / 24).astype("Float64"),
    }[kind]
    clf = DelayedFeedbackClassifier(method="convdf", window=5.0)
    expected = clf.fit(data.X, data.y, elapsed=hours[0] / 24, delay=hours[1] / 24).predict_proba(data.X)
    p = clf.fit(data.X, data.y, elapsed=convert(hours[0]), delay=convert(hours[1])).predict_proba(data.X)
    assert_allclose(p, expected, atol=1e-9)


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "object"])
def test_kinds_of_labels(dtype):
    data = simulate(seed=8, n=300)
    y = pd.Series(data.y if dtype == "Int64" else data.y == 1, dtype=dtype)
    clf = DelayedFeedbackClassifier(method="bl").fit(data.X, y)
    assert clf.classes_.tolist() == ([0, 1] if dtype == "Int64" else [False, True])
    assert clf.classes_.dtype.kind == ("i" if dtype == "Int64" else "b")


def test_it_simply_works():
    data = simulate(seed=0, n=3000)
    clf = DelayedFeedbackClassifier().fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert repr(clf.method_) == "DFM(delay='piecewise')"
    p = clf.predict_proba(data.X)[:, 1]
    assert abs(p.mean() - data.truth.mean()) < 0.01 < 0.02 < data.truth.mean() - data.y.mean()


@pytest.mark.parametrize("method", METHODS)
def test_without_times_every_method_is_logistic_regression(method):
    data = simulate(seed=1, n=500)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 500)
    l2 = 1e-3
    clf = DelayedFeedbackClassifier(method, model=LinearModel(l2=l2, tol=1e-10)).fit(
        data.X, data.truth, sample_weight=weight
    )
    reference = LogisticRegression(C=1 / (2 * l2 * weight.sum()), tol=1e-10, max_iter=2000)
    reference.fit(data.X, data.truth, sample_weight=weight)
    assert_allclose(clf.predict_proba(data.X), reference.predict_proba(data.X), atol=1e-5)
    assert_allclose(clf.coef_, reference.coef_, atol=1e-4)
    assert_allclose(clf.intercept_, reference.intercept_, atol=1e-4)


@pytest.mark.parametrize("method", ["dfm-piecewise", "hazard", "tw", "auto"])
@pytest.mark.parametrize("given", ["window", "horizon"])
def test_a_window_or_a_horizon_without_times_is_not_ignored(method, given):
    with pytest.raises(ValueError, match=f"with a {given} needs elapsed and delay"):
        DelayedFeedbackClassifier(method, **{given: 7.0}).fit(np.eye(4), [0, 1, 0, 1])
    assert DelayedFeedbackClassifier("bl", **{given: 7.0}).fit(np.eye(4), [0, 1, 0, 1])


def test_without_times_objects_are_logistic_regression_too():
    data = simulate(seed=1, n=300)
    plain = DelayedFeedbackClassifier("bl").fit(data.X, data.truth).predict_proba(data.X)
    for method in (NnDF(ascent=True), PU(), ConvDF("paper"), STC(short=1.0)):
        assert_allclose(
            DelayedFeedbackClassifier(method).fit(data.X, data.truth).predict_proba(data.X), plain, atol=1e-6
        )
    prior = DelayedFeedbackClassifier(PU(prior=0.9)).fit(data.X, data.truth).predict_proba(data.X)
    assert prior[:, 1].mean() > 0.8  # what is given is not ignored


def campaigns(**ask):
    log = EventLog.from_frame(
        simulate_campaigns(4000), arrival="click_time", outcome="conversion_time", until="2024-03-01"
    )
    return log.snapshot(**{"as_of": "2024-02-20", "lookback": "30d", "horizon": "14d", **ask})


def test_fit_snapshot_is_fit_with_its_parts():
    snap = campaigns()
    clf = DelayedFeedbackClassifier("convdf", window=7.0).fit_snapshot(snap)
    again = DelayedFeedbackClassifier("convdf", window=7.0, horizon=14.0)
    again.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    assert_array_equal(clf.predict_proba(snap.X), again.predict_proba(snap.X))
    assert clf.horizon is None and clf.horizon_ == 14.0 and clf.window_ == 7.0  # parameters stay as they were given
    weight = np.arange(len(snap)) % 2
    weighted = DelayedFeedbackClassifier().fit_snapshot(snap, sample_weight=weight)
    half = DelayedFeedbackClassifier(horizon=14.0).fit(
        snap.X.filter(weight == 1),
        snap.y[weight == 1],
        elapsed=snap.elapsed[weight == 1],
        delay=snap.delay[weight == 1],
    )
    assert_allclose(weighted.predict_proba(snap.X), half.predict_proba(snap.X), atol=1e-6)


@pytest.mark.parametrize(("mine", "theirs"), [(7.0, "14d"), (14.0, None)])
def test_horizons_that_disagree(mine, theirs):
    with pytest.raises(ValueError, match=f"the classifier has horizon={mine:g} but the snapshot was taken with"):
        DelayedFeedbackClassifier(horizon=mine).fit_snapshot(campaigns(horizon=theirs))
    assert DelayedFeedbackClassifier(horizon=14).fit_snapshot(campaigns()).horizon_ == 14.0


def test_coefficients_have_names():
    snap = campaigns()
    clf = DelayedFeedbackClassifier().fit_snapshot(snap)
    names = clf.get_feature_names_out()
    assert clf.coef_.shape == (2, len(names)) and clf.intercept_.shape == (2,)
    assert {"device=phone", "pages_viewed missing"} <= set(names)
    matrix = clf.model_.encoder_.transform(snap.X)
    assert_allclose(clf.model_.margins(snap.X), matrix @ clf.coef_.T + clf.intercept_)
    arrays = DelayedFeedbackClassifier("bl").fit(np.eye(4), [0, 1, 0, 1])
    assert arrays.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert arrays.get_feature_names_out(list("abcd")).tolist() == list("abcd")
    fields = DelayedFeedbackClassifier("bl").fit(FieldMatrix(np.arange(8).reshape(4, 2), 5000), [0, 1, 0, 1])
    assert fields.coef_.shape == (1, 5000)
    with pytest.raises(ValueError, match="hashed columns have no names"):
        fields.get_feature_names_out()
    with pytest.raises(AttributeError, match="has no coef_ before it is fitted"):
        DelayedFeedbackClassifier().coef_  # noqa: B018
    assert not hasattr(DelayedFeedbackClassifier(), "coef_")


def test_a_refit_forgets_the_last_one():
    snap = campaigns()
    times = {"elapsed": snap.elapsed, "delay": snap.delay}
    clf = DelayedFeedbackClassifier("auto", horizon=14.0).fit(snap.X, snap.y, **times)
    assert clf.selection_ and clf.feature_names_in_ is not None
    clf.set_params(method="bl").fit(np.eye(4), [0, 1, 0, 1])
    assert not hasattr(clf, "selection_") and not hasattr(clf, "feature_names_in_")
    assert clf.n_features_in_ == 4


@pytest.mark.parametrize("fault", ["labels", "a method that needs more", "an interrupt"])
def test_a_refit_that_fails_changes_nothing(fault, monkeypatch):
    data = simulate(seed=0, n=600)
    clf = DelayedFeedbackClassifier("tw", window=5.0).fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    before, state = clf.predict_proba(data.X), set(vars(clf))
    if fault == "labels":
        with pytest.raises(ValueError, match="one class only"):
            clf.fit(data.X[:, :2], np.ones(600))
    elif fault == "an interrupt":
        monkeypatch.setattr(LinearModel, "fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            clf.fit(data.X[:, :2], data.y, elapsed=data.elapsed, delay=data.delay)
        monkeypatch.undo()
    else:
        clf.set_params(method="convdf", window=15.0)
        with pytest.raises(ValueError, match="longer than half the history"):
            clf.fit(data.X[:, :2], data.y, elapsed=data.elapsed, delay=data.delay)
    assert set(vars(clf)) == state
    assert_array_equal(clf.predict_proba(data.X), before)


def test_an_engine_says_what_it_is():
    with pytest.raises(TypeError, match=r"LinearModel is an engine.*Use DelayedFeedbackClassifier\(model=LinearModel"):
        LinearModel().fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("l2", [np.int64(1), np.float32(1.0), 1, 1.0])
def test_any_number_is_a_number(l2):
    clf = DelayedFeedbackClassifier("bl", model=LinearModel(l2=l2)).fit(np.eye(4), [0, 1, 0, 1])
    assert_allclose(clf.predict_proba(np.eye(4))[:, 1], 0.5, atol=0.1)
