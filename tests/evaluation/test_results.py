"""Finished cut-offs on disk."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from belated import EventLog, LinearModel
from belated.evaluation.pairs import pair_up
from belated.evaluation.results import CutoffResult, ResultStore, Settings
from belated.methods.biased import BL

SETTINGS = Settings(10.0, 5.0, 20.0, 5.0, ("bl",), (1e-3,), None)


def make_store(folder):
    log = EventLog.from_frame(pa.table({"a": [0.0, 1.0], "b": [2.0, None], "x": ["u", "v"]}), arrival="a", outcome="b")
    return ResultStore(folder, log, SETTINGS, pair_up({"bl": BL()}, {"linear": LinearModel()}, None))


def make_result(n=3000, group=None):
    rng = np.random.default_rng(0)
    p = {"bl": rng.uniform(size=n), "oracle": rng.uniform(size=n)}
    y, days = rng.uniform(size=n) < 0.3, rng.uniform(size=n)
    return CutoffResult(
        "2024-01-01", n, 5, y, days, group, p, {"bl": 1e-3, "oracle": None}, {"tw": "no"}, {"bl": "slow"}
    )


def test_a_result_comes_back_as_it_was(tmp_path):
    for group in (None, np.array(["a", "b", "c"] * 1000)):
        store, result = make_store(tmp_path), make_result(group=group)
        store.save(7, result)
        again = store.load(7)
        for name, value in vars(result).items():
            if isinstance(value, dict) and name == "p":
                assert list(value) == list(again.p)
                for key in value:
                    assert_array_equal(value[key], again.p[key])
            elif isinstance(value, np.ndarray):
                assert_array_equal(value, getattr(again, name))
            else:
                assert value == getattr(again, name)
    assert store.load(8) is None


def test_many_threads_may_save(tmp_path):
    store, result = make_store(tmp_path), make_result(50)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: store.save(k % 5, result), range(90)))
    assert len(list(tmp_path.iterdir())) == 5
    assert all(store.load(k) is not None for k in range(5))


# NumPy before 2.1 leaves the archive that it could not write to the collector of garbage.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. .function ZipFile.__del__:pytest.PytestUnraisableExceptionWarning"
)
def test_a_full_disk_costs_the_cache_and_not_the_comparison(tmp_path, caplog):
    store, limit = make_store(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))  # files cannot grow past this, as on a full disk
    try:
        store.save(1, make_result())
        store.save(2, make_result())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    (message,) = caplog.messages
    assert "the cache is not kept from here on" in message and ".npz: could not be written" in message
    assert list(tmp_path.iterdir()) == []
