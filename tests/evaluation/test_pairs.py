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
    Hazard,
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


@pytest.mark.slow
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
    for wrong, message in (
        (SoftLabels(BL()), "says nothing about delays"),
        (SoftLabels("soft-labels"), "says nothing about delays"),
        (SoftLabels("banana"), "teacher='banana' is not known"),
        (SoftLabels(cross_fit=1), "cross_fit=1 must be"),
        (SoftLabels(cross_fit=2.5), "cross_fit=2.5 must be"),
        (SoftLabels(l2="x"), "l2='x' must be"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong.check(labels)
    same = check_labels(y, np.full(n, 40.0), np.where(y, wait, np.nan), None, None, 20.0)
    with pytest.raises(ValueError, match="all rows have the same age"):
        SoftLabels(cross_fit=3).check(same)


def test_teachers_differ_where_their_parameters_do(log):
    """Also where both print alike, as arrays and laws of one's own do."""
    from belated.data.labels import check_labels
    from belated.evaluation.teachers import Teachers

    class Own(Hazard):
        def __repr__(self, N_CHAR_MAX=700):
            return "Own()"

    snap = log.snapshot(as_of="2024-02-15", lookback="20d", horizon="10d")
    labels = check_labels(snap.y == 1, snap.elapsed, snap.delay, None, None, 10.0)
    teachers = Teachers(snap.X, tol=1e-5)
    few, many = (teachers.teach(Own(intervals=count), labels, l2=1e-3) for count in (1, 8))
    assert len(few.shared) < len(many.shared)


def test_the_levels_of_ages_know_nothing_of_rows_left_out():
    from belated.data.labels import check_labels

    rng = np.random.default_rng(0)
    n = 400
    elapsed, wait = rng.uniform(0, 20, n), rng.exponential(4.0, n)
    out = rng.uniform(size=n) < 0.3
    for name in ("age", "person-period"):
        found = []
        for flip in (False, True):
            y = (wait <= elapsed) & ~(flip & out & (elapsed < 10))
            labels = check_labels(y, elapsed, np.where(y, wait, np.nan), None, None, 20.0)
            risk = resolve_method(name).build_risk(labels, None)
            fitted = risk.take(~out)
            count = risk.occurrences.count
            left = risk.left_out(out, fitted)
            assert_allclose(left.occurrences.levels, fitted.occurrences.levels)
            assert_allclose(
                left.row_costs(np.zeros((out.sum(), count))),
                risk.left_out(out, fitted).row_costs(np.zeros((out.sum(), count))),
            )
            found.append(fitted.occurrences.levels)
        if name == "age":
            assert_allclose(*found)


def test_auto_for_both(log):
    snap = log.snapshot(as_of="2024-02-25", lookback="30d", horizon="10d")
    clf = DelayedFeedbackClassifier("auto", 5.0, model="auto").fit_snapshot(snap)
    assert {"dfm-piecewise", "tw", "boost:soft-labels"} <= set(clf.selection_)
    assert 0.02 < clf.predict_proba(snap.X)[:, 1].mean() < 0.5


def test_auto_leaves_out_models_that_cannot_fit_a_method(log):
    from belated.evaluation.method_choice import auto_pairs

    with pytest.raises(ValueError, match="mini-batches"):
        auto_pairs({"linear": LinearModel(), "boost": BoostingModel()}, NnDF(ascent=True))
    found = auto_pairs({"linear": LinearModel(), "boost": BoostingModel()}, ConvDF(loss="double_hinge"))
    assert [pair.model_name for pair in found] == ["linear"]


def test_a_setting_that_was_given_is_recommended_as_it_is(log, monkeypatch):
    found = backtest(log, model=BoostingModel(7), **ASK)
    monkeypatch.setattr("belated.evaluation.recommendation.choose_setting", None)
    assert found.recommend().setting == {"rounds": 7}


def test_squared_loss_under_trees():
    from simulate import simulate

    data = simulate(seed=0, n=2000)
    clf = DelayedFeedbackClassifier(ConvDF(loss="squared"), 5.0, 20.0, BoostingModel(60))
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert np.corrcoef(clf.predict_proba(data.X)[:, 1], data.rate)[0, 1] > 0.6
