"""Models x methods: their names, their order when time is short, what goes together, and a choice among models."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from belated import (
    BoostingModel,
    ConvDF,
    DelayedFeedbackClassifier,
    EventLog,
    LinearModel,
    NnDF,
    SoftLabels,
    backtest,
    train,
)
from belated.datasets import simulate_campaigns
from belated.evaluation.compatibility import why_not
from belated.evaluation.pairs import check_models, pair_up, waves
from belated.methods import METHODS, resolve_method
from belated.methods.biased import BL
from belated.models import MODELS, open_model

pytest.importorskip("lightgbm", reason="LightGBM is not installed, or libgomp is missing")

ASK = {"horizon": "10d", "lookback": "20d", "cutoffs": 2, "methods": ["tw", "soft-labels"], "progress": False}


@pytest.fixture(scope="module")
def log():
    clicks = simulate_campaigns(6000)
    return EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")


@pytest.fixture(scope="module")
def result(log):
    return backtest(log, models={"linear": LinearModel(tol=1e-5), "boost": BoostingModel(30)}, **ASK)


def test_the_first_model_keeps_the_names_of_methods(result):
    assert result.methods == [
        "bl",
        "tw",
        "soft-labels",
        "oracle",
        "boost:bl",
        "boost:tw",
        "boost:soft-labels",
        "boost:oracle",
    ]
    summary = result.summary()
    for name, row in summary["methods"].items():
        assert row["model"] == ("boost" if ":" in name else "linear") and name.endswith(row["method"])
        own = summary["methods"]["boost:oracle" if ":" in name else "oracle"]["log_loss"]
        assert_allclose(row["vs_own_oracle"], row["log_loss"] / own - 1)
    assert summary["methods"]["boost:tw"]["cutoffs"][0]["rounds"] == 30
    assert "oracle" not in summary["recommended"] and any("those of linear" in note for note in summary["notes"])


def test_a_pair_predicts_what_its_classifier_does(result, log):
    cutoff = result.cutoffs[0]
    snap = log.snapshot(as_of=cutoff.as_of, lookback="20d", horizon="10d")
    clf = DelayedFeedbackClassifier("tw", result.settings.window, 10.0, BoostingModel(30)).fit_snapshot(snap)
    test = log.matured_after(snap.as_of_micros, round(result.settings.period * 86_400_000_000), 10 * 86_400_000_000)
    assert_allclose(clf.predict_proba(test.X)[:, 1], cutoff.p["boost:tw"], atol=1e-12)


def test_one_model_alone_changes_nothing(result, log):
    alone = backtest(log, model=BoostingModel(30), **ASK)
    assert alone.methods == ["bl", "tw", "soft-labels", "oracle"]
    for mine, both in zip(alone.cutoffs, result.cutoffs, strict=True):
        assert_allclose(mine.p["soft-labels"], both.p["boost:soft-labels"], atol=1e-12)


def test_a_budget_keeps_what_all_are_measured_by(log):
    found = backtest(log, models=["linear", "boost"], budget=0.001, n_jobs=1, **ASK)
    assert found.methods == ["bl", "oracle"]
    assert len(found.skipped) == 6 and "no time for boost, soft-labels, tw" in found.notes[0]
    assert backtest(log, models=["linear"], budget="10m", n_jobs=1, **ASK).skipped == []


def test_cheap_pairs_come_first():
    methods = {name: resolve_method(name) for name in ("bl", "putw", "tw", "soft-labels")}
    pairs = pair_up(methods, {"linear": LinearModel(), "boost": BoostingModel()}, None)
    names = [[pair.name for pair in wave] for wave in waves(pairs, in_haste=True)]
    assert names[:4] == [["bl", "oracle"], ["soft-labels"], ["tw"], ["putw"]]
    assert names[4] == ["boost:soft-labels"] and sum(map(len, names)) == 10
    assert [len(wave) for wave in waves(pairs, in_haste=False)] == [5, 5]


def test_results_are_kept_by_pair(log, tmp_path):
    ask = {**ASK, "cache": tmp_path, "n_jobs": 1}
    first = backtest(log, models=["linear"], **ask)
    files = set(tmp_path.iterdir())
    backtest(log, models={"linear": LinearModel(tol=1e-5), "boost": BoostingModel(5)}, **ask)
    assert (
        files < set(tmp_path.iterdir()) and len(set(tmp_path.iterdir())) == 4
    )  # the linear ones were not fitted again
    assert first.methods[-1] == "oracle"


def test_what_goes_together_is_declared():
    for model in map(open_model, MODELS):
        for name in METHODS:
            assert why_not(resolve_method(name), model) is None
    assert "mini-batches" in why_not(NnDF(ascent=True), BoostingModel())
    assert "mini-batches" in why_not(NnDF(ascent=True), LinearModel())
    assert why_not(NnDF(ascent=True), open_model("network")) is None
    assert "curvature" in why_not(ConvDF(loss="double_hinge"), BoostingModel())
    assert why_not(ConvDF(loss="double_hinge"), LinearModel()) is None


def test_models_that_cannot_be():
    for models, message in (("boost", "must be a list"), ([], "is empty"), (["tree"], "is not known")):
        with pytest.raises(ValueError, match=message):
            check_models(models, None)
    with pytest.raises(ValueError, match="both given"):
        check_models(["linear"], LinearModel())
    assert list(check_models(None, BoostingModel())) == ["boost"]


def test_auto_chooses_among_models(log):
    """A rate that no linear model can follow: the product of two signs."""
    rng = np.random.default_rng(0)
    n = 6000
    X, elapsed, wait = rng.normal(size=(n, 3)), rng.uniform(0, 40, n), rng.exponential(3.0, n)
    final = rng.uniform(size=n) < np.where(X[:, 0] * X[:, 1] > 0, 0.7, 0.1)
    y = final & (wait <= np.minimum(elapsed, 20.0))
    clf = DelayedFeedbackClassifier("dfm-piecewise", 10.0, 20.0, "auto")
    clf.fit(X, y, elapsed=elapsed, delay=np.where(y, wait, np.nan))
    assert type(clf.model_).__name__ != "LinearModel" and "clearly better than linear" in clf.selection_why_
    p = clf.predict_proba(X)[:, 1]
    assert p[X[:, 0] * X[:, 1] > 0].mean() > 0.5


def test_train_takes_a_model_and_its_setting(log):
    trained = train(log, horizon="10d", lookback="20d", method="soft-labels", model="boost", rounds=20)
    assert trained.about["rounds"] == 20 and trained.about["model"] == "BoostingModel"
    for asked, message in (
        ({"model": "boost", "l2": 1.0}, "has rounds"),
        ({"model": "auto", "l2": 1.0}, "yet to be chosen"),
    ):
        with pytest.raises(ValueError, match=message):
            train(log, horizon="10d", method="bl", **asked)


def test_soft_labels_are_posteriors_within_the_horizon():
    """Open rows older than the horizon are negative, and on average open rows turn positive as often as they were said to."""
    from belated.data.labels import check_labels
    from belated.evaluation.learners import EngineLearner
    from belated.evaluation.teachers import Teachers

    rng = np.random.default_rng(3)
    n = 30_000
    X, elapsed, wait = rng.normal(size=(n, 2)), rng.uniform(0, 40, n), rng.exponential(8.0, n)
    ever = rng.uniform(size=n) < 1 / (1 + np.exp(0.5 - X[:, 0]))
    final = ever & (wait <= 20.0)
    y = final & (wait <= elapsed)
    labels = check_labels(y, elapsed, np.where(y, wait, np.nan), None, None, 20.0)
    # Hazard knows no share that never turns positive, and there is one here.
    for method, slack in ((SoftLabels(), 0.03), (SoftLabels("hazard"), 0.08), (SoftLabels(cross_fit=3), 0.03)):
        soft = method.labels(labels, EngineLearner(None, None, Teachers(X, tol=1e-5)))
        assert (soft[y] == 1).all() and (soft[~y & (elapsed >= 20)] == 0).all()
        for low, high in ((0, 2), (2, 5), (5, 10), (10, 20)):
            young = ~y & (elapsed >= low) & (elapsed < high)
            assert_allclose(soft[young].mean(), final[young].mean(), atol=slack)
    with pytest.raises(ValueError, match="says nothing about delays"):
        SoftLabels(BL()).labels(labels, EngineLearner(None, None, Teachers(X)))
    with pytest.raises(ValueError, match="cross_fit=1 must be"):
        SoftLabels(cross_fit=1).labels(labels, EngineLearner(None, None, Teachers(X)))
