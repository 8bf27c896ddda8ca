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
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from belated import BL, PNUTW, ConvDF, DelayedFeedbackClassifier, LinearModel
from belated.methods import METHODS

NEED_TIMES = {"dfm", "dfm-weibull", "dfm-piecewise", "hazard", "stc"}


@parametrize_with_checks([DelayedFeedbackClassifier(method=name) for name in METHODS if name not in NEED_TIMES])
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
