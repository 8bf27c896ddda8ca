"""TableEncoder, and fits on pandas, polars and pyarrow tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from hash_by_hand import place
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from simulate import simulate
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from belated import DelayedFeedbackClassifier, LinearModel, TableEncoder
from belated.methods import METHODS


def encode(encoder, table, weight=None):
    matrix = encoder.fit_transform(table, sample_weight=weight)
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def test_categories_missing_values_and_unseen_ones():
    encoder = TableEncoder()
    table = pd.DataFrame({"c": ["b", "a", None, "b"], "f": [True, False, True, True]})
    names = ["c=a", "c=b", "c missing", "f=false", "f=true", "f missing"]
    matrix = encode(encoder, table)
    assert encoder.get_feature_names_out().tolist() == names
    assert_array_equal(matrix, [[0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 1, 0]])
    new = encoder.transform(pd.DataFrame({"c": ["z", None], "f": [None, True]}))
    assert_array_equal(new.toarray() if sparse.issparse(new) else new, [[0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 1, 0]])


def test_standardised_numbers():
    table = pl.DataFrame({"v": [1.0, 2.0, None, 3.0], "k": [5, 5, 5, 5]})
    matrix = encode(TableEncoder(numbers="standardise"), table)
    assert_allclose(matrix[[0, 1, 3], 0], np.array([-1, 0, 1]) / np.sqrt(2 / 3))
    assert_array_equal(matrix[:, 1], [0, 0, 1, 0])
    assert_array_equal(matrix[:, 2:], 0)


def test_buckets_hold_equal_shares_and_reach_beyond_the_training_range():
    encoder = TableEncoder(buckets=4)
    table = pd.DataFrame({"v": np.random.default_rng(0).permutation(100).astype(float)})
    assert_array_equal(encode(encoder, table).sum(axis=0), [25, 25, 25, 25, 0])
    beyond = encoder.transform(pd.DataFrame({"v": [-1e9, 1e9, np.nan]}))
    assert_array_equal(np.asarray(beyond.toarray() if sparse.issparse(beyond) else beyond).argmax(axis=1), [0, 3, 4])


def test_many_categories_are_hashed_by_value_and_field():
    values = [f"v{i}" for i in range(300)]
    encoder = TableEncoder(max_categories=100, hash_columns=2**12)
    matrix = sparse.csr_array(encode(encoder, pd.DataFrame({"p": values, "q": values, "r": ["x"] * 300})))
    assert matrix.shape == (300, 2 + 2**12)
    assert (matrix.sum(axis=1) == 3).mean() > 0.99
    places = matrix[:, 2:].indices.reshape(300, -1)
    assert (places[:, 0] != places[:, 1]).mean() > 0.95
    assert len(np.unique(places)) > 500
    # The same value goes to the same place in another table, whatever else is there.
    again = sparse.csr_array(encoder.transform(pd.DataFrame({"p": ["v7"], "q": ["v9"], "r": [None]})))
    rows = matrix[[7, 9], 2:].toarray()
    assert again[:, 2:].toarray()[0] @ rows[0] >= 1 and again[:, 2:].toarray()[0] @ rows[1] >= 1


def test_hash_is_the_same_on_every_machine():
    encoder = TableEncoder(max_categories=1, hash_columns=1000)
    matrix = sparse.csr_array(encode(encoder, pl.DataFrame({"city": ["Lisbon", "Porto", None]})))
    assert matrix.indices.tolist() == [place("city", v, 1000) for v in ("Lisbon", "Porto", None)]


@pytest.mark.parametrize("method", METHODS)
def test_pandas_polars_and_pyarrow_give_identical_fits(method):
    fits = []
    for kind in ("pandas", "polars", "pyarrow"):
        data = simulate(seed=3, n=800, frame=kind)
        clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0)
        clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
        assert clf.feature_names_in_.tolist() == ["a", "b", "group", "flag"]
        fits.append((clf, clf.predict_proba(data.X), data.X))
    for _, p, _ in fits[1:]:
        assert_array_equal(p, fits[0][1])
    # A model fitted on one kind of table predicts on another.
    assert_array_equal(fits[0][0].predict_proba(fits[1][2]), fits[0][1])


def test_integer_weights_are_repetitions_on_tables():
    data = simulate(seed=4, n=600, frame="pandas")
    weight = np.random.default_rng(0).integers(0, 4, 600)
    for numbers in ("buckets", "standardise"):
        model = LinearModel(l2=1e-3, encoder=TableEncoder(numbers=numbers))
        weighted = DelayedFeedbackClassifier(method="bl", model=model).fit(data.X, data.y, sample_weight=weight)
        repeated = DelayedFeedbackClassifier(method="bl", model=model)
        repeated.fit(data.X.iloc[np.repeat(np.arange(600), weight)], np.repeat(data.y, weight))
        assert_allclose(weighted.predict_proba(data.X), repeated.predict_proba(data.X), atol=1e-6)


def test_categorical_types_are_text():
    data = simulate(seed=5, n=600, frame="pandas")
    typed = data.X.assign(group=data.X["group"].astype("category"))
    text, categorical = (
        DelayedFeedbackClassifier(method="bl").fit(X, data.y).predict_proba(X) for X in (data.X, typed)
    )
    assert_array_equal(text, categorical)


@pytest.mark.parametrize("make", [pd.Categorical, lambda v: pd.Series(v.astype(str))])
def test_numbers_in_a_categorical_type_are_categories(make):
    encoder = TableEncoder()
    encode(encoder, pd.DataFrame({"id": make(np.arange(40) % 3)}))
    assert encoder.get_feature_names_out().tolist() == ["id=0", "id=1", "id=2", "id missing"]


def test_other_kinds_of_arrow_columns():
    y = np.arange(200) % 2
    plain = pa.table({"c": ["a", "b"] * 100})
    expected = DelayedFeedbackClassifier(method="bl").fit(plain, y).predict_proba(plain)
    for column in (pa.array(["a", "b"] * 100, pa.string_view()), pa.array(["a", "b"] * 100).dictionary_encode()):
        for table in (pa.table({"c": column}), pa.RecordBatch.from_pydict({"c": column})):
            clf = DelayedFeedbackClassifier(method="bl").fit(table, y)
            assert_array_equal(clf.predict_proba(table), expected)


def test_columns_that_turn_out_all_missing():
    data = simulate(seed=6, n=400, frame="pandas")
    clf = DelayedFeedbackClassifier(method="bl").fit(data.X, data.y)
    for blank in (np.nan, None):
        assert np.isfinite(clf.predict_proba(data.X.assign(a=blank, group=blank))).all()


def test_it_is_a_transformer_like_any_other():
    data = simulate(seed=0, n=400, frame="pandas")
    encoder = clone(TableEncoder(buckets=4, numbers="buckets"))
    assert encoder.get_params() == TableEncoder(buckets=4).get_params()
    with pytest.raises(NotFittedError):
        encoder.transform(data.X)
    pipe = make_pipeline(encoder, LogisticRegression(C=10.0)).fit(data.X, data.y)
    assert pipe.predict_proba(data.X).shape == (400, 2)
    names = pipe[:-1].get_feature_names_out()
    assert len(names) == pipe[-1].coef_.shape[1] and "group=north" in names
    assert pipe[0].n_features_in_ == 4 and pipe[0].feature_names_in_.tolist() == ["a", "b", "group", "flag"]
    mixed = ColumnTransformer([("table", TableEncoder(), ["a", "group"])], remainder="passthrough")
    assert mixed.fit_transform(data.X[["a", "group", "flag"]]).shape[0] == 400
    grid = GridSearchCV(pipe, {"tableencoder__buckets": [2, 5]}, cv=2).fit(data.X, data.y)
    assert grid.best_params_["tableencoder__buckets"] in (2, 5)


def test_labels_are_not_looked_at_and_weights_are_repetitions():
    data = simulate(seed=0, n=200, frame="pandas")
    weight = np.random.default_rng(0).integers(1, 4, 200)
    repeated = data.X.loc[np.repeat(np.arange(200), weight)]
    for numbers in ("buckets", "standardise"):
        plain = TableEncoder(numbers=numbers).fit(data.X, sample_weight=weight.astype(float))
        again = TableEncoder(numbers=numbers).fit(repeated, data.y[np.repeat(np.arange(200), weight)])
        matrices = [encoder.transform(data.X) for encoder in (plain, again)]
        assert_allclose(*(m.toarray() if sparse.issparse(m) else m for m in matrices), atol=1e-12)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_fits_do_not_depend_on_how_scikit_learn_shows_results(output):
    data = simulate(seed=0, n=200, frame="pandas")
    expected = DelayedFeedbackClassifier("bl").fit(data.X, data.y).predict_proba(data.X)
    with sklearn.config_context(transform_output=output):
        assert_array_equal(DelayedFeedbackClassifier("bl").fit(data.X, data.y).predict_proba(data.X), expected)


def test_weights_are_checked_and_names_too():
    table = pd.DataFrame({"v": [1.0, 2.0, 3.0]})
    assert TableEncoder().fit(table, sample_weight=[1, 2, 3]).n_columns_ > 1
    with pytest.raises(ValueError, match="sample_weight"):
        TableEncoder().fit(table, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="Negative values"):
        TableEncoder().fit(table, sample_weight=[1, 2, -3])
    encoder = TableEncoder().fit(table)
    assert encoder.get_feature_names_out(["v"]).tolist() == encoder.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="input_features"):
        encoder.get_feature_names_out(["w"])


def test_ranges_of_large_numbers_have_different_names():
    names = TableEncoder().fit(pd.DataFrame({"t": 1.7e9 + 10 * np.arange(500)})).get_feature_names_out()
    assert len(set(names)) == len(names)


def test_columns_are_found_by_name():
    data = simulate(seed=0, n=50, frame="pandas")
    encoder = TableEncoder().fit(data.X)
    turned = data.X[["flag", "group", "b", "a"]].assign(other=1)
    assert_array_equal(encode_new(encoder, turned), encode_new(encoder, data.X))
    with pytest.raises(ValueError, match="X has no column 'group'"):
        encoder.transform(data.X.drop(columns="group"))


def encode_new(encoder, table):
    matrix = encoder.transform(table)
    return matrix.toarray() if sparse.issparse(matrix) else matrix
