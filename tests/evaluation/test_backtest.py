"""The backtest: nothing from the future, right scores, intervals that mean something, and resuming."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from belated import STC, TW, DelayedFeedbackClassifier, EventLog, LinearModel, backtest
from belated.data.labels import check_labels
from belated.datasets import simulate_campaigns
from belated.evaluation import backtest as module
from belated.evaluation.metrics import log_losses
from belated.evaluation.summary import score_methods
from belated.evaluation.validation import set_clock_back
from belated.methods import resolve_method

METHODS = ["tw", "dfm-piecewise"]
ASK = {"horizon": "10d", "methods": METHODS, "cutoffs": 3, "l2": [1e-4, 1e-3], "n_jobs": 1, "progress": False}


def make_log(n=6000, seed=0, change=None):
    frame = simulate_campaigns(n, seed).to_pandas()
    frame = frame.drop(columns=["hour"])
    if change is not None:
        frame = change(frame)
    return EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")


@pytest.fixture(scope="module")
def result():
    return backtest(make_log(), group="campaign", **ASK)


def test_scores_are_those_of_the_predictions(result):
    summary = result.summary()
    assert list(summary["methods"]) == ["bl", *METHODS, "oracle"]
    for name, row in summary["methods"].items():
        losses = [log_losses(c.y, c.p[name]).mean() for c in result.cutoffs]
        assert_allclose(row["log_loss"], np.mean(losses))
        assert_allclose([c["log_loss"] for c in row["cutoffs"]], losses)
        assert_allclose(row["intervals"]["log_loss"], stats.t.interval(0.95, 2, np.mean(losses), stats.sem(losses)))
        assert (
            sum(g["rows"] for g in row["by_group"])
            == sum(g["rows"] for g in row["by_days_since_cutoff"])
            == sum(len(c.y) for c in result.cutoffs)
        )
    methods = summary["methods"]
    worst, best = methods["bl"]["log_loss"], methods["oracle"]["log_loss"]
    for row in methods.values():
        wanted = (worst - row["log_loss"]) / (worst - best) if worst > best else None
        assert row["gap_closed"] == (None if wanted is None else pytest.approx(wanted))
    assert methods["oracle"]["relative_log_loss"] == 0.0
    assert methods["bl"]["calibration_ratio"] < methods["dfm-piecewise"]["calibration_ratio"]
    assert summary["recommended"] == min((n for n in methods if n != "oracle"), key=lambda n: methods[n]["log_loss"])


def test_predictions_are_those_of_the_classifier(result):
    """At the first cut-off, by hand through the public interface."""
    log, settings, cutoff = result.log, result.settings, result.cutoffs[0]
    snap = log.snapshot(cutoff.as_of, lookback=f"{settings.lookback}d", horizon="10d")
    clf = DelayedFeedbackClassifier("tw", settings.window, 10.0, LinearModel(l2=cutoff.values["tw"], tol=1e-5))
    clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    start = pd.Timestamp(cutoff.as_of) + pd.Timedelta("1us")
    test = log.matured(start, start + pd.Timedelta(days=settings.period), "10d")
    assert_array_equal(test.y == 1, cutoff.y)
    assert_allclose(clf.predict_proba(test.X)[:, 1], cutoff.p["tw"], rtol=1e-6)


def test_nothing_after_a_cutoff_changes_what_is_fitted_there(result):
    second = pd.Timestamp(result.cutoffs[1].as_of).tz_localize(None)
    rng = np.random.default_rng(0)

    def scramble(frame):
        later = frame["conversion_time"] > second
        moved = frame["conversion_time"] + pd.to_timedelta(rng.integers(1, 10**6, len(frame)), "s")
        frame["conversion_time"] = moved.where(later, frame["conversion_time"])
        frame.loc[later & (rng.uniform(size=len(frame)) < 0.5), "conversion_time"] = pd.NaT
        fresh = frame["conversion_time"].isna() & (rng.uniform(size=len(frame)) < 0.3)
        after = np.maximum(frame["click_time"], second) + pd.Timedelta("1h")
        frame["conversion_time"] = frame["conversion_time"].mask(fresh, after).clip(upper=pd.Timestamp("2024-03-01"))
        return frame

    changed = backtest(make_log(change=scramble), **{**ASK, "window": f"{result.settings.window}d"})
    for k, same in ((0, True), (1, True), (2, False)):
        for name in ("bl", *METHODS):
            assert np.array_equal(result.cutoffs[k].p[name], changed.cutoffs[k].p[name]) == same, (k, name)
            assert not same or result.cutoffs[k].values[name] == changed.cutoffs[k].values[name]
    assert not np.array_equal(result.cutoffs[0].y, changed.cutoffs[0].y)


def test_a_result_is_shown_in_one_line(result):
    assert repr(result).startswith("Backtest(4 methods at 3 cut-offs from 20") and len(repr(result)) < 250


def test_row_order_does_not_matter(result):
    shuffled = backtest(make_log(change=lambda frame: frame.sample(frac=1, random_state=1)), **ASK)
    for a, b in zip(result.cutoffs, shuffled.cutoffs, strict=True):
        assert_allclose(np.sort(a.p["dfm-piecewise"]), np.sort(b.p["dfm-piecewise"]), rtol=1e-4)


def test_an_interrupted_backtest_goes_on(tmp_path, monkeypatch, result):
    log, done = make_log(), []
    worker = module._run_cutoff

    def failing(task, *rest):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(task.as_of)
        return worker(task, *rest)

    monkeypatch.setattr(module, "_run_cutoff", failing)
    with pytest.raises(KeyboardInterrupt):
        backtest(log, cache=tmp_path, group="campaign", **ASK)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(module, "_run_cutoff", worker)
    resumed = backtest(log, cache=tmp_path, group="campaign", **ASK)
    for a, b in zip(result.cutoffs, resumed.cutoffs, strict=True):
        assert a.as_of == b.as_of and a.values == b.values
        assert_array_equal(a.p["tw"], b.p["tw"])
        assert_array_equal(a.group, b.group)
    assert backtest(make_log(seed=1), cache=tmp_path, **ASK).cutoffs[0].rows != 0
    assert len(list(tmp_path.iterdir())) == 6  # another log does not take these results


def test_processes_give_the_same(result):
    parallel = backtest(make_log(), group="campaign", **{**ASK, "n_jobs": 2})
    for a, b in zip(result.cutoffs, parallel.cutoffs, strict=True):
        assert_array_equal(a.p["dfm-piecewise"], b.p["dfm-piecewise"])


def test_a_window_that_does_not_fit_is_shortened_in_words():
    found = backtest(make_log(), **{**ASK, "methods": ["tw", "convdf"], "window": "9d", "lookback": "15d"})
    assert set(found.methods) == {"bl", "tw", "convdf", "oracle"}
    assert found.windows["tw"] == 9.0 and 7.0 < found.windows["convdf"] <= 7.5
    (note,) = found.summary()["notes"]
    assert "A window of 9 days does not fit convdf into a history of 15: shown with 7.5 days" in note
    assert "a lookback of 18 days or more" in note


def test_a_method_that_cannot_be_fitted_is_told_apart():
    found = backtest(make_log(), **{**ASK, "methods": {"tw": TW(), "odd": STC(short=20.0)}})
    assert "odd" not in found.methods and "tw" in found.methods
    assert "short=20 must be at least 0 and below window" in found.failed["odd"]
    assert found.summary()["failed"]["odd"].startswith("at 2024")


def test_a_fit_that_did_not_converge_is_marked():
    ask = {**ASK, "methods": ["dfm-piecewise"], "cutoffs": 2}
    found = backtest(make_log(2000), **ask, model=LinearModel(max_iter=1))
    assert (
        found.unsettled["dfm-piecewise"].startswith("at 2024") and "stopped after 1 iterations" in found.unsettled["bl"]
    )
    assert found.summary()["unsettled"] == found.unsettled
    assert backtest(make_log(2000), **ask).unsettled == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": "400d"}, "no longer than the horizon"),
        ({"lookback": "61d"}, "leave nothing to test on"),
        ({"cutoffs": 0}, "must be at least 1"),
        ({"cutoffs": ["2024-03-30"]}, "cut-offs must lie between"),
        ({"cutoffs": ["2024-02-18"], "period": "5d"}, "last cut-off must lie before"),
        ({"cutoffs": []}, "cutoffs is empty"),
        ({"period": "40d"}, "room for 0 periods of 40 days"),
        ({"period": "12d"}, "room for 2 periods of 12 days that do not overlap, and cutoffs=3"),
        ({"cutoffs": ["2024-02-01", "2024-02-03"], "period": "5d"}, "periods of 5 days overlap"),
        ({"methods": "tw"}, "must be a list of names"),
        ({"methods": ["oracle"]}, "is not known|always there"),
        ({"methods": ["magic"]}, "'magic' is not known"),
        ({"group": "planet"}, "has no column 'planet'"),
    ],
)
def test_impossible_wishes(change, message):
    with pytest.raises(ValueError, match=message):
        backtest(make_log(n=300), **{**ASK, **change})


def test_a_log_stamped_by_the_day_has_its_cutoffs_at_midnight():
    frame = simulate_campaigns(3000).to_pandas().drop(columns="hour")
    for name in ("click_time", "conversion_time"):
        frame[name] = frame[name].dt.floor("D")
    log = EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    assert log.grid == 86_400_000_000
    found = backtest(log, **{**ASK, "methods": ["dfm-piecewise"], "cutoffs": 4})
    assert all(c.as_of.endswith("00:00:00+00:00") for c in found.cutoffs)
    snap = log.snapshot(found.cutoffs[0].as_of, horizon="10d")
    split = set_clock_back(check_labels(snap.y == 1, snap.elapsed, snap.delay, None, 5.0, 10.0))
    assert split.back == round(split.back)
    assert make_log(300).grid <= 1_000_000


def test_names_that_mean_something_else():
    with pytest.raises(ValueError, match="the name bl stands for BL"):
        backtest(make_log(300), **{**ASK, "methods": {"bl": resolve_method("tw")}})
    with pytest.raises(ValueError, match="methods is empty"):
        backtest(make_log(300), **{**ASK, "methods": []})


def test_the_gap_means_nothing_where_there_is_none(result):
    """Where BL is better than the oracle."""
    good, bad = np.full(400, 0.2), np.full(400, 0.4)
    y = np.arange(400) % 5 == 0
    same = replace(
        result.cutoffs[0],
        y=y,
        days=np.zeros(400),
        group=np.full(400, "a"),
        values=dict.fromkeys(("bl", "tw", "oracle"), 1.0),
    )
    for bl, oracle, closed in ((bad, good, 1.0), (good, bad, None)):
        cutoffs = [replace(same, p={"bl": bl, "tw": good, "oracle": oracle})] * 3
        table = score_methods(replace(result, cutoffs=cutoffs))
        assert table["tw"]["gap_closed"] == closed
        assert (table["tw"]["intervals"]["gap_closed"] is None) == (closed is None)


def test_predictions_that_are_no_numbers_are_a_failure_and_not_a_score():
    class Broken(LinearModel):
        def margins(self, X):
            found = super().margins(X)
            return np.where(found.shape[1] == 2, np.nan, found)  # of DFM alone

    found = backtest(make_log(2000), **{**ASK, "methods": ["tw", "dfm"], "cutoffs": 2}, model=Broken())
    assert "dfm" not in found.methods and "tw" in found.methods
    assert "no numbers" in found.failed["dfm"] or "finite number" in found.failed["dfm"]
