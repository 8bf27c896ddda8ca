"""The delay curve and the tests of assumptions, over simulated draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from belated import EventLog, diagnose
from belated.datasets import simulate_campaigns
from belated.evaluation.delay_curve import delay_curve


def draws(n, seed, rate=0.3, mean=4.0, span=30.0):
    rng = np.random.default_rng(seed)
    elapsed, wait = rng.uniform(0, span, n), rng.exponential(mean, n)
    seen = (rng.uniform(size=n) < rate) & (wait <= elapsed)
    return elapsed, np.where(seen, wait, np.nan)


def test_the_curve_is_right_although_young_rows_had_no_time():
    elapsed, delay = draws(200_000, 0)
    curve = delay_curve(elapsed, delay, 20.0)
    for age in (1.0, 4.0, 10.0, 20.0):
        at = np.searchsorted(curve.ages, age) - 1
        assert_allclose(curve.positive[at], 0.3 * (1 - np.exp(-age / 4)), rtol=0.03)
    assert_allclose(curve.age_of(0.5), -4 * np.log(1 - 0.5 * (1 - np.exp(-5))), rtol=0.03)
    plain = np.mean(delay[~np.isnan(delay)] <= 4.0)
    assert plain > curve.seen(np.array([4.0]))[0] + 0.02  # what counting would have given is too high


def test_the_band_covers():
    covered = []
    for seed in range(150):
        elapsed, delay = draws(1500, seed)
        curve = delay_curve(elapsed, delay, 25.0)
        at = np.searchsorted(curve.ages, 8.0) - 1
        covered.append(curve.low[at] <= 0.3 * (1 - np.exp(-2)) <= curve.high[at])
    assert 0.88 <= np.mean(covered) <= 0.995


def test_the_curve_equals_counting_where_every_row_is_old():
    rng = np.random.default_rng(0)
    delay = np.where(rng.uniform(size=500) < 0.4, rng.integers(0, 5, 500), np.nan)
    curve = delay_curve(np.full(500, 30.0), delay)
    assert_allclose(curve.positive[-1], np.mean(~np.isnan(delay)))
    assert_allclose(curve.seen(np.array([2.0])), np.mean(delay[~np.isnan(delay)] <= 2))


def test_row_order_does_not_matter():
    elapsed, delay = draws(2000, 1)
    order = np.random.default_rng(0).permutation(2000)
    first, second = delay_curve(elapsed, delay), delay_curve(elapsed[order], delay[order])
    assert_allclose(first.positive, second.positive)


def make_log(n=20_000, seed=0, late_rate=0.3, late_mean=2.0, new=False):
    rng = np.random.default_rng(seed)
    day = rng.uniform(0, 60, n)
    later = day > 30
    positive = rng.uniform(size=n) < np.where(later, late_rate, 0.3)
    wait = rng.exponential(np.where(later, late_mean, 2.0))
    known = positive & (day + wait <= 60)
    campaign = np.where(later & (rng.uniform(size=n) < 0.5) & (day > 56) & new, "fresh", "old")
    start = pd.Timestamp("2024-01-01")
    return EventLog.from_frame(
        pd.DataFrame(
            {
                "at": start + pd.to_timedelta(day, "D"),
                "then": (start + pd.to_timedelta(day + wait, "D")).where(known),
                "campaign": campaign,
            }
        ),
        arrival="at",
        outcome="then",
        until=start + pd.Timedelta("60D"),
    )


def test_nothing_changes_where_nothing_changed():
    alarms = [diagnose(make_log(seed=seed), horizon="20d", group="campaign") for seed in range(10)]
    assert sum(d.change.rate_changed or d.change.delay_changed for d in alarms) == 0
    assert sum(c.rate_changed or c.delay_changed for d in alarms for c in d.changes.values()) == 0


def test_changes_are_found():
    d = diagnose(make_log(late_rate=0.4), horizon="20d", group="campaign")
    assert d.change.rate_changed and not d.change.delay_changed
    assert d.changes["old"].rate_changed
    d = diagnose(make_log(late_mean=3.5), horizon="20d")
    assert d.change.delay_changed
    assert any("delays have changed" in sentence for sentence in d.findings())


def test_window_and_unseen_values():
    d = diagnose(make_log(new=True), horizon="20d")
    assert_allclose(d.window, 2.0 * np.log(10), rtol=0.1)
    assert_allclose(d.after_window[0], 0.1, atol=0.01)
    assert d.after_window[1] <= d.after_window[0] <= d.after_window[2]
    assert_allclose(d.unseen["campaign"], 0.5 * 4 / d.window, atol=0.05)
    lost = [w["positives_lost"] for w in d.windows]
    assert lost == sorted(lost, reverse=True)
    recent = d.days[-2]
    assert recent["rate_so_far"] < recent["rate_expected"] < 0.5


def test_the_quickest_and_the_slowest_value_are_named():
    n, rng = 20_000, np.random.default_rng(1)
    start, day, channel = (
        pd.Timestamp("2024-01-01"),
        rng.uniform(0, 60, n),
        rng.choice(["mail", "web", "odd"], n, p=[0.5, 0.499, 0.001]),
    )
    wait = rng.exponential(np.where(channel == "mail", 5.0, 1.0))
    then = (start + pd.to_timedelta(day + wait, "D")).where((rng.uniform(size=n) < 0.3) & (day + wait < 60))
    frame = pd.DataFrame({"at": start + pd.to_timedelta(day, "D"), "then": then, "channel": channel})
    d = diagnose(
        EventLog.from_frame(frame, arrival="at", outcome="then", until=start + pd.Timedelta("60D")),
        horizon="20d",
        group="channel",
    )
    assert set(d.half_times) == {"mail", "web"}  # some twenty rows of the third tell nothing
    assert_allclose(d.half_times["web"], np.log(2), rtol=0.1)
    assert_allclose(d.half_times["mail"], -5 * np.log(1 - 0.5 * (1 - np.exp(-4))), rtol=0.1)
    assert any("web has its positives soonest" in sentence and "mail latest" in sentence for sentence in d.findings())


def test_no_positives():
    frame = pd.DataFrame({"at": ["2024-01-01", "2024-01-05"], "then": [None, None], "x": [1, 2]})
    with pytest.raises(ValueError, match="none of the 2 rows is positive"):
        diagnose(EventLog.from_frame(frame, arrival="at", outcome="then"))


def test_what_cannot_be_done_is_said_with_the_nearest_that_can():
    log = EventLog.from_frame(
        simulate_campaigns(2000), arrival="click_time", outcome="conversion_time", until="2024-03-01"
    )
    assert diagnose(log, horizon="14d", lookback="30d").limits() == []
    (short,) = diagnose(log, horizon="14d", window="10d", lookback="14d").limits()
    assert "convdf, nndf, fsiw, rescale, ulc need two windows" in short and "the longest that fits is 7 days" in short
    assert "a lookback of 20" in short
    found = diagnose(log, horizon="90d", window="5d").findings()
    assert "no longer than the horizon of 90: no label is final" in found[-1] and "A horizon of 30 days" in found[-1]


def test_how_likely_the_correction_of_nndf_is_to_bias_a_fit(caplog):
    """Lemma 1: the bound holds over draws, falls with rows, and is told in the log and the diagnosis."""
    from simulate import simulate

    from belated import ConvDF, DelayedFeedbackClassifier
    from belated.data.labels import check_labels
    from belated.methods.delayed_feedback import correction_bound, correction_matters_below

    # A margin that is sure of everything: the loss of negatives is small, and their risk often below 0.
    parts, largest = [], []
    for seed in range(300):
        data = simulate(seed=seed, n=150, history=12.0, longest=5.0)
        labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0)
        if not labels.late.any():
            continue
        margins = np.where(data.truth, 3.0, -3.0)[:, None]
        risk = ConvDF().risk(labels, None)
        parts.append(risk.negative_part(margins))
        largest.append(risk.loss.value(-margins[:, 0]).max())
    below = np.mean(np.array(parts) < 0)
    assert below <= correction_bound(np.mean(parts), np.max(largest), 150, labels.mature.sum())
    assert_allclose(correction_bound(correction_matters_below(900, 400), 1.0, 900, 400), 0.05)
    data = simulate(seed=0, n=2000)
    with caplog.at_level("INFO", logger="belated"):
        DelayedFeedbackClassifier("nndf", 5.0, 20.0).fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert any("biases this fit has a probability of at most" in record.message for record in caplog.records)
