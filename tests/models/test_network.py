"""NetworkModel: batches without bias, training that can be interrupted, networks of one's own."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulate import simulate

from belated import ConvDF, DelayedFeedbackClassifier, FieldMatrix, NetworkModel, NnDF, load
from belated.data.labels import check_labels
from belated.methods import METHODS, resolve_method
from belated.models.minibatches import MiniBatches

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def labels_of(data):
    return check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)


def fit(method, data, X=None, **more):
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, NetworkModel(**{"epochs": 3, "width": 32, **more}))
    return clf.fit(data.X if X is None else X, data.y, elapsed=data.elapsed, delay=data.delay)


def test_scarce_kinds_are_in_every_batch_and_all_rows_in_an_epoch():
    kinds = torch.tensor([0] * 9700 + [1] * 280 + [2] * 20)
    batches = MiniBatches.of(kinds, 500)
    dice = torch.Generator().manual_seed(0)
    seen = torch.zeros(10_000)
    for index, counts in batches.epoch(dice):
        assert set(kinds[index].tolist()) == {0, 1, 2}
        for kind, size in ((0, 9700), (1, 280), (2, 20)):
            assert_allclose(counts[kinds[index] == kind].sum(), size, rtol=1e-5)
        seen[index] += 1
    assert (seen > 0).all() and len(list(batches.epoch(dice))) == batches.count == 20


@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("fsiw", "ulc", "dual", "soft-labels", "nndf")]
)
def test_the_expected_gradient_of_a_batch_is_that_of_the_whole_risk(method):
    """Over whole epochs, gradients of batches average to the gradient of all rows, in margins and in shared parameters."""
    data = simulate(seed=0, n=600)
    risk = resolve_method(method).risk(labels_of(data), None)
    risk = risk if risk.occurrences is None else risk.occurrences.risk
    active = risk.kinds() >= 0
    risk = risk.take(active)
    n = int(active.sum())
    rng = np.random.default_rng(0)
    margins, shared = rng.normal(size=(n, risk.n_margins)), risk.start()[1] + rng.normal(0, 0.1, risk.n_shared)
    _, expected, expected_shared = risk.value_and_gradient(margins, shared)
    there = risk.moved(torch.as_tensor)
    batches, dice = MiniBatches.of(torch.as_tensor(risk.kinds()), 120), torch.Generator().manual_seed(1)
    total, total_shared, steps = np.zeros_like(expected), np.zeros_like(expected_shared), 0
    for _ in range(400):
        for index, counts in batches.epoch(dice):
            at = torch.as_tensor(margins)[index], torch.as_tensor(shared)
            _, slope, in_shared = there.take(index, counts).value_and_gradient(*at)
            np.add.at(total, index.numpy(), slope.numpy())
            total_shared += in_shared.numpy()
            steps += 1
    assert_allclose(total / steps, expected, rtol=0.35, atol=0.02 * np.abs(expected).max())
    assert_allclose((total / steps).sum(axis=0), expected.sum(axis=0), atol=0.02 * np.abs(expected).sum())
    assert_allclose(total_shared / steps, expected_shared, atol=0.02 * np.abs(expected_shared).max(initial=1e-3))


def test_a_training_that_was_interrupted_ends_as_if_it_had_not(tmp_path):
    data, file = simulate(seed=1, n=1500), tmp_path / "state.pt"
    for method in ("dfm-piecewise", "nndf"):
        whole = fit(method, data, epochs=5).predict_proba(data.X)
        fit(method, data, epochs=2, checkpoint=file)
        resumed = fit(method, data, epochs=5, checkpoint=file)
        assert_array_equal(resumed.predict_proba(data.X), whole)
        assert len(resumed.model_.curve_) == 5
        file.unlink()
    # One that was finished makes room for another; one that was not is in the way.
    fit("bl", data, epochs=3, checkpoint=file)
    assert len(fit("tw", data, epochs=2, checkpoint=file).model_.curve_) == 2
    state = torch.load(file, weights_only=True)
    torch.save({**state, "asked": 9}, file)
    with pytest.raises(ValueError, match="of an interrupted training with other rows or parameters"):
        fit("bl", data, checkpoint=file)
    file.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is no checkpoint, or a damaged one"):
        fit("bl", data, checkpoint=file)


def test_fewer_epochs_than_a_checkpoint_has_are_trained_anew(tmp_path):
    data, file = simulate(seed=1, n=1000), tmp_path / "state.pt"
    fit("bl", data, epochs=6, checkpoint=file)
    few = fit("bl", data, epochs=2, checkpoint=file)
    assert len(few.model_.curve_) == 2
    assert_array_equal(few.predict_proba(data.X), fit("bl", data, epochs=2).predict_proba(data.X))
    few.save(tmp_path / "m.skops")  # a path is as good as its text
    assert_array_equal(load(tmp_path / "m.skops").predict_proba(data.X), few.predict_proba(data.X))


def test_large_numbers_keep_their_differences():
    data = simulate(seed=9, n=2000)
    plain = fit("bl", data, epochs=5).predict_proba(data.X)[:, 1]
    for move in (1e8, -1e12):
        moved = np.round(data.X, 3) + move
        assert np.corrcoef(fit("bl", data, X=moved, epochs=5).predict_proba(moved)[:, 1], plain)[0, 1] > 0.98
    huge = data.X * 1e200
    assert_allclose(fit("bl", data, X=huge, epochs=5).predict_proba(huge)[:, 1], plain, atol=1e-3)


def test_rare_values_are_rare_by_weight_whatever_its_scale():
    from belated.features.network_inputs import NetworkInputs

    table = pd.DataFrame({"c": ["a"] * 60 + ["b"] * 30 + ["c"] * 10})
    for weight, kept in ((np.ones(100), 1), (np.full(100, 1e-9), 1), (np.r_[np.ones(90), np.full(10, 20.0)], 1)):
        found = NetworkInputs.learn(table, weight, 1000, 16, 50)
        assert found.kept.tolist() == [kept]
    assert found.encoder.transform(table.iloc[-1:])[0, 0] == 0  # now the most frequent, and the one that is kept


@pytest.mark.parametrize("loss", ["squared", "double_hinge"])
def test_other_losses(loss):
    data = simulate(seed=10, n=2000)
    clf = fit(ConvDF(loss=loss), data, epochs=10)
    assert np.corrcoef(clf.decision_function(data.X), data.rate)[0, 1] > 0.5


def test_a_model_of_a_gpu_predicts_without_one(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    data = simulate(seed=11, n=500)
    clf = fit("bl", data, epochs=2)
    expected = clf.predict_proba(data.X)
    clf.model_.set_params(device="cuda")
    clf.save(tmp_path / "m.skops")
    assert_array_equal(load(tmp_path / "m.skops").predict_proba(data.X), expected)
    with pytest.raises(ValueError, match="no CUDA device"):
        fit("bl", data, device="cuda")


def test_the_training_curve_falls_and_seeds_matter():
    data = simulate(seed=2, n=2000)
    first, again, other = (fit("bl", data, epochs=6, seed=seed) for seed in (0, 0, 1))
    assert first.model_.curve_[-1] < first.model_.curve_[0]
    assert_array_equal(first.predict_proba(data.X), again.predict_proba(data.X))
    assert np.abs(first.predict_proba(data.X) - other.predict_proba(data.X)).max() > 1e-4


def test_epochs_are_chosen_where_they_are_open():
    data = simulate(seed=3, n=2000)
    model = fit("bl", data, epochs=None).model_
    assert model.epochs in NetworkModel.grid and len(model.curve_) == model.epochs


class Mine(torch.nn.Module):
    def __init__(self, columns, margins):
        super().__init__()
        self.layer = torch.nn.Linear(columns, margins)

    def forward(self, numbers, places):
        return self.layer(torch.nan_to_num(numbers))


def test_a_network_of_ones_own(tmp_path):
    data = simulate(seed=4, n=2000)
    mine = Mine(data.X.shape[1], 1)
    before = mine.layer.weight.detach().clone()
    clf = fit("bl", data, module=mine, epochs=30, learning_rate=0.02)
    assert np.corrcoef(clf.predict_proba(data.X)[:, 1], data.rate)[0, 1] > 0.9
    assert torch.equal(mine.layer.weight, before)  # it was copied
    assert_array_equal(pickle.loads(pickle.dumps(clf)).predict_proba(data.X), clf.predict_proba(data.X))
    with pytest.raises(ValueError, match="is no part of belated"):
        clf.save(tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"returned margins of shape .* needs \(n, 2\)"):
        fit("dfm", data, module=mine)


def test_tables_fields_and_missing_values():
    data = simulate(seed=5, n=2000)
    rng = np.random.default_rng(0)
    number = np.where(rng.uniform(size=2000) < 0.2, np.nan, data.X[:, 0])
    table = pd.DataFrame({"city": rng.choice(["a", "b", "c"], 2000), "number": number, "empty": np.nan})
    indices = np.column_stack([np.digitize(data.X[:, j], [-1, 0, 1]) + 5 * j for j in range(3)])
    for X in (
        table,
        FieldMatrix(indices, 2**20),
        FieldMatrix(indices, 2**20).to_csr()[:, :20],
        np.where(number, data.X.T, 0).T,
    ):
        p = fit("dfm-piecewise", data, X=X, epochs=10, embedding_rows=64).predict_proba(X)[:, 1]
        assert np.corrcoef(p, data.rate)[0, 1] > 0.4
    clf = fit("age", data, X=table)
    assert np.isfinite(clf.predict_proba(table.assign(city="new"))).all()


def test_the_delay_margin_is_linear_unless_it_is_asked_to_be_free():
    """Twice the distance in one column is twice the difference of a margin that is linear in its ranges."""
    data = simulate(seed=6, n=2000)
    X = (data.X[:, :2] > 0).astype(float)
    for how, additive in (("linear", True), ("full", False)):
        clf = fit("dfm", data, X=X, delay_model=how, epochs=12, learning_rate=1e-2, decay=0.0, bf16=False)
        a, b, c, d = clf.model_.margins(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))[:, 1]
        assert (abs(a + d - b - c) < 1e-4) == additive


def test_ascent_keeps_the_negative_part_from_sinking():
    """On few rows a network can push ConvDF's negative part far below zero; NnDF's rule for batches does not let it."""
    data = simulate(seed=7, n=400)
    X = np.random.default_rng(0).normal(size=(400, 20))
    free = {
        "epochs": 60,
        "width": 64,
        "depth": 1,
        "decay": 0.0,
        "dropout": 0.0,
        "learning_rate": 1e-3,
        "batch_size": 100,
    }
    risk = resolve_method("convdf").risk(labels_of(data), None)
    parts = {
        str(method): risk.negative_part(fit(method, data, X=X, **free).model_.margins(X))
        for method in ("convdf", "nndf", NnDF(ascent=True))
    }
    assert parts["convdf"] < -0.1
    assert parts["NnDF(ascent=True)"] > parts["convdf"] + 0.1


def test_what_cannot_be_is_said():
    data = simulate(seed=8, n=300)
    for more, message in (
        ({"delay_model": "deep"}, "delay_model="),
        ({"width": 0}, "width=0"),
        ({"epochs": -1}, "epochs=-1"),
        ({"epochs": True}, "epochs=True"),
        ({"decay": -1}, "decay=-1"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"dropout": 2}, "dropout=2"),
        ({"module": "x"}, "module='x' must be"),
        ({"seed": None}, "seed=None"),
    ):
        with pytest.raises(ValueError, match=message):
            fit("bl", data, **more)
    wide = FieldMatrix(np.zeros((300, 2), dtype=int), 2**20).to_csr()
    with pytest.raises(ValueError, match="up to 2000 columns"):
        fit("bl", data, X=wide)
    with pytest.raises(ValueError, match=r"threshold and step belong to ascent=True"):
        fit(NnDF(threshold=0.1), data)
