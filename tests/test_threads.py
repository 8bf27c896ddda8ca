"""Passes by many threads: safe after a fork, from several threads at once, and the same to the last bit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numba as nb
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from wide_problems import big_problem

from belated import DelayedFeedbackClassifier, LinearModel
from belated.threads import compiled, parts_of, threads

ENOUGH = 100_000  # rows of five fields, which all threads work on

FIT = """
    import sys, os, multiprocessing
    sys.path.insert(0, {tests!r})
    import numpy as np
    from wide_problems import big_problem
    from belated import DelayedFeedbackClassifier, LinearModel
    fields, a, b = big_problem(n=100_000)
    y = (a > 0).astype(int)
    clf = DelayedFeedbackClassifier("bl", model=LinearModel(tol=1e-4)).fit(fields, y)
    before = clf.predict_proba(fields)

    def again(_):
        other = DelayedFeedbackClassifier("bl", model=LinearModel(tol=1e-4)).fit(fields, y)
        return np.abs(clf.predict_proba(fields) - before).max(), np.abs(other.predict_proba(fields) - before).max()
"""
BY_HAND = """
    child = os.fork()
    if child == 0:
        os._exit(0 if max(again(0)) < 1e-9 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
BY_POOL = """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert np.max(pool.map(again, range(4))) < 1e-9
"""


OTHERS_FIRST = """
    import sys, os
    sys.path.insert(0, {tests!r})
    import numba, numpy as np
    from wide_problems import big_problem
    from belated import DelayedFeedbackClassifier, LinearModel

    @numba.njit(parallel=True)
    def theirs(x):
        for i in numba.prange(x.size):
            x[i] = i
    theirs(np.zeros(1000))  # starts the threads, and belated has not
    fields, a, b = big_problem(n=100_000)
    y = (a > 0).astype(int)
    before = np.zeros(1)

    def again(_):
        clf = DelayedFeedbackClassifier("bl", model=LinearModel(tol=1e-4)).fit(fields, y)
        return (0.0 if np.isfinite(clf.predict_proba(fields)).all() else 1.0,)
"""


def test_a_fork_after_the_threads_of_others_have_started(request):
    code = textwrap.dedent(OTHERS_FIRST).format(tests=str(request.config.rootpath / "tests")) + textwrap.dedent(BY_HAND)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("fork", [BY_HAND, BY_POOL], ids=["os.fork", "Pool"])
def test_predicting_and_fitting_after_a_fork(fork, request):
    code = textwrap.dedent(FIT).format(tests=str(request.config.rootpath / "tests")) + textwrap.dedent(fork)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_predicting_and_fitting_from_many_threads():
    fields, a, _ = big_problem(n=ENOUGH)
    y = (a > 0).astype(int)
    clf = DelayedFeedbackClassifier("bl", model=LinearModel(tol=1e-4)).fit(fields, y)
    before = clf.predict_proba(fields)

    def again(k):
        if k % 4 == 0:
            other = DelayedFeedbackClassifier("bl", model=LinearModel(tol=1e-4)).fit(fields, y)
            return other.predict_proba(fields)
        return clf.predict_proba(fields)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(again, range(24)):
            assert np.abs(found - before).max() < 1e-9


def add_up(values, parts):
    for part in nb.prange(parts.size):
        total = 0.0
        for i in range(values.size * part // parts.size, values.size * (part + 1) // parts.size):
            total += values[i]
        parts[part] = total


def test_a_pass_is_the_same_for_one_thread_and_many():
    add = compiled()(add_up)
    values, found = np.random.default_rng(0).normal(size=400_000), []
    for entries in (0, 10**9):  # short, long
        parts = np.empty(parts_of(values.size))
        with threads(entries):
            add(values, parts)
        found.append(parts)
    assert len(parts) > 1
    assert_array_equal(*found)


def test_two_threads_do_not_share_the_pool():
    add = compiled()(add_up)
    values, results = np.ones(2_000_000), []

    def work():
        for _ in range(20):
            parts = np.empty(4)
            add(values, parts)
            results.append(parts.sum())

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(results) == {2_000_000.0} and len(results) == 80
