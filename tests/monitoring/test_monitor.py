"""monitor: what it says of changes of the rate and of the delays, of its own past, and of bad input."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from belated import OutcomeWarning
from belated.datasets import simulate_scores
from belated.monitoring.monitor import monitor

ASK = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at", "horizon": "30d"}
NOW = datetime(2024, 3, 31)


@pytest.fixture(scope="module")
def tables():
    return simulate_scores(20_000)


@pytest.fixture(scope="module")
def found(tables):
    return monitor(*tables, by="segment", version="version", **ASK)


def test_right_scores_are_said_to_be_right(found):
    assert found.ok and "predictions agree with what comes" in found.verdict and "delays unchanged" in found.verdict
    assert sum(row["rows"] for row in found.periods) == 20_000
    final = [row for row in found.periods if row["final"]]
    assert len(final) >= 8 and all(row["share_in"] == 1.0 and row["rate"][0] == row["rate_so_far"] for row in final)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rate_change": 0.6}, ("too high", "delays unchanged")),
        ({"rate_change": 1.6}, ("too low", "delays unchanged")),
        ({"delay_change": 2.5}, ("positives come later than usual",)),
        ({"delay_change": 0.3}, ("positives come sooner than usual",)),
    ],
)
def test_a_change_of_the_rate_is_told_from_one_of_the_delays(changes, said):
    verdict = monitor(*simulate_scores(60_000, **changes), **ASK, lags=()).verdict
    assert all(words in verdict for words in said), verdict


def test_versions_are_never_mixed(tables):
    scores, outcomes = tables
    versions = [(row["version"], row["period"]) for row in monitor(*tables, version="version", **ASK, lags=()).periods]
    assert len(set(versions)) == len(versions) and {"v1", "v2"} == {version for version, _ in versions}
    p = scores["p"].to_numpy()
    halved = scores.set_column(2, "p", pa.array(np.where(np.array(scores["version"]) == "v2", p / 2, p)))
    before, after = (monitor(one, outcomes, version="version", **ASK, lags=()) for one in (scores, halved))
    for old, new in zip(before.periods, after.periods, strict=True):
        assert (old["auc"] == new["auc"]) or old["version"] == "v2"
        assert new["calibration"][0] == pytest.approx(old["calibration"][0] * (0.5 if old["version"] == "v2" else 1.0))


def test_order_of_rows_and_kind_of_tables_do_not_matter(tables, found):
    scores, outcomes = (table.to_pandas().sample(frac=1.0, random_state=0) for table in tables)
    joined = scores.merge(outcomes, on="id", how="left")
    again = monitor(scores, outcomes, by="segment", version="version", **ASK)
    one = monitor(joined, by="segment", version="version", **{**ASK, "key": None})
    for other in (again, one):
        assert other.verdict == found.verdict
        for old, new in zip(found.periods, other.periods, strict=True):
            assert new["log_loss"] == pytest.approx(old["log_loss"]) and new["delay"] == pytest.approx(old["delay"])


def test_it_says_of_its_past_what_it_would_have_said(tables, found):
    scores, outcomes = tables
    row = next(row for row in found.check if row["lag"] == 3)
    period = next(one for one in found.periods if (one["period"], one["version"]) == (row["period"], row["version"]))
    then = datetime.fromisoformat(period["end"]) + timedelta(days=3)
    known = monitor(
        scores.filter(pc.less_equal(scores["scored_at"], then)),
        outcomes.filter(pc.less_equal(outcomes["converted_at"], then)),
        until=then,
        version="version",
        lags=(),
        **ASK,
    )
    said = next(one for one in known.periods if (one["period"], one["version"]) == (row["period"], row["version"]))
    assert row["log_loss"]["said"] == pytest.approx(said["log_loss"]) and row["oe"]["said"] == pytest.approx(said["oe"])
    assert row["log_loss"]["truth"] == period["log_loss"][0]


def test_the_same_age_is_compared_without_any_assumption(tables):
    scores, outcomes = (table.to_pandas() for table in tables)
    found = monitor(scores, outcomes, until=NOW, lags=(), **ASK).periods[-1]
    start, rates = pd.Timestamp(found["period"]), []
    for back in range(4):
        begin, known = start - pd.Timedelta(weeks=back), NOW - pd.Timedelta(weeks=back)
        mine = scores[
            (scores["scored_at"] >= begin)
            & (scores["scored_at"] < begin + pd.Timedelta(weeks=1))
            & (scores["scored_at"] <= known)
        ]
        came = outcomes[outcomes["converted_at"] <= known]
        rates.append(mine["id"].isin(came["id"]).mean())
    assert found["same_age"]["rate"] == pytest.approx(rates[0]) and found["same_age"]["periods"] >= 3
    low, high = found["same_age"]["ratio"][1:]
    assert low < 1 < high and min(rates[1:]) * 0.8 < found["same_age"]["before"] < max(rates[1:]) * 1.2


def test_segments_that_are_off_are_found_and_corrected_for_their_number():
    scores, outcomes = simulate_scores(60_000)
    p, segment = scores["p"].to_numpy(), np.array(scores["segment"])
    off = scores.set_column(2, "p", pa.array(np.where(segment == "mail", p * 0.6, p)))
    found = monitor(off, outcomes, by="segment", **ASK, lags=())
    assert found.segments[0]["segment"] == "mail" and found.segments[0]["adjusted_p"] < 1e-6
    assert all(row["adjusted_p"] > 0.01 for row in found.segments[1:])
    assert "1 value of segment is off, most clearly mail" in found.verdict
    many = scores.append_column("shop", pa.array([f"shop {k}" for k in np.arange(len(p)) % 60]))
    assert sum(row["adjusted_p"] < 0.05 for row in monitor(many, outcomes, by="shop", **ASK, lags=()).segments) <= 1


@pytest.mark.parametrize(
    ("limit", "ok"),
    [("calibration=0.9..1.1", False), ("calibration=..2", True), ("oe=0.9..", False), ("auc=0.6..", True)],
)
def test_limits_that_are_clearly_broken(limit, ok):
    found = monitor(*simulate_scores(40_000, rate_change=0.6), **ASK, fail_on=limit, lags=())
    assert found.ok == ok and (ok or (limit in found.failed[0] and "Broken" in found.verdict))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("calibration", "write calibration=0.9..1.1"),
        ("luck=0..1", "'luck' is not a figure of a monitor; choose one of calibration"),
        ("auc=a..b", "its ends must be numbers"),
        ("auc=..", "it needs an end"),
        ("auc=0.9..0.7", "the first must be below the second"),
        ({"auc": (0.7,)}, "needs two ends"),
    ],
)
def test_limits_that_are_none(tables, given, message):
    with pytest.raises(ValueError, match=message):
        monitor(*tables, **ASK, fail_on=given)


def changed(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def test_bad_input_is_refused_with_the_column_and_the_row(tables):
    scores, outcomes = tables
    p = scores["p"].to_numpy().copy()
    p[7] = 1.5
    with pytest.raises(ValueError, match=r"column 'p': 1 row is outside 0 to 1, the first at row 7 \(1.5\)"):
        monitor(changed(scores, "p", p), outcomes, **ASK)
    p[7] = np.nan
    with pytest.raises(ValueError, match="column 'p': 1 row is missing"):
        monitor(changed(scores, "p", p), outcomes, **ASK)
    with pytest.raises(ValueError, match="must hold probabilities, got large_string"):
        monitor(scores, outcomes, **{**ASK, "score": "segment"})
    with pytest.raises(ValueError, match="say which column with key="):
        monitor(scores, outcomes, **{**ASK, "key": None})
    twice = changed(scores, "id", np.where(np.arange(len(p)) == 3, 2, np.arange(len(p))))
    with pytest.raises(ValueError, match="'id'"):
        monitor(twice, outcomes, **ASK)
    with pytest.raises(ValueError, match="the oldest score is 90 days old and the horizon is 100"):
        monitor(scores, outcomes, **{**ASK, "horizon": "100d"})
    with pytest.raises(ValueError, match="12 positives to learn delays from, and at least 50"):
        monitor(scores, outcomes.slice(0, 12), until=NOW, **ASK)


def test_outcomes_before_scores_are_counted_aloud(tables):
    scores, outcomes = tables
    early = np.where(
        np.arange(len(outcomes)) < 5, np.datetime64("2023-01-01", "us"), outcomes["converted_at"].to_numpy()
    )
    with pytest.warns(OutcomeWarning, match="5"):
        monitor(scores, changed(outcomes, "converted_at", early), until=NOW, **ASK)


def coverage(draws, **changes):
    """How often intervals of observed over expected and of log loss hold the truth, by how many weeks ago rows were scored."""
    inside = {}
    for seed in range(draws):
        scores, outcomes = simulate_scores(40_000, days=120, seed=seed, **changes)
        q, final = scores["p"].to_numpy(), np.zeros(len(scores), dtype=bool)
        final[outcomes["id"].to_numpy()] = True
        when = scores["scored_at"].to_numpy()
        now = np.datetime64(NOW, "us")
        found = monitor(
            scores.filter(pa.array(when <= now)),
            outcomes.filter(pc.less_equal(outcomes["converted_at"], NOW)),
            until=NOW,
            lags=(),
            **ASK,
        )
        for back, row in zip(itertools.count(1), reversed(found.periods[-3:])):
            mine = (
                (when >= np.datetime64(row["period"], "us")) & (when < np.datetime64(row["end"], "us")) & (when <= now)
            )
            loss = -np.where(final, np.log(q), np.log1p(-q))[mine].mean()
            truth = {"oe": changes.get("rate_change", 1.0), "log_loss": loss}
            for name, value in truth.items():
                inside.setdefault((back, name), []).append(row[name][1] <= value <= row[name][2])
    return inside


def check_coverage(inside, draws, least):
    for key, hits in inside.items():
        assert stats.binom.cdf(sum(hits), draws, least) > 1e-3, (key, np.mean(hits))


def test_intervals_cover_where_the_rate_drifts():
    check_coverage(coverage(8, rate_change=0.7), 8, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "least"),
    [
        ({}, 0.95),
        ({"rate_change": 0.7}, 0.95),
        ({"uneven": 0.15}, 0.95),
        ({"delay_change": 1.5}, 0.85),
        ({"delay_change": 0.6}, 0.9),
        ({"rate_change": 1.3, "delay_change": 1.5}, 0.82),
    ],
)
def test_intervals_cover_in_many_draws(changes, least):
    """Where delays have just changed, they hold the truth in at least 82 of 100 draws: what will come late nobody has seen yet."""
    check_coverage(coverage(100, **changes), 100, least)


@pytest.mark.parametrize("share", [0.0, 0.01])
def test_scores_that_are_far_too_low_are_no_silence(tables, share):
    scores, outcomes = tables
    low = changed(scores, "p", scores["p"].to_numpy() * share)
    found = monitor(low, outcomes, **ASK, fail_on="calibration=0.9..1.1", lags=())
    assert not found.ok and "less than a tenth of what comes" in found.verdict


def test_what_was_left_out_stands_in_the_notes(tables):
    scores, outcomes = tables
    elsewhere = changed(outcomes, "id", np.where(np.arange(len(outcomes)) < 7, 10**7, outcomes["id"].to_numpy()))
    with pytest.warns(OutcomeWarning):
        notes = monitor(scores, elsewhere, until=NOW, **ASK, lags=()).notes
    assert "7 of" in notes[0] and "match no arrival" in notes[0]


def test_times_in_the_future_and_days_among_times_are_refused(tables):
    scores, outcomes = tables
    late = scores["scored_at"].to_numpy().copy()
    late[3] = np.datetime64("2099-01-01", "us")
    with pytest.raises(ValueError, match="column 'scored_at': 1 row is in the future, the first at row 3"):
        monitor(changed(scores, "scored_at", late), outcomes, **ASK)
    days = outcomes["converted_at"].to_numpy().astype("datetime64[D]").astype("datetime64[us]")
    with pytest.raises(ValueError, match="stamped by the day and would come before an arrival of that day"):
        monitor(scores, changed(outcomes, "converted_at", days), **ASK)


def test_delays_that_are_always_the_same_are_not_later_than_usual(tables):
    scores, _ = tables
    turned = np.flatnonzero(np.random.default_rng(0).uniform(size=len(scores)) < scores["p"].to_numpy())
    hour = pa.array(scores["scored_at"].to_numpy()[turned] + np.timedelta64(1, "h"))
    found = monitor(scores, pa.table({"id": turned, "converted_at": hour}), **ASK, lags=())
    assert {row["delays"] for row in found.periods} == {"unchanged"}


def test_no_positives_at_all_where_many_were_expected(tables):
    scores, outcomes = tables
    some = outcomes.filter(pc.less(outcomes["converted_at"], datetime(2024, 3, 18)))
    found = monitor(scores, some, until=NOW, **ASK, fail_on="calibration=0.9..1.1", lags=())
    assert "no positives yet, where" in found.verdict and not found.ok


@pytest.mark.parametrize("how", ["steps", "cubes"])
def test_scores_of_the_wrong_shape_do_not_hide_behind_their_own_errors(tables, how):
    """What is expected of such rows by the ratio of their week may be far above 1; days then only seem to vary."""
    scores, outcomes = tables
    p = scores["p"].to_numpy()
    wrong = np.where(p > 0.5, 1.0, 0.0) if how == "steps" else p**3
    found = monitor(changed(scores, "p", wrong), outcomes, **ASK, fail_on="calibration=0.9..1.1", lags=())
    assert found.settings["variation"] < 2 and not found.ok
    varied = [monitor(*simulate_scores(40_000, uneven=u), **ASK, lags=()).settings["variation"] for u in (0.0, 0.15)]
    assert varied[0] < 1.4 and varied[1] > 2


def test_a_segment_that_lost_its_outcomes_is_the_most_striking(tables):
    scores, outcomes = tables
    recent = scores.filter(pc.greater(scores["scored_at"], datetime(2024, 3, 1)))
    lost = recent.filter(pc.equal(recent["segment"], "partner"))["id"]
    kept = outcomes.filter(pc.invert(pc.is_in(outcomes["id"], lost)))
    found = monitor(scores, kept, by="segment", until=NOW, **ASK, lags=())
    first = found.segments[0]
    assert first["segment"] == "partner" and first["adjusted_p"] < 1e-9 and first["calibration"][1] > 1
    assert "most clearly partner (no positives at all)" in found.verdict


@pytest.mark.slow
def test_segments_that_are_right_are_seldom_striking():
    """Small ones too: at most one in twenty draws has any of 100 segments that seems off."""
    seeming = 0
    for seed in range(60):
        scores, outcomes = simulate_scores(30_000, seed=seed)
        shops = pa.array([f"{k}" for k in np.random.default_rng(seed).integers(0, 100, len(scores))])
        found = monitor(scores.append_column("shop", shops), outcomes, by="shop", **ASK, lags=())
        seeming += found.segments[0]["adjusted_p"] < 0.05
    assert stats.binom.sf(seeming - 1, 60, 0.05) > 1e-3


@pytest.mark.parametrize("wrong", ["a", "b"])
def test_every_version_in_use_is_judged(tables, wrong):
    scores, outcomes = tables
    mine = np.arange(len(scores)) % 3 == 0
    version = np.where(mine, wrong, "b" if wrong == "a" else "a")
    doubled = changed(scores, "p", np.where(mine, 0.5, 1.0) * scores["p"].to_numpy())
    both = changed(doubled, "version", version)
    found = monitor(both, outcomes, by="segment", version="version", fail_on="calibration=0.8..1.25", **ASK)
    assert found.judged["version"] == wrong and f"version {wrong}" in found.failed[0] and len(found.failed) == 1
    assert f"(version {wrong}): predictions" in found.verdict and "is not clearly off" in found.verdict
    assert {row["version"] for row in found.segments} == {"a", "b"} == {row["version"] for row in found.check}
    assert found.segments[0]["version"] == wrong


def test_a_version_that_began_today_is_said_to_be_too_new(tables):
    scores, outcomes = tables
    newest = pc.if_else(pc.greater(scores["scored_at"], datetime(2024, 3, 30, 12)), "new", "old")
    found = monitor(changed(scores, "version", newest), outcomes, version="version", until=NOW, **ASK, lags=())
    assert found.judged["version"] == "old" and "Version new is too little known to be judged." in found.verdict


def test_segments_that_are_too_many_are_counted(tables):
    scores, outcomes = tables
    many = scores.append_column("shop", pa.array([f"{k % 230}" for k in range(len(scores))]))
    found = monitor(many, outcomes, by="shop", **ASK, lags=())
    assert len(found.segments) == 200 and "30 segments with the fewest rows" in found.notes[0]


def test_scores_that_are_words_are_told_by_row(tables):
    scores, outcomes = tables
    words = [f"{value:.6f}" for value in scores["p"].to_pylist()]
    words[4] = "n/k"
    with pytest.raises(ValueError, match=r"column 'p': 1 row is no number, the first at row 4 \(n/k\)"):
        monitor(changed(scores, "p", words), outcomes, **ASK)
    for limits in (3, [3]):
        with pytest.raises(ValueError, match="fail_on=3 is not understood; write calibration"):
            monitor(scores, outcomes, **ASK, fail_on=limits)
    with pytest.raises(ValueError, match=r"column 'segment' holds list<.*>, and groups are told by plain values"):
        monitor(changed(scores, "segment", [[1]] * len(scores)), outcomes, **ASK, by="segment")


def test_missing_segments_are_not_those_called_missing(tables):
    scores, outcomes = tables
    names = [None, "missing", "other"]
    some = changed(scores, "segment", [names[k % 3] for k in range(len(scores))])
    found = monitor(some, outcomes, **ASK, by="segment", lags=None)
    assert {row["segment"] for row in found.segments} == {"(missing)", "missing", "other"}


@pytest.mark.filterwarnings("error")
def test_scores_of_0_and_1_are_judged_without_a_murmur(tables):
    scores, outcomes = tables
    ones = changed(scores, "p", np.ones(len(scores)))
    hour = pa.array(scores["scored_at"].to_numpy() + np.timedelta64(1, "h"))
    found = monitor(ones, pa.table({"id": scores["id"], "converted_at": hour}), **ASK, by="segment", lags=())
    assert "predictions agree" in found.verdict and all(row["adjusted_p"] == 1.0 for row in found.segments)
    zeros = monitor(changed(scores, "p", np.zeros(len(scores))), outcomes, **ASK, by="segment", lags=())
    assert any("scored 0" in note for note in zeros.notes)


def test_outcomes_that_end_before_the_scores_are_told_and_can_be_allowed_for(tables):
    """A nightly export of outcomes is no fall of the rate."""
    scores, outcomes = tables
    some = outcomes.filter(pc.less(outcomes["converted_at"], datetime(2024, 3, 29)))
    found = monitor(scores, some, **ASK)
    assert found.verdict.startswith("No outcome after 2024-03-28") and "seem to end" in found.headline
    assert "seem" not in monitor(scores, outcomes, **ASK).headline
    known = monitor(scores, some, until="2024-03-29", **ASK)
    late = pc.sum(pc.greater(scores["scored_at"], datetime(2024, 3, 29))).as_py()
    assert "seem" not in known.headline and f"{late:,} scores given after 2024-03-29: left out." in known.notes
    early = scores.filter(pc.less_equal(scores["scored_at"], datetime(2024, 3, 29)))
    there = some.filter(pc.is_in(some["id"], early["id"]))
    assert monitor(early, there, until="2024-03-29", **ASK).periods == known.periods
    with pytest.raises(ValueError, match="is before the first score"):
        monitor(scores, outcomes, until="2023-12-01", **ASK)


def test_one_score_of_a_new_version_silences_nothing(tables):
    """The week has just begun, and all of it is one row of a canary."""
    scores, outcomes = tables
    early = scores.filter(pc.less(scores["scored_at"], datetime(2024, 3, 25, 1)))
    newest = pc.greater_equal(early["scored_at"], datetime(2024, 3, 25))
    first = early.filter(pc.invert(newest))
    canary = early.filter(newest).slice(0, 1)
    versions = pa.array(["v1"] * len(first) + ["canary"])
    twice = pc.min_element_wise(pc.multiply(pa.concat_tables([first, canary])["p"], 2.0), 1.0)
    told = pa.concat_tables([first, canary]).drop_columns(["p", "version"])
    told = told.append_column("p", twice).append_column("version", versions)
    some = outcomes.filter(pc.is_in(outcomes["id"], told["id"]))
    some = some.filter(pc.less(some["converted_at"], datetime(2024, 3, 25, 1)))
    found = monitor(told, some, version="version", fail_on="calibration=0.9..1.1", **ASK)
    assert not found.ok and "version v1" in found.verdict and "Version canary is too little known" in found.verdict


def test_figures_stay_where_they_can_be():
    """Of few positives an estimate may lie anywhere."""
    nothing = 0
    for seed in range(8):
        scores, outcomes = simulate_scores(450, seed=seed)
        for row in monitor(scores, outcomes, **ASK).periods:
            for name in ("rate", "auc"):
                assert all(number is None or 0 <= number <= 1 for number in row[name])
                nothing += row[name][0] is None
            assert all(number is None or number >= 0 for name in ("log_loss", "brier") for number in row[name])
    assert nothing > 0


@pytest.mark.parametrize("limit", ["calibration=..nan", "calibration=0.9..inf", {"auc": (float("nan"), None)}])
def test_limits_that_nothing_could_break_are_refused(tables, limit):
    with pytest.raises(ValueError, match="must be finite numbers"):
        monitor(*tables, fail_on=limit, **ASK)


def test_rates_at_the_same_age_are_as_unsure_as_they_say():
    """Where nothing changes, the interval of the ratio holds 1 as often as it should, and not always."""
    inside = []
    for seed in range(60):
        periods = monitor(*simulate_scores(6000, seed=seed), lags=(), **ASK).periods
        inside += [row["same_age"]["ratio"][1] <= 1 <= row["same_age"]["ratio"][2] for row in periods[-3:-1]]
    assert 0.9 < np.mean(inside) < 1.0


def test_weeks_of_plain_seconds_begin_at_0():
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(0, 90, 4000))
    came = np.where(rng.uniform(size=4000) < 0.2, time + rng.exponential(3.0, 4000), np.nan)
    table = pd.DataFrame({"t": time, "q": 0.2, "o": np.where(came < 90, came, np.nan)}) * [86400.0, 1.0, 86400.0]
    found = monitor(table, time="t", score="q", outcome="o", horizon="30d", lags=())
    assert [row["period"] for row in found.periods[:2]] == ["0 s", "604800 s"]


def test_only_some_outcomes_count(tables):
    """A closing date that lost leads have as well."""
    scores, outcomes = tables
    lost = pa.table({"id": np.setdiff1d(scores["id"].to_numpy(), outcomes["id"].to_numpy())[::2]})
    when = pc.take(scores["scored_at"], lost["id"])
    closed = pa.concat_tables(
        [
            outcomes.append_column("stage", pa.array(["won"] * len(outcomes))),
            pa.table({"id": lost["id"], "converted_at": when, "stage": ["lost"] * len(lost)}),
        ]
    )
    found = monitor(scores, closed, outcome_where="stage == 'won'", **ASK)
    assert found.periods == monitor(scores, outcomes, **ASK).periods
    assert "too low" in monitor(scores, closed, **ASK).verdict


@pytest.mark.parametrize("seed", range(4))
def test_one_period_alone_has_the_delays_that_are_usual(seed):
    """All positives are in it, in a short log of days."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 60, 600)
    delay = rng.integers(0, 8, 600)
    came = (rng.uniform(size=600) < 0.3) & (day + delay <= 60)
    start = np.datetime64("2024-01-01", "D")
    table = pd.DataFrame({"t": start + day, "q": 0.3, "o": pd.Series(start + day + delay).where(came)})
    found = monitor(table, time="t", score="q", outcome="o", horizon="10d", period="364d", lags=())
    for row in found.periods:
        assert row["delays"] == "unchanged" and all(number is None or np.isfinite(number) for number in row["delay"])


