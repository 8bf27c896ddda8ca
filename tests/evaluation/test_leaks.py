"""Columns that know the outcome are named; columns that only drift, or predict well, are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from belated import EventLog, backtest, ingest_parquet, train
from belated.data.durations import DAY
from belated.datasets import simulate_campaigns, simulate_clicks
from belated.evaluation.column_findings import examine_columns, leaks
from belated.evaluation.diagnosis import diagnose
from belated.evaluation.leaks import uncertainty_taken

UNTIL = pd.Timestamp("2024-03-01")


def with_columns(n=12_000, seed=0, **columns):
    """Simulated clicks with more columns, each a function of (random numbers, age in days, whether converted, the table)."""
    frame = simulate_campaigns(n, seed=seed).to_pandas()
    age = (UNTIL - frame["click_time"]).dt.total_seconds().to_numpy() / 86400
    positive = frame["conversion_time"].notna().to_numpy()
    made = {k: make(np.random.default_rng(seed), age, positive, frame) for k, make in columns.items()}
    return EventLog.from_frame(
        frame.assign(**made), arrival="click_time", outcome="conversion_time", until=UNTIL.isoformat()
    )


LEAKS = {
    "the label": (lambda rng, age, y, f: y.astype(int), "of the uncertainty about the outcome: where it is 1, 100.0%"),
    "the label as words": (
        lambda rng, age, y, f: np.where(y, "yes", "no"),
        "where it is yes, 100.0% of the rows have one",
    ),
    "its opposite": (lambda rng, age, y, f: ~y, "takes away"),
    "a status": (
        lambda rng, age, y, f: np.where(y, "won", np.where(rng.exponential(8, len(y)) < age, "lost", "open")),
        "takes away",
    ),
    "what it was worth": (
        lambda rng, age, y, f: np.where(y, rng.gamma(2, 50, len(y)), np.nan),
        "where it is missing, 0.0%",
    ),
    "the label, now and then wrong": (
        lambda rng, age, y, f: np.where(rng.random(len(y)) < 0.03, ~y, y),
        "takes away",
    ),
    "known of those who got that far": (
        lambda rng, age, y, f: np.where(y | (rng.random(len(y)) < 0.3), rng.choice(["a", "b"], len(y)), None),
        "missing in 0% of the rows with an outcome and in 70% of those without",
    ),
    "the same as empty text": (
        lambda rng, age, y, f: np.where(y | (rng.random(len(y)) < 0.3), rng.choice(["a", "b"], len(y)), ""),
        "missing in 0% of the rows with an outcome",
    ),
    "filled in days later": (
        lambda rng, age, y, f: np.where(rng.exponential(5, len(y)) < age, rng.choice(["a", "b"], len(y)), None),
        "not yet positive",
    ),
    "filled in for some, days later": (
        lambda rng, age, y, f: np.where(
            (rng.exponential(4, len(y)) < age) & (rng.random(len(y)) < 0.5), rng.choice(["a", "b"], len(y)), None
        ),
        "not yet positive",
    ),
    "assigned later": (
        lambda rng, age, y, f: np.where(rng.exponential(3, len(y)) < age, rng.choice(["u", "v"], len(y)), "nobody"),
        "have the value nobody",
    ),
    "calls so far": (lambda rng, age, y, f: rng.poisson(np.minimum(age, 14) / 2), "have the value 0"),
    "minutes so far": (lambda rng, age, y, f: np.minimum(age, 10) * rng.gamma(5, 1, len(y)), "not yet positive"),
    "a refund that only positives have": (
        lambda rng, age, y, f: np.where(y & (rng.random(len(y)) < 0.4), rng.gamma(2, 9, len(y)), 0.0),
        "100.0% of the",
    ),
    "days since": (lambda rng, age, y, f: np.floor(age), "the age of the row at the end of the log, in days"),
}

HARMLESS = {
    "noise": lambda rng, age, y, f: rng.normal(size=len(y)),
    "a strong feature": lambda rng, age, y, f: rng.normal(size=len(y)) + 2 * y,
    "often missing": lambda rng, age, y, f: np.where(rng.random(len(y)) < 0.7, None, "a"),
    "missing a little more often": lambda rng, age, y, f: np.where(rng.random(len(y)) < 0.5 + 0.1 * y, None, "a"),
    "a new column, missing in old rows": lambda rng, age, y, f: np.where(age > 30, np.nan, rng.normal(size=len(y))),
    "prices that rise": lambda rng, age, y, f: 100 - age + rng.normal(0, 5, len(y)),
    "a month": lambda rng, age, y, f: f["click_time"].dt.month_name(),
    "a running number": lambda rng, age, y, f: np.arange(len(y)),
    "a price list that changed 5 days ago": lambda rng, age, y, f: np.where(age < 5, "2024b", "2024a"),
    "a version released every 21 days": lambda rng, age, y, f: np.floor((60 - age) / 21).astype(int).astype(str),
    "days until a fixed date": lambda rng, age, y, f: np.floor(age + 33),
    "a budget that runs out": lambda rng, age, y, f: 1000 + 10 * age + rng.normal(0, 3, len(y)),
    "missing more often for 4 days": lambda rng, age, y, f: np.where((age < 4) & (rng.random(len(y)) < 0.4), None, "a"),
    "a column that ended 6 days ago": lambda rng, age, y, f: np.where(age < 6, None, rng.choice(["a", "b"], len(y))),
    "a weekday": lambda rng, age, y, f: f["click_time"].dt.day_name(),
    "missing on Sundays": lambda rng, age, y, f: np.where(f["click_time"].dt.day_name() == "Sunday", None, "a"),
    "a coupon that few have": lambda rng, age, y, f: np.where(rng.random(len(y)) < np.where(y, 0.4, 0.07), "x", None),
    "a campaign that began last week": lambda rng, age, y, f: np.where(
        (age < 7) & (rng.random(len(y)) < 0.3), "new", "old"
    ),
    "a campaign that ended last week": lambda rng, age, y, f: np.where(
        (age < 7) | (rng.random(len(y)) < 0.7), "going on", "ended"
    ),
}


@pytest.mark.parametrize("case", LEAKS)
def test_what_knows_the_outcome_is_named_with_the_evidence(case):
    make, why = LEAKS[case]
    found = leaks(with_columns(extra=make), 14 * DAY)
    assert [one.column for one in found] == ["extra"]
    assert why in found[0].text, found[0].text


@pytest.mark.parametrize("case", HARMLESS)
def test_what_does_not_know_it_is_left_alone(case):
    for seed in range(3):
        assert leaks(with_columns(seed=seed, extra=HARMLESS[case]), 14 * DAY) == []


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.97])
@pytest.mark.parametrize("mean_delay", [1, 10, 14])
def test_high_rates_and_long_delays_are_no_leak(rate, mean_delay):
    """Nearly every old row is positive and hardly any young one, so whatever follows the calendar goes with the outcome."""
    rng = np.random.default_rng(0)
    n = 6000
    age = np.sort(rng.uniform(0, 40, n))[::-1]
    shape = 1 if mean_delay < 14 else 200  # the longest come nearly on a day
    delay = np.where(rng.random(n) < rate, rng.gamma(shape, mean_delay / shape, n), np.inf)
    arrived = UNTIL - pd.to_timedelta(age, "D")
    outcome = (arrived + pd.to_timedelta(np.where(delay <= age, delay, 0), "D")).where(delay <= age)
    frame = pd.DataFrame({
        "at": arrived,
        "out": outcome,
        "number": np.arange(n),
        "week": arrived.isocalendar().week.to_numpy(),
        "price": 50 - age + rng.normal(0, 1, n),
        "new": np.where(age > 10, np.nan, rng.normal(size=n)),
        "noise": rng.normal(size=n),
    })  # fmt: skip
    log = EventLog.from_frame(frame, arrival="at", outcome="out", until=UNTIL.isoformat())
    assert leaks(log, 14 * DAY) == []
    flag = frame.assign(paid=frame["out"].notna())
    log = EventLog.from_frame(flag, arrival="at", outcome="out", until=UNTIL.isoformat())
    assert [one.column for one in leaks(log, 14 * DAY)] == ["paid"]


def test_hashed_logs_are_looked_at_too(tmp_path):
    frame = simulate_campaigns(3000).to_pandas()
    frame.assign(converted=frame["conversion_time"].notna()).to_parquet(tmp_path / "log.parquet", index=False)
    times = {"arrival": "click_time", "outcome": "conversion_time"}
    ingest_parquet(tmp_path / "log.parquet", tmp_path / "log", **times, progress=False)
    with pytest.raises(ValueError, match="converted seems to know the outcome"):
        train(EventLog.open(tmp_path / "log"), horizon="14d", method="bl", l2=1e-3)


def test_no_false_alarm_on_simulated_logs_of_any_size():
    for rows in (300, 1500, 20_000):
        for seed in range(4):
            assert leaks(with_columns(rows, seed), 14 * DAY) == []
    log = EventLog.from_frame(simulate_clicks(), arrival="click_time", outcome="conversion_time")
    for horizon in (1, 14, 40):
        assert leaks(log, horizon * DAY) == []


def test_a_label_with_a_longer_reach_than_the_horizon_is_found():
    """Half of the conversions come after the horizon, so the flag does not determine the label."""
    log = with_columns(converted=LEAKS["the label"][0])
    assert [one.column for one in leaks(log, DAY // 2)] == ["converted"]


def test_the_calendar_is_no_leak_on_any_day():
    for back in range(14):
        frame = simulate_campaigns(12_000).to_pandas()
        end = UNTIL - pd.Timedelta(days=back, hours=5 * back)
        frame = frame[frame["click_time"] <= end].assign(
            weekday=frame["click_time"].dt.day_name(), day=frame["click_time"].dt.day.astype(str)
        )
        frame["conversion_time"] = frame["conversion_time"].where(frame["conversion_time"] <= end)
        log = EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until=end.isoformat())
        for days in (3, 14, 30):
            assert leaks(log, days * DAY) == [], (back, days)


def test_small_logs_are_looked_at_too():
    log = with_columns(90, status=LEAKS["the label as words"][0])
    assert [one.column for one in leaks(log, 14 * DAY)] == ["status"]


def test_many_values_determine_nothing():
    rng = np.random.default_rng(0)
    assert uncertainty_taken(rng.integers(0, 100, 400), rng.random(400) < 0.3, np.zeros(400, dtype=int)) < 0.1


def test_refused_in_python_unless_kept():
    log = with_columns(3000, converted=LEAKS["the label"][0], status=LEAKS["a status"][0])
    message = "converted, status seem to know the outcome.*--drop converted,status.*--keep converted --keep status"
    with pytest.raises(ValueError, match=message):
        backtest(log, horizon="14d", cutoffs=2, methods=["tw"])
    with pytest.raises(ValueError, match="status seems to know the outcome"):
        train(log, horizon="14d", method="bl", l2=1e-3, keep=["converted"])
    with pytest.raises(ValueError, match="keep names 'price', which is no feature"):
        train(log, horizon="14d", keep=["price"])
    with pytest.raises(ValueError, match="must be a list of columns"):
        train(log, horizon="14d", keep="converted")
    kept = train(log, horizon="14d", method="bl", l2=1e-3, keep=["converted", "status"])
    assert "converted" in kept.features


def test_other_findings_about_columns():
    rng = np.random.default_rng(0)
    log = with_columns(
        3000,
        user=lambda r, age, y, f: [f"u{i}" for i in rng.permutation(len(y))],
        number=lambda r, age, y, f: np.arange(len(y)),
        seen=lambda r, age, y, f: f["click_time"].dt.strftime("%d.%m.%Y"),
        day=lambda r, age, y, f: f["click_time"].dt.strftime("%Y%m%d").astype(int),
        one=lambda r, age, y, f: 1,
        nothing=lambda r, age, y, f: None,
        zip=lambda r, age, y, f: rng.choice([10115, 20095, 80331, 1067], len(y)),
        plant=lambda r, age, y, f: rng.choice([1001, 1002, 4007], len(y)),
        price=lambda r, age, y, f: rng.gamma(2, 10, len(y)),
        quantity=lambda r, age, y, f: rng.integers(1, 12, len(y)),
        budget=lambda r, age, y, f: [
            f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in rng.gamma(2, 900, len(y))
        ],
        dollars=lambda r, age, y, f: [f"${x:,.2f}" for x in rng.gamma(2, 900, len(y))],
        version=lambda r, age, y, f: rng.choice(["1.2.3", "1.10.0"], len(y)),
        size=lambda r, age, y, f: rng.choice(["38", "40", "XL"], len(y)),
    )
    found = {one.column: one.kind for one in examine_columns(log, 14 * DAY)}
    assert found == {
        "user": "id",
        "number": "id",
        "seen": "date",
        "day": "date",
        "one": "constant",
        "nothing": "empty",
        "zip": "code",
        "plant": "code",
        "budget": "number",
        "dollars": "number",
    }
    diagnosis = diagnose(log, horizon="14d")
    assert {one["column"]: one["kind"] for one in diagnosis.summary()["columns"]} == found
    assert any(text.startswith("Column zip: its 4 numbers") for text in diagnosis.findings())


def test_names_in_a_refusal_can_be_typed():
    log = with_columns(600, **{"amount won": lambda r, age, y, f: np.where(y, 1.0, np.nan)})
    with pytest.raises(
        ValueError, match=r"--drop 'amount won' .*without_features\('amount won'\).* --keep 'amount won'"
    ):
        train(log, horizon="14d")
