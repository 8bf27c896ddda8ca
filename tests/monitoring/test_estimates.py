"""Figures of scores whose labels are not all in: equal to scikit-learn's where they are, right on average where they are not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from belated.evaluation.seen_shares import SeenShares, seen_shares
from belated.monitoring.delay_shifts import ScaledDelays, Shift
from belated.monitoring.estimates import FIGURES, estimate

H = 30.0


def exponential(mean=6.0, steps=3000):
    """F of delays that are exponential and cut at the horizon, known exactly."""
    ages = np.linspace(0, H, steps + 1)[1:]
    before = -np.expm1(-(ages - H / steps) / mean) / -np.expm1(-H / mean)
    return ScaledDelays(SeenShares(ages, before, np.zeros(steps)), H, 0.0)


def rows(seed, n=4000, youngest=0.0, oldest=20.0, ties=None):
    """Scores that are off, labels as they stand and as they will be, ages."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 6, n)
    q = np.clip(p**1.3 + 0.05, 0, 1)
    q = q if ties is None else np.round(q * ties) / ties
    final = rng.uniform(size=n) < p
    delay = -6.0 * np.log1p(-rng.uniform(size=n) * -np.expm1(-H / 6.0))
    age = rng.uniform(youngest, oldest, n)
    return q, final & (delay <= age), final, age


@pytest.mark.parametrize("ties", [None, 20])
def test_with_all_labels_in_they_are_the_usual_ones(ties):
    q, _, final, _ = rows(0, ties=ties)
    found = estimate(q, final, np.full(len(q), H), exponential(), Shift()).figures
    usual = {
        "rate": final.mean(),
        "log_loss": log_loss(final, q),
        "brier": brier_score_loss(final, q),
        "auc": roc_auc_score(final, q),
        "oe": final.sum() / q.sum(),
    }
    for name, value in usual.items():
        assert found[name].value == pytest.approx(value, rel=1e-9), name


def test_the_area_is_that_of_weighted_pairs():
    q, y, _, age = rows(1, n=300, youngest=3.0, ties=15)
    scaled = exponential()
    r = y / scaled.at(age, 0.0)
    below = (q[:, None] > q) + 0.5 * (q[:, None] == q)
    share, rate = (r @ below.mean(axis=1)) / r.sum(), r.mean()
    found = estimate(q, y, age, scaled, Shift()).figures["auc"].value
    assert found == pytest.approx((share - rate / 2) / (1 - rate))


def test_they_are_right_on_average_and_their_intervals_cover():
    """Against the rate, log loss and so on of the same rows with final labels, expected over draws."""
    draws, scaled = 60, exponential()
    known, truth, inside = [], [], []
    for seed in range(draws):
        q, y, final, age = rows(seed, n=3000)
        mine = scaled.at(age, 0.0) >= 0.05
        found = estimate(q, y, age, scaled, Shift()).figures
        last = estimate(q[mine], final[mine], np.full(mine.sum(), H), scaled, Shift()).figures
        known.append([found[name].value for name in FIGURES])
        truth.append([last[name].value for name in FIGURES])
    known, truth = np.array(known), np.array(truth)
    off = known - truth
    assert (np.abs(off.mean(axis=0)) < 4 * off.std(axis=0, ddof=1) / np.sqrt(draws)).all()
    means = truth.mean(axis=0)
    for seed in range(draws):
        q, y, _, age = rows(seed, n=3000)
        found = estimate(q, y, age, scaled, Shift()).figures
        inside.append([found[name].low <= mean <= found[name].high for name, mean in zip(FIGURES, means, strict=True)])
    assert (np.mean(inside, axis=0) > 0.85).all() and np.mean(inside) < 0.995


def test_rows_too_young_to_tell_are_left_out_and_counted():
    q, y, _, age = rows(2)
    age[:100], y[:100] = 0.01, False
    found = estimate(q, y, age, exponential(), Shift())
    young = int((exponential().at(age, 0.0) < 0.05).sum())
    assert found.too_young == young >= 100 and found.rows == len(q)
    rest = age >= age[exponential().at(age, 0.0) >= 0.05].min()
    assert (
        found.figures["log_loss"] == estimate(q[rest], y[rest], age[rest], exponential(), Shift()).figures["log_loss"]
    )


def test_nothing_positive_gives_an_upper_end_alone():
    q, y, _, age = rows(3, n=500)
    found = estimate(q, np.zeros_like(y), age, exponential(), Shift())
    assert found.figures["oe"].value == 0.0 and found.figures["oe"].high > 0 and found.figures["auc"].value is None


def test_an_error_of_the_delays_widens_every_interval():
    q, y, _, age = rows(4)
    delay = np.random.default_rng(0).exponential(6.0, 200)
    learned = ScaledDelays(seen_shares(np.minimum(delay, H), np.full(200, H)), H, 0.0)
    exact = ScaledDelays(SeenShares(learned.shares.delays, learned.shares.before, 0 * learned.shares.variance), H, 0.0)
    for name in FIGURES:
        wide, narrow = (estimate(q, y, age, one, Shift()).figures[name] for one in (learned, exact))
        assert wide.high - wide.low > narrow.high - narrow.low and wide.value == narrow.value


def test_row_order_does_not_matter():
    q, y, _, age = rows(5, ties=30)
    order = np.random.default_rng(0).permutation(len(q))
    found = estimate(q[order], y[order], age[order], exponential(), Shift(0.1, 0.1, 0.1, 0.02)).figures
    for name, figure in estimate(q, y, age, exponential(), Shift(0.1, 0.1, 0.1, 0.02)).figures.items():
        assert found[name].as_plain_data() == pytest.approx(figure.as_plain_data(), rel=1e-9)
