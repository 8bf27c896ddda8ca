"""Every method under every model: one test for what all of them must do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulate import simulate
from sklearn.base import clone

from belated import DelayedFeedbackClassifier, SoftLabels, load
from belated.methods import METHODS
from belated.models import MODELS, resolve_model

NEEDS = {"boost": "lightgbm", "network": "torch"}
FEW = {"linear": {"l2": 1e-3}, "boost": {"rounds": 30}, "network": {"epochs": 8}}

# As free as a linear model of one 0/1 column without a penalty: both then have the same minimum.
SATURATED = {
    "linear": {"l2": 0.0, "tol": 1e-10},
    "network": {
        "epochs": 60,
        "learning_rate": 3e-3,
        "decay": 0.0,
        "dropout": 0.0,
        "delay_model": "full",
        "batch_size": 1000,
    },
    "boost": {"rounds": 400, "learning_rate": 0.2, "num_leaves": 2, "min_data_in_leaf": 1, "delay_model": "full"},
}


@pytest.fixture(params=MODELS)
def model(request):
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param], reason=f"{NEEDS[request.param]} is not installed")
    return request.param


def classifier(method, model, **more):
    found = SoftLabels(l2=1e-3) if method == "soft-labels" else method
    return DelayedFeedbackClassifier(found, 5.0, 20.0, resolve_model(model, **more))


def fitted(clf, data, rows=slice(None), **more):
    return clf.fit(data.X[rows], data.y[rows], elapsed=data.elapsed[rows], delay=data.delay[rows], **more)


@pytest.mark.parametrize("method", METHODS)
def test_a_pair(method, model, tmp_path):
    data = simulate(seed=0, n=2500)
    clf = fitted(classifier(method, model, **FEW[model]), data)
    p = clf.predict_proba(data.X)[:, 1]
    assert p.shape == (2500,) and np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()

    # It ranks rows better than a constant, by their final labels.
    order = np.argsort(p)
    assert data.truth[order[1250:]].mean() > data.truth[order[:1250]].mean() + 0.1

    # It can be cloned, and the clone learns the same.
    again = fitted(clone(clf), data)
    assert_array_equal(again.predict_proba(data.X)[:, 1], p)

    # A row of weight 0 is no row.
    keep = np.random.default_rng(0).uniform(size=2500) < 0.8
    weighted = fitted(clone(clf), data, sample_weight=keep.astype(float))
    assert_allclose(
        weighted.predict_proba(data.X)[:, 1],
        fitted(clone(clf), data, keep).predict_proba(data.X)[:, 1],
        atol=1e-9,
    )

    # A file gives it back.
    clf.save(tmp_path / "model.skops")
    assert_allclose(load(tmp_path / "model.skops").predict_proba(data.X)[:, 1], p, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_as_free_as_a_linear_model_it_finds_the_same_probabilities(method, model):
    if model == "linear" or model not in SATURATED:
        pytest.skip("it is compared with the linear model")
    if method == "age":
        pytest.skip("trees are monotone in age, and levels of a linear model are not")
    if (method, model) == ("ulc", "network"):
        pytest.skip(
            "auxiliary models of a network see rows five times, too few for what ULC hands on from round to round"
        )
    data = simulate(seed=1, n=3000)
    data.X = (data.X[:, :1] > 0).astype(float)
    found, expected = (
        fitted(classifier(method, name, **SATURATED[name]), data).predict_proba(data.X)[:, 1]
        for name in (model, "linear")
    )
    assert_allclose(found, expected, atol=0.02 if model == "network" else 2e-3)  # a network ends near a minimum


@pytest.mark.parametrize("method", METHODS)
def test_what_comes_later_has_no_influence(method, model):
    """A fit on what was known at a time is the same, whatever becomes of the rows afterwards."""
    data = simulate(seed=2, n=2000)
    before = data.elapsed - 6.0
    old = before >= 0
    for change in (0.0, 5.0):
        seen = data.truth & (
            np.where(data.truth, data.full_delay, np.inf) + change * (data.full_delay > before) <= before
        )
        clf = classifier(method, model, **FEW[model])
        clf.fit(
            data.X[old], seen[old].astype(int), elapsed=before[old], delay=np.where(seen, data.full_delay, np.nan)[old]
        )
        p = clf.predict_proba(data.X)
        if change == 0.0:
            expected = p
    assert_array_equal(p, expected)
