"""lift: intervals that cover whatever delays, days and traffic do, on simulated experiments whose effect is known."""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from belated import EventLog, FieldMatrix, backtest, diagnose, forecast, train
from belated.evaluation.seen_shares import seen_shares
from belated.monitoring.arms import ArmRows
from belated.monitoring.delay_test import later_than
from belated.monitoring.final_rates import final_rates, influence_on_shares
from belated.monitoring.lift import lift

ROOT = Path(__file__).parents[2]
DAY = 86400.0


def the_experiment():
    """experiments/lift.py, whose simulated logs the tests share."""
    spec = importlib.util.spec_from_file_location("experiment_of_lift", ROOT / "experiments" / "lift.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXPERIMENT = the_experiment()


def simulated(seed=0, days=12.0, a_day=300, rate=0.2, means=(3.0, 1.5), **how):
    """An experiment with a horizon of 8 days; in arm b positives come sooner."""
    rng = np.random.default_rng(seed)
    return EXPERIMENT.simulate(rng, days, a_day, rate=rate, means=means, horizon=8, **how)


def look(log, day=12.0, **how):
    return lift(log, **{"treatment": "arm", "horizon": 8 * DAY, "as_of": day * DAY, **how})


def frame(rows=400, arms=("a", "b")):
    """Rows of a day, all final, half of them positive within hours."""
    k = np.arange(rows)
    table = {"arm": [arms[i % len(arms)] for i in k], "user": [f"u{i // 7}" for i in k], "came": k * (DAY / rows)}
    table["turned"] = np.where((k // len(arms)) % 2, table["came"] + 3600.0 * (1 + k % 5), np.nan)
    return pd.DataFrame(table)


def log_of(table, **how):
    return EventLog.from_frame(table, arrival="came", outcome="turned", until=40 * DAY, **how)


def rows_of(log, day=12.0, cluster=None):
    return ArmRows.of(log, "arm", None, cluster, 8 * DAY, day * DAY)


# What it is when nothing is late


def test_with_final_labels_it_is_the_ratio_of_two_shares():
    log = simulated(a_day=30)
    found = look(log, day=20.0)
    for name in ("ratio", "difference"):
        value = found.as_they_stand[0][name][0]
        assert found.effects[0][name][0] == pytest.approx(value) == pytest.approx(found.dropped[0][name][0])
    assert found.settings["share_in"] == 1.0 and [arm["share_in"] for arm in found.arms] == [1.0, 1.0]
    # Rows by themselves, intervals are nearly those of two shares too.
    table = pd.DataFrame({**log.frame.to_pydict(), "row": np.arange(len(log))})
    table["came"], table["turned"] = (np.where(t > 1e17, np.nan, t / 1e6) for t in log.times)
    by_row = look(log_of(table), day=20.0, cluster="row")
    assert np.log(by_row.effects[0]["ratio"][1:]) == pytest.approx(np.log(by_row.dropped[0]["ratio"][1:]), abs=0.03)
    assert by_row.effects[0]["difference"] == pytest.approx(by_row.dropped[0]["difference"], abs=0.005)


def test_arms_effects_and_settings_agree():
    found = look(simulated(effect=1.5))
    (a, b), (effect,) = found.arms, found.effects
    assert effect["ratio"][0] == pytest.approx(b["rate"][0] / a["rate"][0])
    assert effect["difference"][0] == pytest.approx(b["rate"][0] - a["rate"][0])
    assert (effect["decided"], effect["delays"]) == ("higher", "sooner") and b["median"] < a["median"]
    assert effect["ratio"][1] > 1 and effect["difference"][1] > 0 and effect["p"] < 0.05
    assert a["rows"] + b["rows"] == found.settings["rows"] and a["share_in"] < b["share_in"] < 1
    assert "b against a: final rate" in found.verdict and "Its positives come sooner" in found.verdict
    assert json.loads(json.dumps(found.summary(), allow_nan=False)) == found.summary()


def test_the_order_of_rows_does_not_matter():
    table, rng = frame(), np.random.default_rng(0)
    table.loc[::3, "turned"] += DAY
    once, twice = (look(log_of(some), day=1.5) for some in (table, table.iloc[rng.permutation(len(table))]))
    assert twice.effects[0]["ratio"] == pytest.approx(once.effects[0]["ratio"])
    assert twice.verdict == once.verdict


def test_the_other_arm_as_control_turns_the_effect_round():
    log = simulated(effect=1.5)
    there, back = look(log), look(log, control="b")
    value, low, high = there.effects[0]["ratio"]
    assert back.effects[0]["ratio"] == pytest.approx([1 / value, 1 / high, 1 / low])
    assert (back.effects[0]["decided"], back.effects[0]["delays"]) == ("lower", "later")
    for found, way in ((there, "higher"), (back, "lower")):
        least, said, most = (
            float(text)
            for text in np.take(
                re.search(rf"final rate ([\d.]+)% {way} \(([\d.]+)% to ([\d.]+)%\)", found.verdict).groups(), [1, 0, 2]
            )
        )
        assert least < said < most


def test_nothing_later_than_the_look_matters():
    log = simulated()
    arrival, outcome = log.times
    known = arrival <= 9 * DAY * 1e6
    late = outcome > 9 * DAY * 1e6
    table = pa.table({"arm": log.frame["arm"].filter(pa.array(known)), "came": arrival[known] / 1e6,
                      "turned": pa.array(outcome[known] / 1e6, mask=late[known])})  # fmt: skip
    cut = EventLog.from_frame(table, arrival="came", outcome="turned", until=9 * DAY)
    assert look(log, day=9.0).summary() == look(cut, as_of=None).summary()


# Errors and intervals


def test_influence_is_the_derivative_by_how_often_a_positive_is_counted():
    rng = np.random.default_rng(1)
    delay, age = np.round(rng.exponential(3.0, 60), 1), np.round(rng.uniform(0, 10, 60), 1)
    delay, age = delay[delay <= age], age[delay <= age]
    moved, step = rng.uniform(size=len(delay)), 1e-6

    def total(weight):
        return float(moved @ np.log(seen_shares(delay, age, weight).at(age)))

    ones = np.ones(len(delay))
    numeric = [(total(ones + step * row) - total(ones - step * row)) / (2 * step) for row in np.eye(len(delay))]
    found = influence_on_shares(seen_shares(delay, age), delay, age, moved)
    # Where nothing is left at risk the product limit takes half a row, which has no derivative; there are none here but at the first delay.
    assert found == pytest.approx(np.array(numeric), abs=1e-5)


@pytest.mark.parametrize("cluster", ["user", "rows"])
def test_errors_are_those_of_the_bootstrap_over_clusters(cluster):
    """The whole estimate again on clusters that are drawn with replacement."""
    rng = np.random.default_rng(2)
    rows = rows_of(simulated(days=8.7, a_day=600, means=(9.0, 9.0), uneven=0.5), day=8.7)
    size = 8 if cluster == "user" else 1
    rows = replace(rows, cluster=rng.permutation(len(rows.arm)) // size)
    rates = final_rates(rows)
    sums = np.bincount(rows.cluster, np.where(rows.arm == 1, 1.0, -1.0) * rates.influence)
    order = np.argsort(rows.cluster, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(rows.cluster[order])) + 1)
    found = []
    for _ in range(300):
        drawn = np.concatenate([members[k] for k in rng.integers(0, len(members), len(members))])
        some = replace(rows, **{name: getattr(rows, name)[drawn] for name in ("arm", "y", "delay", "elapsed")})
        rate = final_rates(some).rate
        found.append(np.log(rate[1] / rate[0]))
    assert np.sqrt(sums @ sums) == pytest.approx(np.std(found), rel=0.1)


HARD = {
    "b sooner": {},
    "days differ": {"uneven": 0.4},
    "days differ by arm": {"uneven": 0.3, "by_arm": True},
    "rates drift while b grows": {"drift": 1.5, "grows": True},
}


@pytest.mark.parametrize("how", HARD.values(), ids=HARD)
def test_intervals_cover_and_the_estimate_has_no_bias(how):
    ratios = {level: [] for level in (0.8, 0.95)}
    for seed in range(250):
        log = simulated(1000 + seed, days=16.0, a_day=120, effect=1.2, **how)
        for level, found in ratios.items():
            found.append(look(log, day=16.0, level=level).effects[0]["ratio"])
    for level, found in ratios.items():
        value, low, high = np.transpose(found)
        share = np.mean((low <= 1.2) & (high >= 1.2))
        assert abs(share - level) < 3.3 * np.sqrt(level * (1 - level) / len(found)), level
    logs = np.log(value)
    assert abs(logs.mean() - np.log(1.2)) < 3.3 * logs.std() / np.sqrt(len(logs))


def test_without_an_effect_faster_conversions_mislead_labels_as_they_stand_and_not_lift():
    looks = [look(simulated(seed, days=10.0, a_day=600), day=10.0) for seed in range(120)]
    wrong = {name: np.mean([getattr(one, name)[0]["p"] < 0.05 for one in looks])
             for name in ("effects", "dropped", "as_they_stand")}  # fmt: skip
    assert wrong["effects"] < 0.12 and wrong["dropped"] < 0.12
    assert wrong["as_they_stand"] > 0.4


def test_all_rows_say_more_than_final_ones():
    found = look(simulated(a_day=2000))
    own, dropped = (np.log(one["ratio"][2] / one["ratio"][1]) for one in (found.effects[0], found.dropped[0]))
    assert own < 0.8 * dropped


def test_rows_of_a_user_count_together():
    """A log in which every row is there five times says no more than one in which it is there once."""
    table = frame(280)
    table["user"] = np.arange(len(table))
    table.loc[::3, "turned"] += DAY
    once = look(log_of(table), day=1.5, cluster="user").effects[0]
    repeated = log_of(pd.concat([table] * 5, ignore_index=True))
    together, apart = look(repeated, day=1.5, cluster="user").effects[0], look(repeated, day=1.5).effects[0]
    assert together["ratio"] == pytest.approx(once["ratio"], rel=0.02)
    assert np.diff(np.log(apart["ratio"][1:])) < 0.6 * np.diff(np.log(together["ratio"][1:]))


def test_several_arms_are_corrected_for_their_number():
    log = simulated(a_day=300)
    arrival, outcome = log.times
    rng = np.random.default_rng(0)
    table = pa.table({"arm": rng.choice(["control", "x", "y"], len(log)), "came": arrival / 1e6,
                      "turned": pa.array(outcome / 1e6, mask=outcome > 1e17)})  # fmt: skip
    log = EventLog.from_frame(table, arrival="came", outcome="turned", until=40 * DAY)
    both = look(log, day=30.0, cluster=None)
    one = look(log, day=30.0, level=0.975)
    assert [effect["arm"] for effect in both.effects] == ["x", "y"] and len(both.arms) == 3
    for effect, plain in zip(both.effects, both.as_they_stand, strict=True):
        for each in (effect, plain):
            outside = each["ratio"][1] > 1 or each["ratio"][2] < 1
            assert outside == (each["p"] < 0.05) == (each["decided"] != "open")
    # With two comparisons at 95%, an interval is one of 97.5%; that of an arm by itself stays at 95%.
    value, low, high = both.dropped[0]["ratio"]
    count, positive = both.dropped[0]["rows"], both.dropped[0]["positive"]
    error = np.sqrt(sum(1 / p - 1 / n for p, n in zip(positive, count, strict=True)))
    assert np.log(high / value) == pytest.approx(stats.norm.ppf(1 - 0.025 / 2) * error) == np.log(value / low)
    assert both.dropped[0]["p"] == pytest.approx(min(1.0, 2 * 2 * stats.norm.sf(abs(np.log(value)) / error)))
    assert one.effects[0]["ratio"][2] > both.effects[0]["ratio"][2]
    assert any("Bonferroni" in note for note in both.notes)


def test_weights_alone_keep_drift_out_where_there_is_one_stretch(monkeypatch):
    """Few rows make few stretches. Rows of the faster arm must not count for more where they are young, and rates are high."""
    monkeypatch.setattr("belated.monitoring.final_rates._IN_STRETCH", 10**9)
    log = simulated(a_day=10_000, rate=0.1, means=(5.0, 0.5), drift=3.0, days=10.0)
    (effect,) = look(log, day=10.0).effects
    assert effect["ratio"][1] < 1 < effect["ratio"][2] and np.log(effect["ratio"][2] / effect["ratio"][1]) < 0.3


# Younger than the horizon


def test_within_an_age_only_outcomes_up_to_it_count():
    rows = rows_of(simulated())
    some = rows.within(2.0)
    assert some.y.sum() == (rows.delay <= 2.0).sum() < rows.y.sum()
    assert np.isnan(some.delay[~some.y]).all() and some.delay[some.y].max() <= 2.0


def test_an_experiment_younger_than_its_horizon_is_read_at_the_age_it_has_reached():
    log = simulated(a_day=2000, means=(3.0, 3.0), effect=1.5)
    young = look(log, day=5.0)
    assert 4.5 < young.settings["reached"] < 5 and young.settings["horizon"] == 8
    assert young.effects[0]["ratio"][1] > 1 and young.effects[0]["decided"] == "open"
    assert "rate within" in young.verdict and "nothing is decided" in young.verdict
    assert young.dropped[0]["ratio"] == [None] * 3 and "no label is final" in young.verdict
    assert any("in proportion" in note for note in young.notes)
    # The same as with a horizon that short, which is then decided.
    short = look(log, day=5.0, horizon=young.settings["reached"] * DAY)
    assert (
        short.effects[0]["ratio"] == pytest.approx(young.effects[0]["ratio"])
        and short.effects[0]["decided"] == "higher"
    )


def test_what_is_read_early_is_the_rate_within_that_age():
    log = simulated(a_day=20_000)
    found = look(log, day=6.0)
    final = look(log, day=20.0, horizon=found.settings["reached"] * DAY)
    assert found.effects[0]["ratio"][1] < final.effects[0]["ratio"][0] < found.effects[0]["ratio"][2]
    assert found.effects[0]["ratio"][0] > 1 + 1.5 * abs(look(log, day=20.0).effects[0]["ratio"][0] - 1)
    assert any("Delays differ between a and b" in note for note in found.notes)


def test_an_arm_that_began_later_is_compared_with_rows_of_its_own_time():
    log = simulated(days=16.0, a_day=1500, drift=2.0, means=(2.0, 2.0))
    arrival, outcome = log.times
    keep = (arrival > 8 * DAY * 1e6) | (np.asarray(log.frame["arm"]) == "a")
    table = pa.table({"arm": log.frame["arm"].filter(pa.array(keep)), "came": arrival[keep] / 1e6,
                      "turned": pa.array(outcome[keep] / 1e6, mask=outcome[keep] > 1e17)})  # fmt: skip
    log = EventLog.from_frame(table, arrival="came", outcome="turned", until=40 * DAY)
    found = look(log, day=20.0)
    _, low, high = found.effects[0]["ratio"]
    assert low < 1 < high and found.dropped[0]["ratio"][1] > 1.2
    assert any("arrived while not all arms were in use" in note for note in found.notes)


# Delays


def test_without_young_rows_delays_are_compared_as_by_the_log_rank_test():
    """In reverse time: the last delays come first."""
    rng = np.random.default_rng(3)
    delay, other = rng.exponential(3.0, 80), rng.exponential(2.0, 90)
    z = later_than(delay, np.full(80, 99.0), other, np.full(90, 99.0))
    theirs = stats.logrank(x=100 - delay, y=100 - other)
    assert abs(z) == pytest.approx(abs(theirs.statistic)) and z > 0
    assert later_than(other, np.full(90, 99.0), delay, np.full(80, 99.0)) == pytest.approx(-z)


def test_delays_that_are_equal_are_called_different_as_often_as_promised():
    rng, z = np.random.default_rng(4), []
    for _ in range(400):
        groups = []
        for size, longest in ((300, 10.0), (200, 3.0)):  # the second group is young
            delay, age = np.ceil(rng.exponential(3.0, size)), np.ceil(rng.uniform(0, longest, size))
            groups += [delay[delay <= age], age[delay <= age]]
        z.append(later_than(*groups))
    assert abs(np.mean(z)) < 0.17 and np.std(z) == pytest.approx(1.0, abs=0.12)


# Refusals and what is taken for granted


def test_bad_input_is_refused_in_words(monkeypatch):
    table = frame()
    log = log_of(table)

    def refused(text, log=log, **how):
        with pytest.raises(ValueError, match=re.escape(text)):
            look(log, day=30.0, **how)

    refused("level=95", level=95)
    refused("as_of='2031-01-01'", as_of="2031-01-01")
    refused("no column 'color'", treatment="color")
    refused("column 'user' has 58 values", treatment="user")
    refused("cluster='arm' is the treatment", cluster="arm")
    refused(
        "cluster='arm' has 2 values", treatment="variant", cluster="arm", log=log_of(table.assign(variant=table["arm"]))
    )
    refused("control='c' is no arm of column 'arm', whose arms are 'a', 'b'", control="c")
    refused("has the arms 'x', 'y': say which of them is the control", log=log_of(frame(arms=("x", "y"))))
    refused("column 'arm' has 1 value, such as 'a'", log=log_of(frame(arms=("a",))))
    hole = table.assign(arm=table["arm"].where(table.index != 7))
    refused("column 'arm': 1 row is missing, the first at row 7", log=log_of(hole))
    refused("column 'arm': 1 row is missing", log=log_of(table.assign(arm=hole["arm"].fillna(""))))
    refused("column 'user': 1 row is missing", cluster="user", log=log_of(table.assign(user=hole["arm"])))
    refused(
        "arm 'b' has 5 positives so far, and at no age 20",
        log=log_of(table[(table["arm"] == "a") | (table.index < 20)]),
    )
    apart = table.assign(
        came=table["came"] + 5 * DAY * (table["arm"] == "b"), turned=table["turned"] + 5 * DAY * (table["arm"] == "b")
    )
    refused("Arms that were in use at different times cannot be compared", log=log_of(pd.concat([apart] * 3)))
    hashed = FieldMatrix.from_frame(table[["arm"]], 2**10)
    refused(
        "a log of hashed fields has no named columns", log=EventLog(hashed, *log.times, log.clock, False, log.until)
    )
    monkeypatch.setattr(EventLog, "on_cluster", True)
    refused("collect the log first")


def test_what_is_left_by_adding_up_decides_nothing():
    """Every row is positive, so the arms cannot differ."""
    table = frame()
    found = look(log_of(table.assign(turned=table["came"] + DAY / 24)), day=38.0)
    assert found.effects[0]["decided"] == "open" and found.effects[0]["p"] == pytest.approx(1.0, abs=0.01)


def test_a_table_is_no_log():
    for ask in (lift, forecast, diagnose, backtest, train):
        more = {"treatment": "arm"} if ask is lift else {}
        with pytest.raises(
            TypeError, match=f"{ask.__name__} wants an EventLog, got DataFrame. Of a table: EventLog.from"
        ):
            ask(frame(), horizon="14d", **more)


@pytest.mark.parametrize(
    ("arms", "control", "names"),
    [
        (("B", "A"), None, ("A", "B")),
        (("treated", "Control"), None, ("Control", "treated")),
        ((True, False), None, ("false", "true")),
        ((True, False), True, ("true", "false")),
        ((1, 0), None, ("0", "1")),
        ((1, 0), 1, ("1", "0")),
        (("new", "old", "off"), "old", ("old", "new", "off")),
    ],
)
def test_the_control(arms, control, names):
    found = look(log_of(frame(arms=arms)), day=30.0, control=control)
    assert tuple(arm["arm"] for arm in found.arms) == names


def test_days_are_clusters_where_there_are_enough_of_them():
    log = simulated(days=16.0)
    assert look(log, day=14.0).settings["clusters"] == "rows"
    assert look(log, day=16.0).settings["clusters"] == "days of arrival"
    assert look(log_of(frame()), day=30.0, cluster="user").settings["clusters"] == "user"


# The experiment and the page


def test_the_day_of_power():
    shares = np.array([0.1, 0.9, 0.7, 0.9, 1.0])
    assert EXPERIMENT.day_of_power((1, 2, 3, 4, 5), shares) == pytest.approx(3.5)
    assert EXPERIMENT.day_of_power((1, 2), shares[:1].repeat(2)) is None


def test_the_page_quotes_what_its_program_says():
    page = (ROOT / "docs" / "experiments.md").read_text()
    (code,), names = re.findall(r"```python\n(.*?)```", page, re.DOTALL), {}
    exec(compile(code, "docs/experiments.md", "exec"), names)
    quoted = " ".join(line.removeprefix("> ") for line in page.splitlines() if line.startswith("> "))
    assert names["found"].verdict == quoted
