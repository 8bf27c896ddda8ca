"""Settings chosen by the risk of stretches of time left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from belated import FSIW, LinearModel
from belated.data.labels import check_labels
from belated.data.stretches import stretch_of_rows
from belated.evaluation.cross_validation import Choice, choose_setting, left_out_risk
from belated.evaluation.teachers import Teachers
from belated.methods import METHODS, resolve_method
from belated.methods.biased import BL
from belated.risks.weighted import WeightedRisk


def snapshot(n=3000, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    X, elapsed, wait = rng.normal(size=(n, columns)), rng.uniform(0, 40, n), rng.exponential(5.0, n)
    converts = rng.uniform(size=n) < 1 / (1 + np.exp(1 - X[:, 0]))
    y = converts & (wait <= elapsed)
    return X, check_labels(y, elapsed, np.where(y, wait, np.nan), None, 8.0, 40.0)


def choose(X, labels, method, l2, model=None):
    return choose_setting(X, {"m": labels}, model or LinearModel(), {"m": resolve_method(method)}, l2, Teachers(X))["m"]


def test_stretches_are_blocks_of_arrival_time_of_equal_size():
    age = np.random.default_rng(0).exponential(10.0, 6000)
    stretch = stretch_of_rows(age)
    assert_array_equal(np.bincount(stretch), np.full(6, 1000))
    for k in range(5):
        assert age[stretch == k].min() >= age[stretch == k + 1].max()
    by_day = stretch_of_rows(np.floor(age))
    assert all(len(set(by_day[np.floor(age) == day])) == 1 for day in range(5))  # a day is not cut in two


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_fits_noise_or_nothing_is_not_taken(method):
    X, labels = snapshot(n=3000, columns=40)
    choice = choose(X, labels, method, [1e-7, 0.03, 1000.0])
    # STC learns beside the rate which positives come early, and here that depends on nothing.
    assert isinstance(choice, Choice) and choice.value == (1000.0 if method == "stc" else 0.03)


def test_the_risk_is_that_of_rows_left_out_of_the_fit():
    """By hand, with scikit-learn's logistic regression."""
    from sklearn.linear_model import LogisticRegression

    X, labels = snapshot()
    choice = choose(X, labels, "bl", [1e-2], LinearModel(tol=1e-10))
    fold, total = stretch_of_rows(labels.elapsed) % 3, 0.0
    for k in range(3):
        inside = fold != k
        plain = LogisticRegression(C=1 / (2 * inside.sum() * 1e-2), tol=1e-10, max_iter=1000)
        p = plain.fit(X[inside], labels.y[inside]).predict_proba(X[~inside])[:, 1]
        total -= np.log(np.where(labels.y[~inside], p, 1 - p)).sum() / len(labels.y)
    assert_allclose(choice.risks[1e-2], total, rtol=5e-4)


def test_labels_left_out_have_no_influence_on_auxiliary_fits():
    """FSIW learns its weights; a fold's may not look at the labels it is scored on."""
    X, labels = snapshot()
    seen = []

    class Watched(LinearModel):
        def auxiliary_margin(self, encoded, risk, rows, groups, new_groups):
            seen.append(rows)
            return super().auxiliary_margin(encoded, risk, rows, groups, new_groups)

    choose(X, labels, FSIW(), [1e-2], Watched())
    fold = stretch_of_rows(labels.elapsed) % 3
    assert len(seen) == 6  # two models in each of three folds
    for k, rows in enumerate(seen):
        assert not rows[fold == k // 2].any()


def test_more_regularisation_is_taken_within_one_standard_error():
    X, labels = snapshot(n=600)
    choice = choose(X, labels, "bl", [1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
    best = min(choice.risks, key=choice.risks.get)
    assert choice.value >= best
    assert choice.risks[choice.value] < choice.risks[best] + 0.01


def test_a_model_without_a_path_and_labels_without_times():
    X, labels = snapshot()
    final = check_labels(labels.y)
    assert choose(X, final, "bl", [1e-3, 1e-1]).value == 1e-3

    class Plain(LinearModel):
        path = None

    choice = choose(X, labels, "bl", [1e-3, 1e-1], Plain(l2=0.5))
    assert choice.value is None and len(choice.risks) == 1


def test_a_method_that_cannot_be_fitted_says_why():
    X, labels = snapshot(n=200)
    assert "longer than half the history" in choose(
        X, check_labels(labels.y, labels.elapsed, labels.delay, None, 39.0, 40.0), "convdf", [1.0]
    )
    assert choose_setting(X, {"a": labels}, LinearModel(), {"a": BL()}, [1.0])["a"].value == 1.0


@pytest.mark.parametrize("days", [1, 2, 3, 4, 7])
def test_rows_that_came_on_few_days_still_make_folds(days):
    X, labels = snapshot(n=600)
    age = 20.0 + np.random.default_rng(0).integers(0, days, 600)
    few = check_labels(labels.y, age, np.where(labels.y, np.resize([1.0, 2.0, 5.0], 600), np.nan), None, 8.0, 40.0)
    for method in ("bl", "tw", "dfm-piecewise", "fsiw"):
        choice = choose(X, few, method, [1e-3, 1e-2])
        if days == 1:
            assert "came at the same time" in choice
        else:
            assert isinstance(choice, (Choice, str)) and (isinstance(choice, str) or np.isfinite(choice.risks[1e-2]))


def test_values_of_l2_are_judged_by_one_and_the_same_risk():
    """FSIW's weights are learned, and depend on l2. A model that does not change must have a risk that does not."""
    X, labels = snapshot()

    class Constant(LinearModel):
        def margins(self, X):
            return np.full((X.shape[0], 1), -1.0)

    choice = choose(X, labels, "fsiw", [1e-6, 1e-4, 1e-2], Constant())
    assert len(choice.risks) == 3 and np.ptp(list(choice.risks.values())) < 1e-12


def test_a_negative_part_below_zero_counts_by_its_size():
    a, b, g = np.array([0.5, 0.1]), np.array([-0.4, 0.3]), np.array([[3.0], [-2.0]])
    risk = WeightedRisk(a, b)
    positive, negative = (a * np.logaddexp(0, -g[:, 0])).sum(), (b * np.logaddexp(0, g[:, 0])).sum()
    assert negative < 0
    assert_allclose(left_out_risk(risk, g, np.zeros(0)), positive - negative)
    assert_allclose(left_out_risk(risk, -g, np.zeros(0)), risk.row_costs(-g).sum())  # here it is above


def test_a_method_that_overfits_by_a_difference_is_regularised():
    """PUTW's risk of rows left out falls without end as a model fits noise, unless what is below zero counts."""
    X, labels = snapshot(n=800, columns=150)
    assert choose(X, labels, "putw", [1e-7, 1e-5, 1e-1]).value == 1e-1
