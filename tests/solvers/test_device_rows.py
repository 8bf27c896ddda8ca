"""The path through torch. Without a GPU the same code runs on torch's CPU device; without torch, only its messages."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from simulate import simulate
from stubs import FIXED

from belated import DelayedFeedbackClassifier, FieldMatrix, LinearModel
from belated.solvers.device_rows import DeviceRows, resolve_device


def fit(method, X, data, device="cpu"):
    model = LinearModel(l2=1e-3, tol=1e-10, device=device)
    clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0, model=model)
    return clf.fit(X, data.y, elapsed=data.elapsed, delay=data.delay)


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_every_method_agrees_with_the_cpu(method, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = simulate(seed=0, n=2000)
    indices = np.column_stack([np.digitize(data.X[:, j], [-1, 0, 1]) + 5 * j for j in range(3)])
    fields = FieldMatrix(indices, 2**16)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    expected = fit(method, fields, data).predict_proba(fields)
    plain = fit(method, data.X, data).predict_proba(data.X)
    original = LinearModel.encode
    monkeypatch.setattr(LinearModel, "encode", lambda self, X, w: DeviceRows.of(original(self, X, w), device))
    assert_allclose(fit(method, fields, data).predict_proba(fields), expected, atol=2e-4)
    assert_allclose(fit(method, data.X, data).predict_proba(data.X), plain, atol=2e-4)


def test_without_torch(monkeypatch):
    real = builtins.__import__

    def no_torch(name, *rest, **more):
        if name.split(".")[0] == "torch":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_torch)
    assert resolve_device("auto") == "cpu"
    with pytest.raises(
        ValueError,
        match=r"device='cuda' needs PyTorch, which is not installed: pip install 'torch>=",
    ):
        resolve_device("cuda")
    with pytest.raises(ValueError, match="device='tpu' is not known; choose 'cpu', 'cuda' or 'auto'"):
        fit("bl", np.zeros((4, 1)), simulate(seed=1, n=4), device="tpu")


def test_without_a_gpu():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert resolve_device("auto") == "cpu"
    with pytest.raises(ValueError, match="PyTorch finds no CUDA device here"):
        resolve_device("cuda")


@pytest.mark.parametrize("wide", [False, True])
def test_columns_far_from_zero_agree_with_the_cpu(wide, monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = simulate(seed=1, n=1500)
    X = data.X.copy()
    X[:, 0] = 30 * X[:, 0] + 1.7e9
    if wide:
        X = sparse.hstack([X, sparse.csr_array((1500, 1100))])
    X = sparse.csr_array(X)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    expected = fit("bl", X, data).predict_proba(X)
    original = LinearModel.encode
    monkeypatch.setattr(LinearModel, "encode", lambda self, X, w: DeviceRows.of(original(self, X, w), device))
    assert_allclose(fit("bl", X, data).predict_proba(X), expected, atol=1e-5)