def test_a_feed_that_is_a_little_late_is_none_of_note(tables):
    """Half an hour of a large log is more than ten outcomes, and no part of them that matters."""
    scores, outcomes = simulate_scores(300_000)
    some = outcomes.filter(pc.less(outcomes["converted_at"], datetime(2024, 3, 30, 23, 30)))
    found = monitor(scores, some, lags=(), **ASK)
    assert len(outcomes) - len(some) >= 10 and "seem" not in found.verdict


def test_what_to_say_of_outcomes_that_end_early_can_be_said_in_seconds_too(tables):
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(0, 90, 9000))
    came = np.where(rng.uniform(size=9000) < 0.3, time + rng.exponential(3.0, 9000), np.nan)
    table = pd.DataFrame({"t": time, "q": 0.3, "o": np.where(came < 86, came, np.nan)}) * [86400.0, 1.0, 86400.0]
    ask = {"time": "t", "score": "q", "outcome": "o", "horizon": "30d", "lags": ()}
    found = monitor(table, **ask)
    until = found.verdict.partition("until='")[2].partition("'")[0]
    assert until.endswith(" s") and "seem" not in monitor(table, until=until, **ask).verdict


def test_without_positives_nothing_is_said_of_losses():
    scores, outcomes = simulate_scores(3000)
    young = scores.filter(pc.greater_equal(scores["scored_at"], datetime(2024, 3, 25)))
    none_there = outcomes.filter(pc.invert(pc.is_in(outcomes["id"], young["id"])))
    last = monitor(scores, none_there, lags=(), **ASK).periods[-1]
    assert last["positive"] == 0 and last["log_loss"] == last["brier"] == [None, None, None]
    old = scores.filter(pc.less(scores["scored_at"], datetime(2024, 1, 8)))
    never = outcomes.filter(pc.invert(pc.is_in(outcomes["id"], old["id"])))
    first = monitor(scores, never, lags=(), **ASK).periods[0]
    assert first["final"] and first["log_loss"] == [pytest.approx(-np.log1p(-old["p"].to_numpy()).mean()), None, None]
