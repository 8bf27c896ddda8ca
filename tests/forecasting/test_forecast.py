"""Forecasts: sums that agree with each other, with an independent chain ladder and with what comes; bands that cover; nothing from the future."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from simulated_logs import START, simulated_frame, simulated_log

from belated import EventLog, LinearModel, forecast

QUICK = {"horizon": "14d", "as_of": "2024-03-01", "model": LinearModel(l2=1e-4)}


@pytest.fixture(scope="module")
def found():
    return forecast(simulated_log(), group="kind", arrivals="repeat", cutoffs=3, **QUICK)


def test_sums_agree_with_each_other(found):
    to_come = found.total["to_come"]
    for rows in (found.by_outcome, found.by_arrival, found.by_group):
        assert sum(row["to_come"] for row in rows) == pytest.approx(to_come)
    assert found.by_outcome[-1]["cumulated"] == pytest.approx(to_come)
    for rows in (found.by_arrival, found.by_group):
        assert sum(row["rows"] for row in rows) == found.total["rows"]
        assert sum(row["so_far"] for row in rows) == found.total["so_far"] == found.total["positive"]
    assert sum(row["new"] for row in found.by_outcome) == pytest.approx(found.total["all_to_come"] - to_come)


def test_the_history_ends_with_what_there_is_so_far(found):
    values = [row["cumulated"] for row in found.history]
    assert values == sorted(values) and values[-1] == found.total["so_far"]
    assert found.history[-1]["day"] == "2024-02-29" and len({row["day"] for row in found.history}) == len(values)
    assert 1 < len(values) <= 15


@pytest.mark.parametrize("now", ["2024-02-10", "2024-02-10 09:30"])
def test_the_history_counts_what_there_was_by_the_end_of_each_day(now):
    now, frame = pd.Timestamp(now), simulated_frame()
    mine = (frame["arrived"] <= now) & (frame["arrived"] > now - pd.Timedelta("14D"))
    history = forecast(simulated_log(), cutoffs=0, **{**QUICK, "as_of": now, "method": "chain-ladder"}).history
    assert len(history) > 10
    for row in history:
        end = min(pd.Timestamp(row["day"]) + pd.Timedelta("1D"), now)
        assert row["cumulated"] == (mine & (frame["turned"] <= end)).sum(), row


def test_bands_lie_within_each_other(found):
    for row in [found.total, *found.by_outcome, *found.by_arrival, *found.by_group]:
        (low, high), (lower, higher) = row["bands"].values()
        assert lower <= low <= row["to_come"] <= high <= higher


def test_what_arrives_next_is_more_of_the_same():
    """With steady arrivals, as many outcomes come each day as rows arrive that turn positive."""
    share = [row["all"] for row in forecast(simulated_log(n=6000), cutoffs=0, arrivals="repeat", **QUICK).by_outcome]
    assert np.mean(share) == pytest.approx(100 * 0.37, rel=0.1)
    assert np.std(share) < 0.2 * np.mean(share)


def daily(seed=0, n=4000):
    """A log stamped by the day, as a frame."""
    rng = np.random.default_rng(seed)
    booked = rng.integers(0, 60, n)
    delay = np.minimum(rng.geometric(0.25, n) - 1, 13)
    frame = pd.DataFrame(
        {"kind": rng.choice(["a", "b"], n), "booked": pd.Timestamp("2024-01-01") + pd.to_timedelta(booked, "D")}
    )
    frame["gone"] = (frame["booked"] + pd.to_timedelta(delay, "D")).where(rng.uniform(size=n) < 0.3)
    return frame


def ladder_by_hand(frame, now, horizon=14):
    """A triangle of positives by day of booking and age, and the factors from one age to the next."""
    known = frame[frame["booked"] <= now]
    age = (now - known["booked"]).dt.days
    delay = (known["gone"] - known["booked"]).dt.days.where(known["gone"] <= now)
    left = np.ones(horizon + 1)  # by what a cohort of this age is yet to be multiplied
    for k in range(horizon, 0, -1):
        old = age >= k
        left[k - 1] = left[k] * (old & (delay <= k)).sum() / (old & (delay <= k - 1)).sum()
    young = age < horizon
    return sum((delay[young & (age == k)] >= 0).sum() * (left[k] - 1) for k in range(horizon))


def test_the_chain_ladder_is_the_one_of_spreadsheets():
    frame, now = daily(), pd.Timestamp("2024-02-20")
    log = EventLog.from_frame(frame, arrival="booked", outcome="gone")
    found = forecast(log, horizon="14d", as_of=now, method="chain-ladder", cutoffs=0)
    assert found.total["to_come"] == pytest.approx(ladder_by_hand(frame, now), rel=1e-9)
    assert [row["day"] for row in found.by_outcome][:2] == ["2024-02-21", "2024-02-22"]


@pytest.mark.parametrize("mean", [0.5, 2.0, 6.0])
def test_the_chain_ladder_is_right_on_average_within_a_day_too(mean):
    """Rows of a cohort differ in age; each positive counts for all of them, not for those of its age."""
    came, said = 0.0, 0.0
    for seed in range(6):
        rng, n = np.random.default_rng(seed), 20_000
        arrived = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 40, n)), "D")
        delay = -mean * np.log1p(-rng.uniform(size=n) * -np.expm1(-13.0 / mean))
        turned = pd.Series(arrived + pd.to_timedelta(delay, "D")).where(rng.uniform(size=n) < 0.2)
        log = EventLog.from_frame(
            pd.DataFrame({"arrived": arrived, "turned": turned}), arrival="arrived", outcome="turned"
        )
        total = forecast(log, horizon="13d", as_of="2024-01-25 12:00", method="chain-ladder", cutoffs=0).total
        came, said = came + total["came"], said + total["to_come"]
    assert said / came == pytest.approx(1.0, abs=4 / np.sqrt(came) + 0.02)


def test_nothing_from_the_future_and_no_order_of_rows():
    frame, now = daily(), pd.Timestamp("2024-02-20")
    frame["revenue"] = np.where(frame["gone"].notna(), 10.0 + np.arange(len(frame)) % 7, np.nan)
    known = frame[frame["booked"] <= now].sample(frac=1.0, random_state=0)
    later = known["gone"] > now
    known["gone"], known["revenue"] = known["gone"].mask(later), known["revenue"].mask(later)
    totals = []
    for table in (frame, known):
        log = EventLog.from_frame(table, arrival="booked", outcome="gone", until=max(now, table["gone"].max()))
        ask = {"horizon": "14d", "as_of": now, "model": LinearModel(l2=1e-4), "cutoffs": 1, "value": "revenue"}
        found = forecast(log, **ask)
        totals.append([found.total["to_come"], *found.total["bands"]["95%"]])
        assert found.total["came"] is None or table is frame
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-6)


@pytest.mark.parametrize("of_positives", [False, True])
def test_a_value_that_is_the_same_for_all_scales_the_counts(of_positives):
    frame = daily()
    counts = EventLog.from_frame(frame, arrival="booked", outcome="gone")
    with_value = frame.assign(worth=np.where(frame["gone"].notna() | (not of_positives), 20.0, np.nan))
    log = EventLog.from_frame(with_value, arrival="booked", outcome="gone")
    ask = {"horizon": "14d", "as_of": "2024-02-20", "model": LinearModel(l2=1e-4), "cutoffs": 2, "levels": [0.8]}
    plain, worth = forecast(counts, **ask), forecast(log, value="worth", **ask)
    for key in ("so_far", "to_come", "came"):
        assert worth.total[key] == pytest.approx(20 * plain.total[key], rel=1e-3)
    low, high = worth.total["bands"]["80%"]
    assert [np.floor(low / 20), np.ceil(high / 20)] == pytest.approx(plain.total["bands"]["80%"], abs=1.0)
    assert bool(worth.notes) == of_positives


@pytest.mark.slow
def test_what_positives_are_worth_on_average():
    """Where only positives have a value, those to come are worth what others of their group were, and the sum is right on average."""
    off = []
    for seed in range(6):
        log = simulated_log(seed=seed, n=2500)
        frame = log.frame.assign(revenue=np.where(log.frame["kind"] == "b", 30.0, 10.0))
        arrival, outcome = (pd.to_datetime(np.where(t > 2**60, -(2**63), t), unit="us") for t in log.times)
        frame["revenue"] = frame["revenue"].where(outcome.notna())
        known = EventLog.from_frame(
            frame.assign(arrived=arrival, turned=outcome), arrival="arrived", outcome="turned", until="2024-03-15"
        )
        found = forecast(known, value="revenue", group="kind", cutoffs=0, **QUICK).total
        off.append((found["to_come"] - found["came"]) / found["came"])
    assert abs(np.mean(off)) < 3 * np.std(off, ddof=1) / np.sqrt(len(off)) < 0.25


def coverage(draws, method, **simulated):
    """How often each band holds what came, and the mean of the relative errors."""
    inside, off = {"80%": 0, "95%": 0}, []
    for seed in range(draws):
        found = forecast(simulated_log(seed=seed, n=2000, **simulated), cutoffs=2, **{**QUICK, "method": method}).total
        off.append((found["to_come"] - found["came"]) / found["came"])
        for level, (low, high) in found["bands"].items():
            inside[level] += low <= found["came"] <= high
    return inside, off


def check_coverage(draws, inside, off):
    for level, share in (("80%", 0.8), ("95%", 0.95)):
        assert stats.binom.cdf(inside[level], draws, share) > 1e-3, (level, inside[level])
    assert abs(np.mean(off)) < 3.5 * np.std(off, ddof=1) / np.sqrt(draws)


def test_bands_cover():
    inside, off = coverage(40, "chain-ladder")
    check_coverage(40, inside, off)


@pytest.mark.slow
@pytest.mark.parametrize("uneven", [0.0, 0.4])
def test_bands_cover_in_many_draws(uneven):
    inside, off = coverage(200, "dfm-piecewise", uneven=uneven)
    check_coverage(200, inside, off)


def test_past_forecasts_are_those_of_that_day():
    log = simulated_log()
    past = forecast(log, cutoffs=2, **QUICK).past
    assert len(past) == 2
    for one in past:
        again = forecast(log, cutoffs=0, **{**QUICK, "as_of": one["as_of"]}).total
        assert again["to_come"] == pytest.approx(one["forecast"]) and again["came"] == one["came"]


def test_the_verdict_and_the_errors(found):
    assert f"{found.total['rows']:,} rows" in found.verdict and "80% band" in found.verdict
    assert set(found.errors) == {"forecast", "chain-ladder"}
    past = found.past
    off = np.mean([abs(one["forecast"] - one["came"]) / one["came"] for one in past])
    assert found.errors["forecast"]["total"] == pytest.approx(off)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"horizon": "90d"}, "the oldest row is 60 days old, and the horizon is 90"),
        ({"as_of": "2025-01-01"}, "outside the log"),
        ({"method": "magic"}, "method='magic' is not known; choose chain-ladder or one of bl"),
        ({"levels": [80]}, "must be numbers between 0 and 1"),
        ({"levels": []}, "must be numbers between 0 and 1"),
        ({"arrivals": "more"}, "leave it out, or say 'repeat'"),
        ({"group": "nothing"}, "nothing"),
        ({"value": "kind"}, "must hold numbers to be summed up"),
        ({"cutoffs": -1}, "at least 0"),
        ({"lookback": "9d"}, "a longer log or lookback"),
        ({"as_of": "2024-01-02"}, "positive so far: a forecast needs at least 30"),
    ],
)
def test_what_cannot_be_forecast(asked, message):
    with pytest.raises(ValueError, match=message):
        forecast(simulated_log(n=2000), **{**QUICK, **asked})


def test_rows_that_are_all_final_leave_nothing_to_come():
    with pytest.raises(ValueError, match="nothing is still to come"):
        forecast(simulated_log(n=1000, after=30.0), **{**QUICK, "as_of": "2024-03-28"})


def test_values_that_are_no_values():
    log = simulated_log(n=500)
    frame = log.frame.assign(worth=-1.0)
    arrival, outcome = (pd.to_datetime(np.where(t > 2**60, -(2**63), t), unit="us") for t in log.times)
    frame = frame.assign(arrived=arrival, turned=outcome)
    ask = {"arrival": "arrived", "outcome": "turned", "until": "2024-03-15"}
    with pytest.raises(ValueError, match="column 'worth': 500 rows are negative, the first at row 0"):
        forecast(EventLog.from_frame(frame, **ask), value="worth", **QUICK)
    frame["worth"] = np.where(outcome.notna(), np.nan, 1.0)
    with pytest.raises(ValueError, match="positive without a value"):
        forecast(EventLog.from_frame(frame, **ask), value="worth", **QUICK)


def test_bands_of_counts_end_where_all_open_rows_have_turned_positive():
    found = forecast(simulated_log(), cutoffs=1, levels=[0.9999], **QUICK)
    still_open = found.total["rows"] - found.total["positive"]
    assert found.total["bands"]["99.99%"][1] <= still_open
    assert all(row["bands"]["99.99%"][1] <= row["rows"] - row["so_far"] for row in found.by_arrival)


def test_a_log_without_features_gets_the_chain_ladder():
    log = simulated_log(n=1500)
    found = forecast(log.without_features(), cutoffs=0, **QUICK)
    assert found.total["to_come"] == forecast(log, cutoffs=0, **{**QUICK, "method": "chain-ladder"}).total["to_come"]
    assert "no features" in found.notes[-1]


def test_a_log_of_positives_alone_is_refused():
    arrived = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(200) / 10, "D")
    frame = pd.DataFrame({"kind": "a", "arrived": arrived, "turned": arrived + pd.to_timedelta(1, "D")})
    log = EventLog.from_frame(frame, arrival="arrived", outcome="turned")
    with pytest.raises(ValueError, match="rows that are final is positive: there are no negatives"):
        forecast(log, horizon="5d", as_of="2024-01-21")


def test_the_unit_of_a_value_does_not_matter():
    frame, found = simulated_frame(), []
    for unit in (1.0, 1e-6, 1e6):
        frame["price"] = frame["revenue"] * unit
        other = EventLog.from_frame(frame, arrival="arrived", outcome="turned", until="2024-03-15")
        one = forecast(other, value="price", cutoffs=3, **{**QUICK, "method": "chain-ladder"})
        ends = np.array([row["bands"]["95%"] for row in [one.total, *one.by_outcome]]) / unit
        found.append((ends, one.errors["forecast"]["total"], one.settings["drift"]))
    for ends, error, drift in found[1:]:
        assert ends == pytest.approx(found[0][0]) and (error, drift) == pytest.approx(found[0][1:])


def test_a_value_that_a_few_rows_lack_is_asked_for():
    frame = daily()
    frame["price"] = 10.0
    known = EventLog.from_frame(frame, arrival="booked", outcome="gone")
    forecast(known, value="price", horizon="14d", as_of="2024-02-15", cutoffs=0)
    row = int(np.flatnonzero(frame["gone"].isna())[3])
    frame.loc[row, "price"] = np.nan
    some = EventLog.from_frame(frame, arrival="booked", outcome="gone")
    with pytest.raises(ValueError, match=rf"column 'price': 1 row is without a value, the first at row {row}"):
        forecast(some, value="price", horizon="14d", as_of="2024-02-15", cutoffs=0)
    frame["price"] = 1e200
    with pytest.raises(ValueError, match="infinite, or too large to add up"):
        forecast(EventLog.from_frame(frame, arrival="booked", outcome="gone"), value="price", horizon="14d", cutoffs=0)


def test_what_is_final_does_not_depend_on_how_far_one_looks_ahead():
    log = simulated_log()
    near, all_of_it, far = (forecast(log, cutoffs=2, ahead=ahead, **QUICK) for ahead in ("4d", None, "300d"))
    for found in (near, far):
        assert found.total["final"] == pytest.approx(all_of_it.total["final"])
        assert sum(row["final"] for row in found.by_arrival) == pytest.approx(all_of_it.total["final"])
    assert near.total["to_come"] < all_of_it.total["to_come"] == pytest.approx(far.total["to_come"])
    assert f"more will come by {near.total['until']}" in near.verdict and "will come (" in all_of_it.verdict
    assert far.total["half_by"] == all_of_it.total["half_by"]
    # Of the past, what came within as many days.
    for one in near.past:
        known = forecast(log, cutoffs=0, ahead="4d", **{**QUICK, "as_of": one["as_of"]}).total
        assert (known["to_come"], known["came"]) == (pytest.approx(one["forecast"]), one["came"])


def test_days_named_of_long_steps_are_those_by_which_it_has_come():
    log = simulated_log()
    days = forecast(log, cutoffs=0, ahead="60d", **QUICK)
    weeks = forecast(log, cutoffs=0, ahead="150d", **QUICK)
    assert (days.settings["unit"], weeks.settings["unit"]) == ("day", "week")
    assert weeks.total["half_by"] == days.total["half_by"]
    now = pd.Timestamp(QUICK["as_of"])
    assert pd.Timestamp(weeks.total["until"]) == now + pd.Timedelta("150D")


def test_a_chain_ladder_promises_no_more_than_there_are_rows():
    rng, n = np.random.default_rng(0), 3000
    arrived = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 40, n)), "D")
    turned = pd.Series(arrived + pd.to_timedelta(rng.exponential(6.0, n).clip(max=13), "D")).where(
        rng.uniform(size=n) < 0.95
    )
    log = EventLog.from_frame(pd.DataFrame({"arrived": arrived, "turned": turned}), arrival="arrived", outcome="turned")
    found = forecast(log, horizon="14d", as_of="2024-02-05", method="chain-ladder", cutoffs=0)
    for row in found.by_arrival:
        assert row["final"] <= row["rows"] + 1e-9
        for low, high in row["bands"].values():
            assert low <= row["to_come"] + 1e-9 <= high + 2e-9


def test_a_chain_ladder_has_days_however_far_it_looks():
    log, ask = simulated_log(), {**QUICK, "method": "chain-ladder"}
    one, other = (forecast(log, cutoffs=2, ahead=ahead, **ask) for ahead in ("20d", "400d"))
    assert one.total["to_come"] == pytest.approx(other.total["to_come"])
    assert one.errors == other.errors and other.settings["cohort"] == "day"


def test_the_chain_ladder_says_that_it_knows_no_groups():
    found = forecast(simulated_log(), cutoffs=0, group="kind", **{**QUICK, "method": "chain-ladder"})
    assert any("knows no kind" in note for note in found.notes)
    with pytest.raises(ValueError, match="goes with a classifier"):
        forecast(simulated_log(), cutoffs=0, **{**QUICK, "method": "chain-ladder", "model": "boost"})


def test_outcomes_that_end_before_the_arrivals_are_told():
    frame, now = simulated_frame(), pd.Timestamp("2024-02-25")
    known = frame[frame["arrived"] <= now].copy()
    known["turned"] = known["turned"].where(known["turned"] <= now)
    fed = known.assign(turned=known["turned"].where(known["turned"] <= now - pd.Timedelta("3D")))
    ask = {"horizon": "14d", "model": LinearModel(l2=1e-4), "cutoffs": 0}
    whole, cut = (
        forecast(EventLog.from_frame(one, arrival="arrived", outcome="turned", until=now), **ask)
        for one in (known, fed)
    )
    assert whole.settings["silence"] is None
    assert cut.verdict.startswith("No outcome after 2024-02-2") and "too low" in cut.verdict
    log = EventLog.from_frame(fed, arrival="arrived", outcome="turned", until=now)
    assert forecast(log, value="revenue", **ask).settings["silence"] == cut.settings["silence"]


def test_groups_that_are_quicker_than_others_get_what_is_theirs():
    """Simulated: kind b takes three times as long, and as many of it turn positive."""
    said, came = np.zeros(2), np.zeros(2)
    for seed in range(6):
        rng, n = np.random.default_rng(seed), 12_000
        slow = rng.uniform(size=n) < 0.5
        arrived = START + pd.to_timedelta(np.sort(rng.uniform(0, 60, n)), "D")
        delay = rng.exponential(np.where(slow, 6.0, 2.0)).clip(max=19)
        turned = pd.Series(arrived + pd.to_timedelta(delay, "D")).where(rng.uniform(size=n) < 0.3)
        frame = pd.DataFrame({"arrived": arrived, "turned": turned, "kind": np.where(slow, "b", "a")})
        log = EventLog.from_frame(frame, arrival="arrived", outcome="turned", until="2024-04-01")
        rows = forecast(log, group="kind", cutoffs=0, **{**QUICK, "horizon": "20d"}).by_group
        now = pd.Timestamp(QUICK["as_of"])
        later = (frame["arrived"] <= now) & (frame["turned"] > now)
        for k, kind in enumerate("ab"):
            said[k] += next(row["to_come"] for row in rows if row["name"] == kind)
            came[k] += (later & (frame["kind"] == kind)).sum()
    assert said / came == pytest.approx(1.0, abs=0.3)


def test_arrivals_that_end_before_the_log_are_told_where_they_are_repeated():
    log, ask = simulated_log(), {**QUICK, "as_of": "2024-03-08", "method": "chain-ladder", "cutoffs": 0}
    noted = [
        any("No row arrived after" in note for note in forecast(log, arrivals=how, **ask).notes)
        for how in ("repeat", None)
    ]
    assert noted == [True, False]
    assert not any("No row" in n for n in forecast(log, arrivals="repeat", **{**ask, "as_of": "2024-02-28"}).notes)


def test_hours_are_named_by_their_ends():
    log = simulated_log()
    hours, ask = forecast(log, cutoffs=0, ahead="2d", **QUICK), {**QUICK, "as_of": "2024-03-01"}
    assert hours.settings["unit"] == "hour" and hours.total["until"] == "2024-03-03 00:00"
    half = pd.Timestamp(hours.total["half_by"])
    come = {one["day"]: one["cumulated"] for one in hours.by_outcome}
    before = come[(half - pd.Timedelta("1h")).strftime("%Y-%m-%d %H:%M")]  # named by its beginning
    assert before >= hours.total["to_come"] / 2
    assert [row["name"] for row in hours.by_arrival] == [
        row["name"] for row in forecast(log, cutoffs=0, **ask).by_arrival
    ]


def test_steps_of_plain_seconds_are_days():
    frame = simulated_frame(n=6000, days=400.0)
    seconds = frame.assign(**{name: (frame[name] - START) / pd.Timedelta("1s") for name in ("arrived", "turned")})
    log = EventLog.from_frame(seconds, arrival="arrived", outcome="turned", until=500 * 86400.0)
    found = forecast(log, horizon="150d", as_of=300 * 86400.0, method="chain-ladder", cutoffs=0)
    assert found.settings["unit"] == "week" and found.total["until"] == "day 450"
    assert found.by_outcome[1]["day"].startswith("day ")
