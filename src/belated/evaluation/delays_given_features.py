"""When positives come, given the features: the share that has been seen by an age, learned from the positives alone.

A positive is known only if it came before its row's age, so delays are cut off on the right. Read backwards they are not: of positives that came by
the end of an interval of ages, the share r that came within it can be learned from all rows old enough to show it. With r a logistic
function of features and interval, F(a | x) = the product over intervals after a of 1 - r(x), and F = 1 at the horizon. A row whose age e lies within an interval, a share s of the way, has the odds
s r / (1 - r), if delays are spread evenly there: the same logistic function, with log s added.

The effect of a feature differs by age: where some rows are quicker than others, r is the same for all soon after arrival and very different later on. So there are three such functions, each
of a third of the intervals.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit, logit

from belated.arrays import look_up
from belated.cluster.sharded import several
from belated.data.labels import Labels
from belated.features.cluster_table import ClusterTable
from belated.methods.delay_model import event_times, piecewise_law
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.risks.base import Occurrences, Risk
from belated.risks.delays import EventTimes
from belated.risks.occurring import OffsetRisk
from belated.tables.frames import array_as_table, take_rows
from belated.typing import Bools, Floats, Ints

_INTERVALS = 12
_ENOUGH = 1000  # positives, below which all rows get one curve
_STRETCHES = 3  # of intervals, in each of which features have effects of their own
_L2 = 1e-3
_STEPS = 30  # of Newton's method
_NEVER = -30.0  # the log odds of an interval that no row is old enough to show


@dataclass
class DelaysGivenFeatures:
    """F(age | x), the share of positives that have been seen by an age. There are no ``models`` where all rows have one curve."""

    edges: Floats  # of intervals of ages; the last is the horizon
    levels: Floats  # the log odds of each interval but the first
    models: list[LinearModel]  # of one stretch of intervals after another

    def at_edges(self, X: Any, n: int) -> Floats:
        """F of n rows at every edge, of shape (n, edges)."""
        log_odds = np.broadcast_to(self.levels, (n, len(self.levels)))
        if self.models:
            as_table = self.models[0].encoder_ is not None and isinstance(X, np.ndarray)
            X = array_as_table(X) if as_table else X
            log_odds = self.levels + np.column_stack([model.margins(X) for model in self.models])
        later = -np.logaddexp(0.0, log_odds)[:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.column_stack([np.zeros(n), np.exp(later), np.ones(n)])


def between_edges(edges: Floats, values: Floats, ages: Floats) -> Floats:
    """Values (n, edges) at an age of each row, straight lines between edges and level beyond the last."""
    ages = np.clip(ages, edges[0], edges[-1])
    k = np.clip(np.searchsorted(edges, ages, side="left") - 1, 0, len(edges) - 2)
    inside = (ages - edges[k]) / (edges[k + 1] - edges[k])
    rows = np.arange(len(values))
    low: Floats = values[rows, k]
    return low + inside * (values[rows, k + 1] - low)


def learn_delays(X: Any, labels: Labels) -> DelaysGivenFeatures:
    """From the positives of labels with delays."""
    assert labels.delay is not None and labels.elapsed is not None
    events, ahead = event_times(labels)
    delays = labels.delay[labels.y]
    end = (float(labels.elapsed.max()) if labels.horizon is None else labels.horizon) + ahead
    if delays.max() - delays.min() <= labels.tie_width:
        return _one_delay(float(delays.max()), end)
    inner = piecewise_law(events, labels.effective_rows, _INTERVALS, 0.0).knots
    edges = np.concatenate([[0.0], inner[inner < end], [end]])
    some = _of_positives(events)
    row, group, weight, positive, part = several(5, _looking_back, some, edges)
    count = len(edges) - 2
    if not count:
        return DelaysGivenFeatures(edges, np.zeros(0), [])
    levels = _levels(group, weight, positive, part, count)
    if labels.y.sum() < _ENOUGH:
        return DelaysGivenFeatures(edges, levels, [])
    model = LinearModel(l2=_L2, tol=1e-6)
    if isinstance(X, np.ndarray) and np.isnan(X).any():
        X = array_as_table(X)
    models = []
    with quietly():
        encoded = model.encode(X[labels.y] if isinstance(X, ClusterTable) else take_rows(X, labels.y), some.weight)
        for first, after in pairwise(_stretches(levels)):
            mine = (group >= first) & (group < after)
            a, b = ((weight * which)[mine] for which in (positive, ~positive))
            risk = OffsetRisk(a, b, (look_up(levels, group) + np.log(part))[mine])
            one = copy(model)
            one.fit(
                encoded,
                _RiskOfOccurrences(Occurrences(row[mine], group[mine] - first, levels[first:after], False, risk)),
            )
            models.append(one)
    logger.info("delays given the features: %d intervals up to %g", len(edges) - 1, edges[-1])
    return DelaysGivenFeatures(edges, levels, models)


def _stretches(levels: Floats) -> list[int]:
    """Where each stretch of intervals begins, and the last one ends; intervals that nobody has reached are in the last one."""
    reached = int((levels > _NEVER).sum())
    many = max(min(_STRETCHES, reached), 1)
    return [*(k * reached // many for k in range(many)), len(levels)]


class _RiskOfOccurrences(Risk):
    """What an engine needs to know of rows that occur in intervals."""

    def __init__(self, occurrences: Occurrences) -> None:
        self.occurrences = occurrences


def _one_delay(delay: float, end: float) -> DelaysGivenFeatures:
    """Where every positive came after the same delay: nothing is seen before it, and nothing comes after it."""
    edges = np.unique([0.0, delay * (1 - 1e-6), max(delay, 1e-9 * end), end])
    levels = np.where(edges[2:] <= max(delay, 1e-9 * end), -_NEVER, _NEVER)
    return DelaysGivenFeatures(edges, levels, [])


def _of_positives(events: EventTimes) -> EventTimes:
    y = events.y
    weight = events.weight[y]
    return EventTimes(y[y], events.times[y], events.cell, weight / float(weight.sum()), events.ages[y])


def _looking_back(events: EventTimes, edges: Floats) -> tuple[Ints, Ints, Floats, Bools, Floats]:
    """Row and interval of each occurrence, its weight, whether the delay ended in it, and the share of it that could be seen.

    A row occurs in the intervals that began before its age, and did not end before its delay. The first interval has no other before it, and is left out.
    """
    last = events.times + events.cell / 2
    rows, groups, positives, parts = [], [], [], []
    for k, (low, high) in enumerate(pairwise(edges[1:])):
        part = np.clip((events.ages - low) / (high - low), 0.0, 1.0)
        found = np.flatnonzero((part > 0) & (last <= high))
        rows.append(found)
        groups.append(np.full(len(found), k))
        positives.append(last[found] > low)
        parts.append(part[found])
    if not rows:
        nothing = np.zeros(0)
        return nothing.astype(int), nothing.astype(int), nothing, nothing.astype(bool), nothing
    row = np.concatenate(rows)
    return row, np.concatenate(groups), events.weight[row], np.concatenate(positives), np.concatenate(parts)


def _levels(group: Ints, weight: Floats, positive: Bools, part: Floats, count: int) -> Floats:
    """The log odds of each interval for rows without features, by Newton's method, with a little of an even share."""
    little = 1e-6
    offset = np.log(part)
    total = np.bincount(group, weight, count) + little
    happened = np.bincount(group, weight * positive, count) + little / 2
    levels: Floats = logit(happened / total)
    for _ in range(_STEPS):
        p = expit(look_up(levels, group) + offset)
        own = expit(levels)
        expected = np.bincount(group, weight * p, count) + little * own
        bend = np.bincount(group, weight * p * (1.0 - p), count) + little * own * (1.0 - own)
        step = np.clip((happened - expected) / bend, -2.0, 2.0)
        levels = levels + step
        if np.abs(step).max() < 1e-10:
            break
    return np.where(np.bincount(group, weight, count) > 0, levels, _NEVER)
