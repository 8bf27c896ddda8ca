"""The three sentences to protect: a paper, a law and an engine are one file each, outside the package just as well."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulate import simulate

from belated import DFM, TW, DelayedFeedbackClassifier, LinearModel
from belated.data.labels import check_labels

FOLDER = Path(__file__).parents[1] / "examples" / "extending"


@pytest.fixture(scope="module", autouse=True)
def examples_on_the_path():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


def test_the_worked_example_runs(capsys, monkeypatch):
    from run import main

    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    main(rows=3000)
    shown = capsys.readouterr().out
    assert "Ramp()" in shown and "DFM(delay=Lomax())" in shown and "ScipyModel()" in shown
    assert all(f"{name:8s} log loss" in shown for name in ("bl", "ramp", "lomax", "oracle"))


def test_the_example_of_the_architecture_page_runs(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    page = (FOLDER.parents[1] / "ARCHITECTURE.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    *statements, last = ast.parse(code).body
    place = {}
    exec(compile(ast.Module(statements, []), "ARCHITECTURE.md", "exec"), place)
    advice = eval(ast.unparse(last), place)
    assert advice.method in ("bl", "ramp", "lomax") and advice.why


def test_the_toy_method_is_time_window_when_every_row_is_old():
    from toy_method import Ramp

    data = simulate(seed=0, n=800)
    times = {"elapsed": data.elapsed + 10.0, "delay": data.delay}
    fits = [
        DelayedFeedbackClassifier(method, window=5.0).fit(data.X, data.y, **times).predict_proba(data.X)
        for method in (Ramp(), TW())
    ]
    assert_allclose(fits[0], fits[1], atol=1e-6)


def test_the_toy_law_has_a_correct_gradient():
    from toy_law import Lomax

    data = simulate(seed=1, n=60)
    risk = DFM(delay=Lomax()).risk(check_labels(data.y == 1, data.elapsed, data.delay), None)
    margins, step = np.random.default_rng(0).normal(size=(60, 2)), 1e-6
    _, gradient, _ = risk.value_and_gradient(margins)
    for i, k in ((0, 0), (3, 1), (20, 1)):
        shift = np.zeros_like(margins)
        shift[i, k] = step
        up, down = risk.value_and_gradient(margins + shift)[0], risk.value_and_gradient(margins - shift)[0]
        assert_allclose(gradient[i, k], (up - down) / (2 * step), rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize("method", ["bl", "convdf", "dfm", "hazard"])
def test_the_toy_model_ends_where_the_linear_one_does(method):
    from toy_model import ScipyModel

    data = simulate(seed=2, n=1500, frame="pandas")
    times = {"elapsed": data.elapsed, "delay": data.delay}
    fits = [
        DelayedFeedbackClassifier(method, 5.0, 20.0, model).fit(data.X, data.y, **times).predict_proba(data.X)
        for model in (ScipyModel(ridge=1e-3), LinearModel(l2=1e-3))
    ]
    assert_allclose(fits[0], fits[1], atol=5e-3)


def test_a_method_that_asks_for_more_than_a_model_offers_says_so():
    from toy_model import ScipyModel

    data = simulate(seed=2, n=800, frame="pandas")
    clf = DelayedFeedbackClassifier("fsiw", 5.0, 20.0, ScipyModel())
    with pytest.raises(ValueError, match="FSIW learns auxiliary models first, and ScipyModel has no auxiliary_margin"):
        clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)


def test_a_method_of_ones_own_needs_a_name_and_workers_that_can_import_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from belated import backtest\n"
        "from belated.datasets import example_log\n"
        "ask = {'horizon': '7d', 'cutoffs': 2, 'progress': False, 'n_jobs': 2}\n"
        "backtest(example_log(), methods=['tw'], **ask)\n"
        f"sys.path.insert(0, {str(FOLDER)!r})\n"
        "from toy_method import Ramp\n"
        "for methods in (['tw', Ramp()], {'ramp': Ramp()}):\n"
        "    try:\n"
        "        backtest(example_log(), methods=methods, **ask)\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert "give methods of your own in a dict" in done.stdout, done.stderr
    assert "could not import the module 'toy_method'" in done.stdout and "PYTHONPATH" in done.stdout
