"""PersonPeriod: one row for each interval in which a row was at risk, the discrete-time survival model."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from belated.data.labels import Labels
from belated.methods.base import Learner, Method
from belated.methods.delay_model import check_delays, event_times, piecewise_law
from belated.risks.base import Risk
from belated.risks.occurring import AnyGroup, OccurringRisk, weighted_occurrences
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
        # An event on a grid lies in the cell after its time, and cells are not cut by edges.
        last = np.where(events.y, events.times + events.cell / 2, events.times)
        row, group, part, positive = _periods(last, events.y, edges)
        found, levels = weighted_occurrences(row, group, events.weight[row] * part, positive, increasing=False)
        return OccurringRisk(found, AnyGroup(levels))


def _periods(last: Floats, y: Bools, edges: Floats) -> tuple[Ints, Ints, Floats, Bools]:
    """Row and interval of each occurrence, the share of the interval that was seen, and whether the event came in it."""
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
    return row[kept], np.concatenate(groups)[kept], part[kept], np.concatenate(positives)[kept]
