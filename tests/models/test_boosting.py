"""BoostingModel: LightGBM's own objectives as special cases, and what it does with tables, files and constraints."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from simulate import simulate

from belated import DFM, BoostingModel, CodeEncoder, DelayedFeedbackClassifier, FieldMatrix, LinearModel, NnDF, load
from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_path
from belated.methods import METHODS, resolve_method
from belated.models.tree_text import rewritten
from belated.risks.weighted import WeightedRisk

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed, or libgomp is missing")

WIDTH = 6  # columns of what is simulated
PLAIN = {"objective": "binary", "learning_rate": 0.03, "num_leaves": 15, "min_data_in_leaf": 100, "verbose": -1}


def fit(method, data, X=None, **more):
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, BoostingModel(**{"rounds": 60, **more}))
    return clf.fit(data.X if X is None else X, data.y, elapsed=data.elapsed, delay=data.delay)


def labels_of(data, **more):
    return check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)


def make_table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "city": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "price": rng.normal(size=n),
            "noise": rng.normal(size=n),
        }
    )
    table.loc[rng.uniform(size=n) < 0.1, "price"] = np.nan
    rate = 1 / (1 + np.exp(1.0 - 2.0 * (table.city == "b") - table.price.fillna(1.5)))
    return table, (rng.uniform(size=n) < rate).to_numpy().astype(int)


@pytest.mark.parametrize("method", ["bl", "tw"])
def test_without_a_correction_it_is_lightgbm_itself(method):
    data = simulate(seed=0, n=4000)
    rows = data.elapsed >= (5.0 if method == "tw" else 0.0)
    plain = lightgbm.train(PLAIN, lightgbm.Dataset(data.X[rows], data.y[rows]), 60)
    found = fit(method, data, feature_fraction=1.0).predict_proba(data.X)[:, 1]
    assert_allclose(found, plain.predict(data.X), atol=1e-5)


def test_weights_are_those_of_lightgbm():
    data = simulate(seed=1, n=4000)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, 4000)
    weight /= weight.mean()
    plain = lightgbm.train(PLAIN, lightgbm.Dataset(data.X, data.y, weight=weight), 60)
    clf = DelayedFeedbackClassifier("bl", model=BoostingModel(60, feature_fraction=1.0))
    for scale in (1.0, 1e-9):
        clf.fit(data.X, data.y, sample_weight=scale * weight)
        assert_allclose(clf.predict_proba(data.X)[:, 1], plain.predict(data.X), atol=1e-5)


def test_soft_weights_are_cross_entropy():
    data = simulate(seed=2, n=3000)
    soft = np.random.default_rng(0).uniform(size=3000)
    model = BoostingModel(60, feature_fraction=1.0)
    model.fit(model.encode(data.X, np.ones(3000)), WeightedRisk(soft / 3000, (1 - soft) / 3000))
    plain = lightgbm.train({**PLAIN, "objective": "cross_entropy"}, lightgbm.Dataset(data.X, soft), 60)
    assert_allclose(model.margins(data.X)[:, 0], plain.predict(data.X, raw_score=True), atol=1e-4)


@pytest.mark.parametrize("delay", ["exponential", "weibull", "piecewise"])
@pytest.mark.parametrize("grid", [False, True])
def test_the_curvature_of_dfm_bounds_the_true_one(delay, grid, monkeypatch):
    data = simulate(seed=3, n=500)
    if grid:
        data.elapsed, data.delay = np.ceil(data.elapsed), np.floor(data.delay)
    risk = DFM(delay).risk(labels_of(data), None)
    rng = np.random.default_rng(0)
    for _ in range(20):
        margins = rng.normal(0, 3, size=(500, 2))
        shared = risk.start()[1] + rng.normal(0, 0.5, risk.n_shared)
        bound = risk.bounding_curvature(margins, shared)
        with monkeypatch.context() as patch:
            patch.setattr("belated.risks.compiled_costs.MANY", 0)
            assert_allclose(risk.bounding_curvature(margins, shared), bound, rtol=1e-9, atol=1e-15)
        assert (bound >= 0).all() and (bound >= risk.curvature(margins, shared) - 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
def test_rounds_lower_the_risk_and_a_path_is_one_sequence(method):
    data = simulate(seed=4, n=2000)
    labels, model = labels_of(data), BoostingModel(delay_model="shallow")
    encoded = model.encode(data.X, labels.weight)
    from belated.evaluation.teachers import Teachers

    fits = fit_path(model, encoded, resolve_method(method), labels, [5, 20, 40], Teachers(data.X))
    alone = fit(method, data, rounds=20, delay_model="shallow")
    assert_allclose(fits[1].predict(data.X), alone.predict_proba(data.X)[:, 1], atol=1e-12)
    risks = []
    for one in fits:
        risk = alone.method_.build_risk(labels, _learner(one.model, encoded, data))
        risks.append(risk.row_costs(one.model.margins(data.X), one.model.shared_).sum())
    assert risks[0] > risks[1] > risks[2]


def _learner(model, encoded, data):
    from belated.evaluation.learners import EngineLearner
    from belated.evaluation.teachers import Teachers

    return EngineLearner(model, encoded, Teachers(data.X))


@pytest.mark.parametrize("how", ["linear", "shallow", "constant", "full"])
def test_the_shared_parameters_end_at_their_best(how):
    """Given the margins, no other hazards would do better."""
    data = simulate(seed=5, n=4000)
    clf = fit("dfm-piecewise", data, delay_model=how, rounds=150)
    risk = clf.method_.risk(labels_of(data), None)
    margins, shared = clf.model_.margins(data.X), clf.model_.shared_
    gradient = risk.value_and_gradient(margins, shared)[2]
    assert np.abs(gradient).max() < 1e-3
    if how == "constant":
        assert np.ptp(margins[:, 1]) == 0


def test_the_number_of_rounds_is_chosen_where_it_is_open():
    data = simulate(seed=6, n=3000)
    few = fit("bl", data, X=np.random.default_rng(0).normal(size=(3000, 5)), rounds=None).model_.rounds
    some = fit("bl", data, rounds=None).model_.rounds
    assert few < some  # of noise one learns nothing
    model = BoostingModel()
    with pytest.raises(ValueError, match="rounds=None asks for a choice"):
        model.fit(model.encode(data.X, np.ones(3000)), WeightedRisk(np.full(3000, 1e-4), np.full(3000, 1e-4)))


def test_tables_with_categories_and_missing_values():
    table, y = make_table()
    for categories in ("frequency", "native"):
        model = BoostingModel(60, categories=categories, min_data_in_leaf=20)
        clf = DelayedFeedbackClassifier("bl", model=model).fit(table, y)
        p = clf.predict_proba(table)[:, 1]
        assert -np.mean(np.log(np.where(y, p, 1 - p))) < 0.56
        missing = table.price.isna() & (table.city == "a")
        assert p[missing].mean() > p[~missing & (table.city == "a")].mean() + 0.1
        importance = dict(zip(clf.get_feature_names_out(), clf.model_.feature_importances_, strict=True))
        assert_allclose(sum(importance.values()), 1.0)
        assert importance["noise"] < min(importance["city"], importance["price"])
        new = clf.predict_proba(table.assign(city="zz"))
        assert np.isfinite(new).all()


def test_arrays_with_missing_values():
    data = simulate(seed=7, n=2000)
    X = data.X.copy()
    X[::7, 0] = np.nan
    for method in ("bl", "dfm-piecewise", "fsiw", "soft-labels"):
        assert np.isfinite(fit(method, data, X=X).predict_proba(X)).all()
    with pytest.raises(ValueError, match="NaN"):
        DelayedFeedbackClassifier("bl", model=LinearModel()).fit(X, data.y)
    with pytest.raises(ValueError, match="NaN"):
        fit("bl", data, X=sparse.csr_array(X))  # zeros and missing values of sparse matrices are easily confused


def test_fields_and_sparse_matrices():
    data = simulate(seed=8, n=2000)
    indices = np.column_stack([np.digitize(data.X[:, j], [-1, 0, 1]) + 5 * j for j in range(3)])
    fields = FieldMatrix(indices, 2**20)
    for X in (fields, sparse.csr_array(data.X), FieldMatrix(indices, 40).to_csr()):
        for method in ("bl", "dfm", "fsiw", "age"):
            clf = fit(method, data, X=X)
            p = clf.predict_proba(X)[:, 1]
            assert np.corrcoef(p, data.rate)[0, 1] > 0.6
    other = FieldMatrix(np.full((2, 3), 7), 2**20)  # a category never seen in these fields
    assert np.isfinite(fit("bl", data, X=fields).predict_proba(other)).all()


def test_monotone_columns():
    table, y = make_table()
    line = pd.DataFrame({"city": "a", "price": np.linspace(-3, 3, 50), "noise": 0.0})
    free = DelayedFeedbackClassifier("bl", model=BoostingModel(100)).fit(table, y).predict_proba(line)[:, 1]
    assert (np.diff(free) < 0).any()
    for sign in (1, -1):
        model = BoostingModel(100, monotone={"price": sign})
        p = DelayedFeedbackClassifier("bl", model=model).fit(table, y).predict_proba(line)[:, 1]
        assert (sign * np.diff(p) >= 0).all()
    wrongs = (
        ({"cost": 1}, "no column of X"),
        ({"city": 1}, "have no order"),
        ([1, 0, 0], "have no order"),
        ([1], "1 entries"),
        ({"price": 0.5}, "0.5 for price"),
        ({"price": "up"}, "'up' for price"),
        ([0, 3, 0], "3 for price"),
    )
    for wrong, message in wrongs:
        with pytest.raises(ValueError, match=message):
            DelayedFeedbackClassifier("bl", model=BoostingModel(5, monotone=wrong)).fit(table, y)


def test_age_is_monotone_in_sum_with_its_level():
    """Fast rows are all there at once, slow ones rise for long: with age, the sum may only rise, each at its own pace."""
    rng = np.random.default_rng(9)
    n = 20_000
    X, elapsed = rng.integers(0, 2, (n, 1)).astype(float), rng.uniform(0, 20, n)
    wait = rng.exponential(np.where(X[:, 0] == 1, 0.3, 6.0))
    final = (rng.uniform(size=n) < 0.3) & (wait <= 20.0)
    y = final & (wait <= elapsed)
    model = BoostingModel(300, min_data_in_leaf=20, feature_fraction=1.0)
    clf = DelayedFeedbackClassifier("age", 10.0, 20.0, model).fit(
        X, y, elapsed=elapsed, delay=np.where(y, wait, np.nan)
    )
    ends = np.array([[0.0], [1.0]])
    totals = clf.model_.margins(ends) + clf.link_.levels
    assert totals.shape == (2, 10) and (np.diff(totals, axis=1) >= -1e-9).all()
    for value, p in zip(ends[:, 0], clf.predict_proba(ends)[:, 1], strict=True):
        # The last group is the oldest tenth of ages, in which nearly all of them have come.
        assert abs(p - y[(X[:, 0] == value) & (elapsed > 18)].mean()) < 0.02


def test_monotone_columns_are_those_of_the_first_margin_alone():
    """An auxiliary model, or the second part of STC, may well fall with what the rate rises with."""
    data = simulate(seed=18, n=3000)
    signs = [1] * WIDTH
    for method in ("fsiw", "stc", "dfm"):
        clf = fit(method, data, monotone=signs, delay_model="full")
        line = np.zeros((40, WIDTH))
        line[:, 0] = np.linspace(-3, 3, 40)
        margins = clf.model_.margins(line)
        assert (np.diff(margins[:, 0]) >= -1e-12).all()
        if method != "fsiw":
            falls = [np.diff(clf.model_.margins(np.eye(WIDTH)[j] * line[:, :1])[:, 1]).min() for j in range(WIDTH)]
            assert min(falls) < 0


def test_shap_values_add_up_to_the_margin():
    data = simulate(seed=10, n=1500)
    clf = fit("convdf", data)
    assert_allclose(clf.model_.shap_values(data.X).sum(axis=1), clf.model_.margins(data.X)[:, 0], atol=1e-6)
    thin = sparse.csr_array(data.X)
    assert_allclose(fit("convdf", data, X=thin).model_.shap_values(thin), clf.model_.shap_values(data.X), atol=1e-9)
    with pytest.raises(ValueError, match="one for each group"):
        fit("age", data).model_.shap_values(data.X)


def test_the_same_seed_gives_the_same_trees():
    data = simulate(seed=11, n=2000)
    once, again = (fit("dfm-piecewise", data, bagging_fraction=0.5).predict_proba(data.X) for _ in range(2))
    assert_array_equal(once, again)
    other = fit("dfm-piecewise", data, bagging_fraction=0.5, seed=1).predict_proba(data.X)
    assert np.abs(other - once).max() > 1e-3


def test_steps_are_short_where_labels_are_beyond_one():
    """ConvDF gives late rows a label above 1, which no margin reaches: trees must not run away at once."""
    data = simulate(seed=12, n=2000)
    model = fit("convdf", data, rounds=10).model_
    assert np.ptp(model.margins(data.X)) <= 2 * 10 * 0.2


def test_what_it_cannot_do_is_said_before_it_begins():
    data = simulate(seed=13, n=500)
    cases = [
        ({}, NnDF(ascent=True), "mini-batches"),
        ({}, NnDF(loss="double_hinge"), "needs a loss with a curvature"),
        ({"delay_model": "deep"}, "bl", "delay_model='deep' is not known"),
        ({"categories": "hash"}, "bl", "categories='hash' is not known"),
        ({"rounds": -1}, "bl", "rounds=-1 must be"),
    ]
    for parameters, method, message in cases:
        with pytest.raises(ValueError, match=message):
            fit(method, data, **parameters)


@pytest.mark.parametrize("method", ["bl", "dfm-piecewise", "stc", "person-period"])
def test_a_file_gives_the_same_model_back(method, tmp_path):
    table, _ = make_table()
    data = simulate(seed=14, n=2000)
    clf = fit(method, data, X=table.assign(city=table.city.astype("category")))
    clf.save(tmp_path / "m.skops")
    expected = clf.predict_proba(table)
    for again in (load(tmp_path / "m.skops"), pickle.loads(pickle.dumps(clf))):
        assert_allclose(again.predict_proba(table), expected, atol=1e-12)
        assert_allclose(again.model_.feature_importances_, clf.model_.feature_importances_, rtol=1e-4)


def test_damaged_trees_are_refused_before_they_are_read():
    data = simulate(seed=15, n=2000)
    model = fit("bl", data).model_
    text = model.__getstate__()["boosters_"][0]
    again = lightgbm.Booster(model_str=rewritten(text, WIDTH))
    assert_array_equal(again.predict(data.X), model.boosters_[0].predict(data.X))
    assert rewritten(rewritten(text, WIDTH), WIDTH) == rewritten(text, WIDTH)
    table, y = make_table()
    native = DelayedFeedbackClassifier("bl", model=BoostingModel(20, categories="native")).fit(table, y).model_
    native_text = native.__getstate__()["boosters_"][0]
    assert "num_cat=1" in native_text
    rewritten(native_text, 3)
    damages = [
        ("left_child=", "left_child=999 "),
        ("split_feature=", "split_feature=77 "),
        ("is_linear=0", "is_linear=1"),
        ("\nTree=1\n", "\nTree=5\n"),
        ("end of trees", "Tree=99"),
        ("num_leaves=15", "num_leaves=14"),
        ("num_leaves=15", "num_leaves=1_5"),
        ("num_leaves=15", "num_leaves=15\x0cnum_leaves=3"),
        ("num_leaves=15", "num_leaves=15\u2028"),
        ("num_leaves=15", "num_leaves=15\nnum_leaves=15"),
        ("num_leaves=15", "num_leaves=15\nleaf_const=0"),
        ("leaf_value=", "leaf_value=nan "),
        ("shrinkage=", "shrinkage=inf"),
        ("end of trees\n", "end of trees\n\nTree=60\nnum_leaves=1\n"),
    ]
    for old, new in damages:
        assert old in text
        with pytest.raises(ValueError, match="tree"):
            rewritten(text.replace(old, new, 1), WIDTH)
    fields = {name: values for name, _, values in (line.partition("=") for line in text.split("\n")[::-1])}
    for name in ("left_child", "leaf_value", "threshold"):
        words = fields[name].split(" ")
        values = {
            "left_child": ("0", "0.5", "1e0", "-99"),
            "leaf_value": ("nan", "inf", "1e308"),
            "threshold": ("nan", "x"),
        }
        for value in values[name]:
            with pytest.raises(ValueError, match="tree"):
                rewritten(text.replace(fields[name], " ".join([value, *words[1:]])), WIDTH)
    shared = text.replace(fields["left_child"], fields["right_child"])  # two ways to one node: hours of SHAP values
    with pytest.raises(ValueError, match="leads nowhere"):
        rewritten(shared, WIDTH)


def test_parameters_that_are_not_passed_on():
    data = simulate(seed=16, n=500)
    for name in ("objective", "application", "metric", "num_class", "boosting", "linear_tree", "banana"):
        with pytest.raises(ValueError, match=f"params has {name!r}, which is not passed on"):
            fit("bl", data, params={name: 1})
    for name, own in (("eta", "learning_rate"), ("max_leaves", "num_leaves"), ("n_jobs", "threads"), ("seed", "seed")):
        with pytest.raises(ValueError, match=rf"use BoostingModel\({own}="):
            fit("bl", data, params={name: 1})
    with pytest.raises(ValueError, match="must be a mapping"):
        fit("bl", data, params=[1])
    with pytest.raises(ValueError, match="LightGBM refuses"):
        fit("bl", data, params={"max_bin": 1})
    flat = fit("bl", data, params={"min_gain_to_split": 1e9})
    assert np.ptp(flat.predict_proba(data.X)[:, 1]) == 0
    wrong = {
        "learning_rate": (0, -1, float("nan"), "x", True),
        "num_leaves": (1, 2.5, None),
        "min_data_in_leaf": (-1,),
        "feature_fraction": (0, 1.5),
        "bagging_fraction": (-0.1, "all"),
        "threads": (0,),
        "rounds": (True, 2.5),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=f"{name}="):
                fit("bl", data, **{name: value})
    assert fit("bl", data, rounds=np.int64(3)).model_.rounds == 3


@pytest.mark.parametrize("method", ["bl", "dfm-piecewise", "fsiw", "stc", "soft-labels", "hazard"])
def test_columns_without_anything_to_split(method, tmp_path):
    data = simulate(seed=17, n=2000)
    clf = fit(method, data, X=np.ones((2000, 2)))
    p = clf.predict_proba(np.ones((5, 2)))[:, 1]
    assert np.ptp(p) == 0 and abs(p[0] - data.truth.mean()) < 0.1
    assert clf.model_.feature_importances_.tolist() == [0, 0]
    clf.save(tmp_path / "m.skops")
    assert_array_equal(load(tmp_path / "m.skops").predict_proba(np.ones((5, 2)))[:, 1], p)


def test_codes_follow_frequency():
    table = pd.DataFrame({"c": ["x", "y", "y", None, "z", "z", "z"], "n": np.arange(7.0)})
    encoder = CodeEncoder().fit(table)
    assert encoder.transform(table)[:, 0].tolist() == [2, 1, 1, 3, 0, 0, 0]
    heavy = CodeEncoder().fit(table, sample_weight=[9, 1, 1, 1, 1, 1, 1])
    assert heavy.transform(table)[:, 0].tolist() == [0, 2, 2, 3, 1, 1, 1]
    assert encoder.categorical_.tolist() == [True, False]
    words = CodeEncoder(na=["?"]).fit(table)
    assert_array_equal(words.transform(table.assign(c="?"))[:, 0], np.full(7, 3.0))


def test_a_file_says_which_library_it_needs(tmp_path, monkeypatch):
    data = simulate(seed=19, n=500)
    fit("bl", data).save(tmp_path / "m.skops")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ValueError, match=r"m\.skops: this needs lightgbm: ") as caught:
        load(tmp_path / "m.skops")
    assert "damaged" not in str(caught.value)
