"""Laws between methods, and invariances of fits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from simulate import simulate
from stubs import FIXED

from belated import (
    BL,
    DFM,
    FSIW,
    PNUTW,
    PU,
    PUTW,
    STC,
    TW,
    ConvDF,
    DelayedFeedbackClassifier,
    Hazard,
    LinearModel,
    NnDF,
    Rescale,
    SoftLabels,
)
from belated.data.labels import check_labels
from belated.methods import METHODS
from belated.methods.delayed_feedback import late_weights

EXACT = LinearModel(l2=1e-3, tol=1e-10)


def fit(method, data, window=5.0, horizon=20.0, model=EXACT, **more):
    clf = DelayedFeedbackClassifier(method=method, window=window, horizon=horizon, model=model)
    return clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay, **more)


def predictions(method, data, **more):
    return fit(method, data, **more).predict_proba(data.X)[:, 1]


def test_without_late_rows_everything_built_on_them_equals_bl():
    data = simulate(seed=0, longest=0.5)
    keep = (data.elapsed < 14.0) | (data.elapsed > 16.0)  # nothing arrived around one window ago, so nothing is late
    for field in ("X", "y", "elapsed", "delay"):
        setattr(data, field, getattr(data, field)[keep])
    data.elapsed = np.where(data.elapsed > 14, data.elapsed, np.minimum(data.elapsed, 4.0))
    data.delay[data.delay > data.elapsed] = np.nan
    data.y = (~np.isnan(data.delay)).astype(int)
    expected = predictions("bl", data)
    for method in ("convdf", "nndf", "fsiw", "rescale"):
        with pytest.warns(UserWarning, match=r"no positive arrived during the last window \(5\).*equals BL"):
            assert_allclose(predictions(method, data), expected, atol=1e-8)


def test_pnutw_mixes_putw_and_tw():
    data = simulate(seed=1)
    assert_allclose(predictions(PNUTW(0.0), data), predictions(TW(), data), atol=1e-8)
    assert_allclose(predictions(PNUTW(1.0), data), predictions(PUTW(), data), atol=1e-8)


def test_tw_is_bl_on_mature_rows():
    data = simulate(seed=2)
    mature = data.elapsed >= 5.0
    clf = DelayedFeedbackClassifier(method="bl", model=EXACT).fit(data.X[mature], data.y[mature])
    assert_allclose(predictions("tw", data), clf.predict_proba(data.X)[:, 1], atol=1e-8)


def test_nndf_is_convdf_while_the_negative_part_is_positive():
    data = simulate(seed=3)
    assert_allclose(predictions("nndf", data), predictions("convdf", data), atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_nndf_ends_where_the_negative_part_is_zero_once_convdf_goes_below(loss):
    rng = np.random.default_rng(0)
    data = simulate(seed=4, n=300)
    data.X = rng.normal(size=(300, 280))  # nearly as many columns as rows: ConvDF can push late rows without bound
    model = LinearModel(l2=1e-6)
    free, kept = fit(ConvDF(loss=loss), data, model=model), fit(NnDF(loss=loss), data, model=model)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)
    risk = NnDF(loss=loss).risk(labels, None)
    assert risk.negative_part(free.model_.margins(data.X)) < -0.01
    assert abs(risk.negative_part(kept.model_.margins(data.X))) < 1e-6
    # No direction leads further down: the minimum of a convex function with a kink.
    coef, best = kept.model_.coef_, kept.model_.objective_
    for seed in range(20):
        step = 1e-3 * np.random.default_rng(seed).normal(size=coef.shape)
        margins = data.X @ (coef + step).T + kept.model_.intercept_
        assert risk.value_and_gradient(margins)[0] + 1e-6 * ((coef + step) ** 2).sum() >= best - 1e-9


def test_rescale_with_an_intercept_alone_is_convdf():
    data = simulate(seed=5)
    data.X = np.zeros((len(data.y), 1))
    assert_allclose(predictions(Rescale(), data), predictions(ConvDF(), data), rtol=1e-6)


def test_rescale_multiplies_the_odds_of_bl_by_one_constant():
    data = simulate(seed=6)
    p, q = predictions(Rescale(), data), predictions(BL(), data)
    ratio = p / (1 - p) / (q / (1 - q))
    assert ratio[0] > 1.01
    assert_allclose(ratio, ratio[0])


def test_pu_takes_its_prior_from_mature_rows():
    data = simulate(seed=7)
    rate = data.y[data.elapsed >= 5.0].mean()
    assert_allclose(predictions(PU(prior=rate), data), predictions("pu", data), atol=1e-9)


def test_stc_divides_two_logistic_regressions():
    data = simulate(seed=8)
    quick = np.nan_to_num(data.delay, nan=np.inf) <= 1.0
    ripe, converted = data.elapsed >= 1.0, (data.elapsed >= 5.0) & (data.y == 1)
    plain = DelayedFeedbackClassifier(method="bl", model=EXACT)
    numerator = plain.fit(data.X[ripe], quick[ripe]).predict_proba(data.X)[:, 1]
    share = plain.fit(data.X[converted], quick[converted]).predict_proba(data.X)[:, 1]
    assert_allclose(predictions(STC(short=1.0), data), np.minimum(numerator / share, 0.99), atol=1e-7)


def test_stc_is_a_number_however_far_out():
    far = DelayedFeedbackClassifier("stc", 5.0, model=LinearModel(l2=1e-6))
    data = simulate(seed=8)
    far.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    p = far.predict_proba(1e6 * data.X)
    assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()


def test_stc_finds_a_short_time_where_most_positives_come_at_once():
    data = simulate(seed=8)
    data.delay = np.where((data.y == 1) & (data.delay < 3), 3.0, data.delay)
    data.y, data.delay = (np.where(data.elapsed < 3, empty, v) for empty, v in ((0, data.y), (np.nan, data.delay)))
    assert 0 < predictions(STC(), data).mean() < 1
    data.delay = np.where(data.y == 1, 3.0, np.nan)
    with pytest.raises(ValueError, match=r"STC compares positives that come early.*do not differ in that"):
        fit(STC(), data)


def test_smoothed_away_the_piecewise_law_is_exponential():
    data = simulate(seed=9)
    assert_allclose(predictions(DFM("piecewise", smoothing=1e7), data), predictions(DFM(), data), atol=1e-4)


# How much is smoothed depends on the number of rows, and by design not on the scale of their weights.
ROUGH = DFM("piecewise", smoothing=0.0)
UNSMOOTHED = {
    "dfm-piecewise": ROUGH,
    "dfm-kernel": DFM("kernel", smoothing=0.0),
    "hazard": Hazard(smoothing=0.0),
    "SoftLabels(l2=0.001)": SoftLabels(ROUGH, l2=1e-3),
}


@pytest.mark.parametrize("method", [UNSMOOTHED.get(str(name), name) for name in FIXED], ids=str)
def test_integer_weights_are_repetitions(method):
    data = simulate(seed=10, n=1200)
    weight = np.random.default_rng(0).integers(0, 4, 1200)
    weighted = fit(method, data, sample_weight=weight.astype(float))
    repeated = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0, model=EXACT).fit(
        *(np.repeat(values, weight, axis=0) for values in (data.X, data.y)),
        elapsed=np.repeat(data.elapsed, weight),
        delay=np.repeat(data.delay, weight),
    )
    assert_allclose(weighted.predict_proba(data.X), repeated.predict_proba(data.X), atol=2e-6)
    assert_allclose(weighted.model_.objective_, repeated.model_.objective_, rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_row_order_does_not_matter(method):
    data = simulate(seed=11, n=1200)
    order = np.random.default_rng(0).permutation(1200)
    shuffled = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0, model=EXACT)
    shuffled.fit(data.X[order], data.y[order], elapsed=data.elapsed[order], delay=data.delay[order])
    assert_allclose(shuffled.predict_proba(data.X)[:, 1], predictions(method, data), atol=1e-6)


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_time_unit_does_not_matter(method):
    data = simulate(seed=12, n=1200)
    # Ties at whole hours would flip under a change of unit if times were compared to the last bit.
    data.elapsed = np.ceil(data.elapsed * 24) / 24
    data.delay = np.floor(data.delay * 24) / 24
    days = fit(method, data)
    hours = DelayedFeedbackClassifier(method=method, window=120.0, horizon=480.0, model=EXACT)
    hours.fit(data.X, data.y, elapsed=data.elapsed * 24, delay=data.delay * 24)
    assert_allclose(hours.predict_proba(data.X), days.predict_proba(data.X), atol=1e-6)
    if method == "dfm":
        assert_allclose(hours.model_.intercept_ - days.model_.intercept_, [0.0, -np.log(24)], atol=1e-4)


def test_matched_weights_are_ratios_of_counts_and_paper_weights_are_not():
    data = simulate(seed=13, n=20000)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0)
    matched, paper = late_weights(labels, "matched"), late_weights(labels, "paper")
    assert_allclose(paper[labels.late], 1 / labels.mature.sum())
    # Steady arrivals: about 1/N each.
    assert_allclose(matched[labels.late].mean() * 20000, 1.0, atol=0.05)
    # Twice the arrivals in the last window: about 2/N' each.
    young = data.elapsed < 5.0
    double = check_labels(*(np.concatenate([v, v[young]]) for v in (data.y == 1, data.elapsed, data.delay)), None, 5.0)
    late_sum = late_weights(double, "matched").sum() * len(double.y)
    assert_allclose(late_sum, 2 * matched.sum() * 20000, rtol=0.1)


def by_hand():
    """Five rows on the edge: e equals the window, d equals e minus the window, d one tick later, ..."""
    elapsed = np.array([5.0, 8.0, 8.0, 4.0, 12.0])
    delay = np.array([np.nan, 3.0, 3.5, 1.0, 12.0])
    return check_labels(~np.isnan(delay), elapsed, delay, None, 5.0)


def test_ties_fall_on_the_side_of_being_known():
    labels = by_hand()
    assert labels.mature.tolist() == [True, True, True, False, True]
    assert labels.early.tolist() == [False, True, False, False, False]
    assert labels.late.tolist() == [False, False, True, False, True]


def test_pu_weights_by_hand():
    risk = PU(prior=0.3).risk(by_hand(), None)
    assert_allclose(risk.a, [0, 0.075, 0.075, 0.075, 0.075])
    assert_allclose(risk.b, 0.2 - risk.a)
    assert_allclose(PU().risk(by_hand(), None).a.sum(), 0.75)


def test_stc_counts_ties_as_quick_and_ripe():
    short, share = STC(short=3.0).risk(by_hand(), None).parts
    assert_allclose(short.a, [0, 0.2, 0, 0.2, 0])
    assert_allclose(share.a, [0, 1 / 3, 0, 0, 0])
    assert_allclose(share.b, [0, 0, 1 / 3, 0, 1 / 3])
    ripe = STC(short=4.0).risk(by_hand(), None).parts[0]
    assert_allclose(ripe.a + ripe.b, 0.2)  # the row of age 4 counts


def test_fsiw_by_hand():
    """Ratios from given probabilities, cut at max_weight; the auxiliary weights of a stage sum to 1."""
    data = simulate(seed=14, n=500)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0)
    stages = []

    def learner(risk, rows, groups, at):
        stages.append((risk, rows))
        return np.full(500, -2.0) if len(stages) % 2 else np.full(500, 1.0)

    for cap, r1 in ((20.0, 1 + np.exp(2.0)), (3.0, 3.0)):
        risk = FSIW(max_weight=cap).risk(labels, learner)
        assert_allclose(risk.a, np.where(data.y == 1, r1 / 500, 0.0))
        assert_allclose(risk.b, np.where(data.y == 1, 0.0, 1 / (1 + np.exp(-1.0)) / 500))
    (seen, converted), (final, waiting) = stages[:2]
    assert_allclose([(stage.a + stage.b).sum() for stage in (seen, final)], 1.0)
    assert_array_equal(converted, labels.mature & labels.y)
    assert_array_equal(waiting, labels.mature & ~labels.early)
    assert_allclose(seen.a > 0, labels.early[converted])
    assert_allclose(final.a > 0, ~labels.y[waiting])


def test_a_horizon_cuts_the_ages_and_what_is_predicted():
    """Ages beyond the horizon tell no more than the horizon, and positives after it are not predicted."""
    data = simulate(seed=15, n=2000)
    older = data.elapsed.copy()
    older[data.elapsed > 8.0] += 100.0
    for method in ("dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel", "hazard"):
        first = fit(method, data, window=None, horizon=8.0)
        second = DelayedFeedbackClassifier(method=method, horizon=8.0, model=EXACT)
        second.fit(data.X, data.y, elapsed=older, delay=data.delay)
        assert_allclose(second.predict_proba(data.X), first.predict_proba(data.X), atol=1e-7)
    clf = fit("dfm", data, window=None, horizon=8.0)
    g, h = clf.model_.margins(data.X).T
    expected = expit(g) * -np.expm1(-8.0 * np.exp(h))
    assert_allclose(clf.predict_proba(data.X)[:, 1], expected, rtol=1e-10)
    assert_allclose(fit("dfm", data, window=None, horizon=None).predict_proba(data.X)[:, 1], expected, atol=0.05)


def test_hazard_without_a_horizon_predicts_up_to_the_oldest_age():
    data = simulate(seed=16, n=2000)
    free = fit("hazard", data, window=None, horizon=None)
    bound = fit("hazard", data, window=None, horizon=float(data.elapsed.max()))
    assert_allclose(free.predict_proba(data.X), bound.predict_proba(data.X), atol=1e-8)


def test_smoothing_flattens_the_hazard():
    data = simulate(seed=17, n=2000)
    rough, smooth = (np.ptp(fit(DFM("piecewise", smoothing=s), data).model_.shared_) for s in (0.1, 100.0))
    assert smooth < 0.5 * rough


def test_matched_weights_leave_out_ages_that_nothing_was_then():
    """Rows older than any was one window ago have no counterpart, and must not raise the ratio of the oldest."""
    elapsed = np.linspace(0.05, 12.0, 240)
    delay = np.full(240, np.nan)
    delay[-1] = 8.0  # late, and as old as any row was one window ago
    labels = check_labels(~np.isnan(delay), elapsed, delay, None, 5.0)
    assert labels.late.sum() == 1
    assert_allclose(late_weights(labels, "matched")[-1], 1 / 240, rtol=0.2)


@pytest.mark.parametrize("method", ["tw", "putw", "pnutw", "pu", "stc"])
def test_no_mature_positives(method):
    data = simulate(seed=18)
    data.y = data.y * (data.elapsed < 5.0)
    data.delay[data.y == 0] = np.nan
    with pytest.raises(ValueError, match="learns from mature positives, and there are none"):
        fit(method, data)


@pytest.mark.parametrize("method", ["dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel", "hazard"])
def test_equal_delays_are_refused(method):
    data = simulate(seed=19)
    data.delay = np.where(data.y == 1, 0.0, np.nan)
    with pytest.raises(ValueError, match=r"learns how delays vary, but all \d+ positives have the same delay, 0"):
        fit(method, data)


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_zero_are_invisible(method):
    data = simulate(seed=20, n=1500)
    expected = predictions(method, data)
    rng = np.random.default_rng(0)
    data.X = np.vstack([data.X, 100 * rng.normal(size=(300, data.X.shape[1]))])
    data.elapsed = np.append(data.elapsed, rng.uniform(0, 500, 300))
    data.y = np.append(data.y, rng.integers(0, 2, 300))
    data.delay = np.append(
        data.delay, np.where(data.y[1500:] == 1, rng.uniform(0, 1, 300) * data.elapsed[1500:].clip(0, 20), np.nan)
    )
    p = predictions(method, data, sample_weight=np.repeat([1.0, 0.0], [1500, 300]))
    assert_allclose(p[:1500], expected, atol=1e-9)


def test_without_an_intercept_the_delay_keeps_its_level():
    data = simulate(seed=21)
    model = LinearModel(l2=1e-3, fit_intercept=False)
    days = fit("dfm", data, model=model)
    hours = DelayedFeedbackClassifier(method="dfm", horizon=480.0, model=model)
    hours.fit(data.X, data.y, elapsed=24 * data.elapsed, delay=24 * data.delay)
    assert days.model_.intercept_[0] == 0
    assert_allclose(hours.predict_proba(data.X), days.predict_proba(data.X), atol=1e-6)
