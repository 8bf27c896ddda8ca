"""Fits on odd data: finite probabilities between 0 and 1, or a refusal in words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from effort import given_some
from hypothesis import strategies as st
from scipy import sparse

from belated import DelayedFeedbackClassifier, LinearModel
from belated.methods import METHODS

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 2024.0, 1e-6, 1e6, 1.7e9, -1e4]) | st.floats(-100, 100)


@st.composite
def problems(draw):
    n, columns = draw(st.integers(4, 40)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    scale, shift = (np.array(draw(st.lists(NUMBERS, min_size=columns, max_size=columns))) for _ in range(2))
    X = rng.normal(size=(n, columns)).round(draw(st.sampled_from([0, 1, 8]))) * scale + shift
    elapsed = rng.uniform(0, draw(st.sampled_from([0.01, 1.0, 30.0, 1e4])), n)
    if draw(st.booleans()):
        elapsed = np.floor(elapsed)
    y = rng.uniform(size=n) < draw(st.sampled_from([0.05, 0.3, 0.9]))
    delay = np.where(y, elapsed * rng.choice([0.0, 0.2, 1.0], n), np.nan)
    weight = draw(st.sampled_from([None, 1e-9, 1e6]))
    return {
        "X": sparse.csr_array(X) if draw(st.booleans()) else X,
        "y": y.astype(int),
        "elapsed": elapsed,
        "delay": delay,
        "sample_weight": None if weight is None else weight * rng.uniform(0, 1, n),
    }


SETTINGS = st.tuples(
    st.sampled_from([*METHODS, "auto"]),
    st.sampled_from([None, 0.005, 5.0, 20.0]),
    st.sampled_from([None, 0.01, 20.0, 1e5]),
    st.sampled_from([0.0, 1e-6, 1e-2, 1e4]),
)


@given_some(problems(), SETTINGS, few=150, many=4000)
def test_a_fit_gives_probabilities_or_says_why_not(problem, how):
    method, window, horizon, l2 = how
    X = problem.pop("X")
    horizon_cut = np.inf if horizon is None else horizon
    beyond = np.nan_to_num(problem["delay"]) > horizon_cut
    problem["y"], problem["delay"] = np.where(beyond, 0, problem["y"]), np.where(beyond, np.nan, problem["delay"])
    clf = DelayedFeedbackClassifier(method, window, horizon, LinearModel(l2=l2, max_iter=100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ConvergenceWarning among them; any other warning is an error
        try:
            clf.fit(X, **problem)
        except ValueError as error:
            assert len(str(error)) > 20
            return
        with np.errstate(over="ignore"):
            p = clf.predict_proba(X)
    assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()
    assert p.sum(axis=1) == pytest.approx(1.0)
