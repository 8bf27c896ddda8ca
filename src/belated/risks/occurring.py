"""The risk of rows that occur in groups, such as ages: a margin depends on the features and on the group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from belated.arrays import look_up
from belated.risks.base import EMPTY, Occurrences, Risk
from belated.risks.links import Link
from belated.risks.weighted import WeightedRisk
from belated.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class GroupLink(Link):
    """Margins in every group (n, groups), on top of the level of each; ``edges`` say which times belong to which group."""

    edges: Floats
    levels: Floats


class OccurringRisk(Risk):
    """Each occurrence of a row in a group costs the logistic loss of a label, times a weight.

    A margin is what features add to the level of a group, its log odds, so that a penalty on it does not draw groups together.
    A model fits ``occurrences.risk``, whose margins are those of the occurrences (E, 1). New rows have a margin in every group,
    (n, groups): the costs of rows left out, and the link, take those.
    """

    link: GroupLink

    def __init__(
        self, row: Ints, group: Ints, weight: Floats, positive: Bools, increasing: bool, link: GroupLink
    ) -> None:
        self.weight, self.positive, self.link = weight, positive, link
        risk = OffsetRisk(weight * positive, weight * ~positive, look_up(link.levels, group))
        self.occurrences: Occurrences = Occurrences(row, group, link.levels, increasing, risk)

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        row, group = self.occurrences.row, self.occurrences.group
        costs = self.occurrences.risk.row_costs(margins[row, group][:, None], shared)
        return np.bincount(row, costs, len(margins)).astype(np.float64, copy=False)

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        """The same of some rows; levels are theirs alone."""
        found = self._some(rows, factor, self.link.levels)
        return self._some(
            rows, factor, levels_of(found.occurrences.group, found.weight, found.positive, len(self.link.levels))
        )

    def left_out(self, rows: Bools, fitted: Risk) -> Risk:
        assert isinstance(fitted, OccurringRisk)
        return self._some(rows, 1.0, fitted.link.levels)

    def _some(self, rows: Bools, factor: float, levels: Floats) -> OccurringRisk:
        mine = self.occurrences
        kept, place = rows[mine.row], np.cumsum(rows) - 1
        return OccurringRisk(
            place[mine.row[kept]],
            mine.group[kept],
            factor * self.weight[kept],
            self.positive[kept],
            mine.increasing,
            replace(self.link, levels=levels),
        )


def levels_of(group: Ints, weight: Floats, positive: Any, count: int) -> Floats:
    """The log odds of each group. One without events, or with nothing else, gets a little of the overall rate."""
    total, happened = np.bincount(group, weight, count), np.bincount(group, weight * positive, count)
    little = 1e-4 * total.sum()
    return logit((happened + little * happened.sum() / total.sum()) / (total + little))


class OffsetRisk(WeightedRisk):
    """:class:`WeightedRisk` of margins to which an offset of each row is added first."""

    logistic_weights = None  # solvers that know the weights do not know the offset

    def __init__(self, a: Floats, b: Floats, offset: Floats) -> None:
        super().__init__(a, b)
        self.offset = offset

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        return super().value_and_gradient(margins + self.offset[:, None], shared)

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        return super().curvature(margins + self.offset[:, None], shared)

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        return super().row_costs(margins + self.offset[:, None], shared)

    def without_offset(self) -> WeightedRisk:
        return WeightedRisk(self.a, self.b)

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        return OffsetRisk(factor * self.a[rows], factor * self.b[rows], self.offset[rows])

    def spread(self, rows: Bools) -> Risk | None:
        return None  # the other rows have no offset

    def start(self) -> tuple[Floats, Floats]:
        return np.zeros(1), EMPTY


@dataclass(frozen=True)
class LastGroup(GroupLink):
    """p = sigmoid of the margin in the last group, on top of its level."""

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return expit(self.decision(margins, shared))

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, -1] + self.levels[-1]


@dataclass(frozen=True)
class AnyGroup(GroupLink):
    """p = 1 - the product of 1 - sigmoid(margin + level): something happens in one of the groups, which follow each other."""

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return -np.expm1(-np.logaddexp(0.0, margins + self.levels).sum(axis=1))
