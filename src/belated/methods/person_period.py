"""PersonPeriod: one row for each interval in which a row was at risk, the discrete-time survival model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from belated.cluster.sharded import several
from belated.data.labels import Labels
from belated.methods.base import Learner, Method
from belated.methods.delay_model import check_delays, event_times, piecewise_law
from belated.risks.base import Risk
from belated.risks.delays import EventTimes
from belated.risks.links import Link
from belated.risks.occurring import AnyGroup, OccurringRisk, levels_of
from belated.typing import Bools, Floats, Ints


class PersonPeriod(Method):
    """A classifier of "turns positive in this interval of ages, given that it has not yet", with the interval as a feature.

    A row occurs once in each interval that it entered: as a positive in the one in which it turned positive, as a negative in those
    it left without. The interval in which it is now counts by the share of it that has passed. p = 1 - the product over
    intervals of 1 - p(interval). A model that is not linear lets hazards of different rows differ in shape.

    Parameters
    ----------
    intervals : int
        At quantiles of the observed delays; the last ends at the horizon, or at the oldest age where there is none.

    Examples
    --------
    >>> from belated import PersonPeriod, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(PersonPeriod()).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.149
    """

    needs_delay = True
    has_groups = True

    def __init__(self, intervals: int = 8) -> None:
        self.intervals = intervals

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        assert labels.elapsed is not None
        check_delays(labels, "PersonPeriod")
        events, ahead = event_times(labels)
        inner = piecewise_law(events, labels.effective_rows, self.intervals, 0.0).knots
        end = (float(labels.elapsed.max()) if labels.horizon is None else labels.horizon) + ahead
        edges = np.concatenate([[0.0], inner[inner < end], [end]])
        _, group, weight, positive = several(4, _periods, events, edges)
        count = int(group.max()) + 1  # intervals that anybody has entered
        return _risk(events, AnyGroup(edges[: count + 1], levels_of(group, weight, positive, count)))

    def risk_of_others(self, labels: Labels, link: Link, learner: Learner) -> Risk:
        if not isinstance(link, AnyGroup):  # fitted without times
            return super().risk_of_others(labels, link, learner)
        return _risk(event_times(labels)[0], link)


def _risk(events: EventTimes, link: AnyGroup) -> Risk:
    row, group, weight, positive = several(4, _periods, events, link.edges)
    return OccurringRisk(row, group, weight, positive, False, link)


def _periods(events: EventTimes, edges: Floats) -> tuple[Ints, Ints, Floats, Bools]:
    """Row and interval of each occurrence, its weight by the share of the interval that was seen, and whether the event came in it."""
    # An event on a grid lies in the cell after its time, and cells are not cut by edges.
    last, y = np.where(events.y, events.times + events.cell / 2, events.times), events.y
    rows, groups, parts, positives = [], [], [], []
    for k, (low, high) in enumerate(pairwise(edges)):
        # The first interval has everybody, and an event at an edge belongs to the interval before it.
        entered = np.flatnonzero(last > low) if k else np.arange(len(last))
        event = y[entered] & (last[entered] <= high)
        seen = np.clip((last[entered] - low) / (high - low), 0.0, 1.0)
        rows.append(entered)
        groups.append(np.full(len(entered), k))
        parts.append(np.where(event, 1.0, seen))
        positives.append(event)
    row, part = np.concatenate(rows), np.concatenate(parts)
    kept = part > 0
    row = row[kept]
    return row, np.concatenate(groups)[kept], events.weight[row] * part[kept], np.concatenate(positives)[kept]
