"""Models in files."""

from __future__ import annotations

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from simulate import simulate
from sklearn.linear_model import LogisticRegression

from belated import BL, DFM, DelayedFeedbackClassifier, FieldMatrix, LinearModel, TableEncoder, load
from belated.methods import METHODS
from belated.persistence import ModelFile
from belated.risks.delay_laws import Exponential


@pytest.mark.parametrize("method", [*METHODS, BL(loss="squared")], ids=str)
def test_every_method_comes_back_as_it_was(method, tmp_path):
    data = simulate(seed=0, n=800, frame="pandas")
    model = LinearModel(l2=1e-3, encoder=TableEncoder(max_categories=3, hash_columns=2000))
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, model)
    clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    clf.save(tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    assert_array_equal(again.predict_proba(data.X), clf.predict_proba(data.X))
    assert repr(again) == repr(clf)
    assert_array_equal(again.coef_, clf.coef_)
    assert again.horizon_ == 20.0


def test_fields_come_back_too(tmp_path):
    fields = FieldMatrix(np.random.default_rng(0).integers(0, 2**22, (500, 4)), 2**22)
    clf = DelayedFeedbackClassifier("bl").fit(fields, np.arange(500) % 2)
    clf.save(tmp_path / "m.skops")
    assert_array_equal(load(tmp_path / "m.skops").predict_proba(fields), clf.predict_proba(fields))
    assert (tmp_path / "m.skops").stat().st_size < 500_000


def test_what_is_refused(tmp_path):
    fitted = DelayedFeedbackClassifier("bl").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="there is no such file"):
        load(tmp_path / "nothing.skops")
    (tmp_path / "text.skops").write_text("no model")
    with pytest.raises(ValueError, match=r"text.skops: not a model saved by belated"):
        load(tmp_path / "text.skops")
    skops.io.dump(LogisticRegression().fit(np.eye(2), [0, 1]), tmp_path / "other.skops")
    with pytest.raises(ValueError, match=r"other.skops: refused, because it holds .*LogisticRegression"):
        load(tmp_path / "other.skops")
    skops.io.dump({"weights": [1.0]}, tmp_path / "plain.skops")
    with pytest.raises(ValueError, match=r"plain.skops: not a model saved by belated"):
        load(tmp_path / "plain.skops")
    state = {"format": 2, "classifier": fitted, "features": {}, "others": [], "about": "{}"}
    skops.io.dump({**state, "about": Strange()}, tmp_path / "strange.skops")
    with pytest.raises(ValueError, match=r"refused, because it holds .*Strange"):
        load(tmp_path / "strange.skops")
    with pytest.raises(Exception, match="not fitted"):
        DelayedFeedbackClassifier().save(tmp_path / "empty.skops")
    assert not (tmp_path / "empty.skops").exists()


def test_what_could_not_be_loaded_is_not_written(tmp_path):
    data = simulate(seed=0, n=300)
    clf = DelayedFeedbackClassifier(DFM(delay=Own())).fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    with pytest.raises(ValueError, match=r"not written, because .*Own is no part of belated.*Use pickle or joblib"):
        clf.save(tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


class Own(Exponential):
    """A law of somebody's own."""


class Strange:
    """A class of somebody else."""


def test_a_file_keeps_how_the_model_came_about(tmp_path):
    clf = DelayedFeedbackClassifier("bl").fit(np.eye(4), [0, 1, 0, 1])
    ModelFile(clf, about={"rows": 4}).save(tmp_path / "m.skops")
    about = ModelFile.load(tmp_path / "m.skops").about
    assert about["rows"] == 4 and about["versions"]["belated"] and about["saved"]
