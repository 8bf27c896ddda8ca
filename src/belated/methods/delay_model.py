"""DFM (Chapelle, KDD 2014): the rate and the delay learned together, under one of three delay laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from belated.data.labels import Labels
from belated.data.time_grid import grid_step, on_grid
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method
from belated.risks.base import Risk
from belated.risks.cure import CureLink, CureRisk
from belated.risks.delay_laws import DelayLaw, Exponential, Kernel, Piecewise, Weibull
from belated.risks.delays import EventTimes
from belated.risks.links import Link

_LAWS = {"exponential": Exponential, "weibull": Weibull}


def event_times(labels: Labels) -> tuple[EventTimes, float]:
    """Delays and ages (cut at the horizon) as a likelihood needs them, and what to add to a horizon on the same clock.

    Delays recorded on a grid (to the day, say) are known up to one step of it. Where ages lie on the grid as well, a row
    of age e has shown no event recorded at or before e, so none before e + step.
    """
    assert labels.elapsed is not None and labels.delay is not None
    ages = labels.elapsed if labels.horizon is None else np.minimum(labels.elapsed, labels.horizon)
    step = grid_step(labels.delay[labels.y])
    ahead = step if step and on_grid(labels.elapsed, step) else 0.0
    times = np.where(labels.y, labels.delay, ages + ahead)
    return EventTimes(labels.y, times, step, labels.weight / labels.total, ages + ahead), ahead


def check_delays(labels: Labels, name: str) -> None:
    assert labels.delay is not None
    delays = labels.delay[labels.y]
    if delays.max() - delays.min() <= labels.tie_width:
        raise ValueError(
            f"{name} learns how delays vary, but {'the only positive has a' if len(delays) == 1 else f'all {len(delays)} positives have the same'} delay, {delays[0]:g}. "
            f"Use TW with a window longer than that."
        )


def piecewise_law(events: EventTimes, rows: float, intervals: int, smoothing: float) -> Piecewise:
    """A piecewise law whose knots are quantiles of the observed delays, and the largest of them."""
    if intervals < 1 or smoothing < 0:
        raise ValueError(f"intervals={intervals!r} must be at least 1 and smoothing={smoothing!r} at least 0.")
    delays = events.times[events.y]
    # On a grid an interval ends where a cell ends, so that no cell is cut in two.
    inner = weighted_quantiles(delays, events.weight[events.y], intervals) + events.cell
    first = [delays.min()] if events.cell else []
    knots = np.unique([*first, *inner, delays.max() + events.cell])
    return Piecewise(knots[knots > 0], smoothing / rows)


def kernel_law(events: EventTimes, rows: float, kernels: int, smoothing: float) -> Kernel:
    """A law of kernels at quantiles of the observed delays, each as wide as its neighbours are far."""
    if kernels < 2 or smoothing < 0:
        raise ValueError(f"intervals={kernels!r} must be at least 2 and smoothing={smoothing!r} at least 0.")
    delays = events.times[events.y] + events.cell / 2
    inner = weighted_quantiles(delays, events.weight[events.y], kernels)
    centres = np.unique([delays.min(), *inner, delays.max()])
    gaps = np.diff(centres)
    widths = np.maximum(np.append(gaps, gaps[-1]), np.insert(gaps, 0, gaps[0]))
    return Kernel(centres, widths, smoothing / rows)


class DFM(Method):
    """Delayed feedback model: a share sigmoid(g) turns positive, after a delay whose hazard is scaled by exp(h).

    It needs no window. Predictions are p(positive within the horizon | x). Where there is no horizon they are sigmoid(g),
    p(positive at any age | x), which takes the law beyond the oldest age; the piecewise and the kernel law cannot say what comes after
    that, so their predictions are p(positive by the oldest age | x).

    Parameters
    ----------
    delay : {"exponential", "weibull", "piecewise", "kernel"} or DelayLaw
        The law of the delay, by name or as an object of your own. The Weibull density has no value at 0: unless delays lie
        on a grid, a delay of exactly 0 is read as half the smallest one above it.
    intervals : int
        Of the piecewise law; the knots are quantiles of the observed delays. Of the kernel law (NoDeF, Yoshikawa and Imai 2018), how many
        parts of the delays the centres of its kernels lie between.
    smoothing : float
        Of both: (smoothing / N) times the squared differences of neighbouring log hazards, with N the number of
        rows, or under sample weights of as many equal ones as say as much. The scale of weights does not matter.

    Delays recorded on a grid, such as whole days, count as known up to one step of it.

    Examples
    --------
    >>> from belated import DFM, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(DFM(delay="weibull")).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.15
    """

    needs_delay = True
    has_delay_law = True

    def __init__(self, delay: str | DelayLaw = "exponential", intervals: int = 8, smoothing: float = 0.1) -> None:
        self.delay = delay
        self.intervals = intervals
        self.smoothing = smoothing

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        assert labels.elapsed is not None
        check_delays(labels, "DFM")
        events, ahead = event_times(labels)
        law = self._law(events, labels.effective_rows)
        if not law.finite_at_zero and not events.cell:
            smallest = events.times[events.y & (events.times > 0)].min()
            events = replace(events, times=np.where(events.y, np.maximum(events.times, smallest / 2), events.times))
        horizon = labels.horizon
        if horizon is None and not law.extrapolates:
            horizon = float(labels.elapsed.max())
        return CureRisk(events, law, None if horizon is None else horizon + ahead)

    def risk_of_others(self, labels: Labels, link: Link, learner: Learner) -> Risk:
        if not isinstance(link, CureLink):  # fitted without times
            return super().risk_of_others(labels, link, learner)
        return CureRisk(event_times(labels)[0], link.law, link.horizon)

    def _law(self, events: EventTimes, rows: float) -> DelayLaw:
        if isinstance(self.delay, DelayLaw):
            return self.delay
        if self.delay in ("piecewise", "kernel"):
            law = piecewise_law if self.delay == "piecewise" else kernel_law
            return law(events, rows, self.intervals, self.smoothing)
        if self.delay not in _LAWS:
            raise ValueError(
                f"delay={self.delay!r} is not a delay law; choose 'exponential', 'weibull', 'piecewise' or 'kernel', or pass a DelayLaw."
            )
        return _LAWS[self.delay]()
