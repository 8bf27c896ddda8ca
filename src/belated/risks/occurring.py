"""The risk of rows that occur in groups, such as ages: a margin depends on the features and on the group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from belated.risks.base import EMPTY, Occurrences, Risk
from belated.risks.links import Link
from belated.risks.weighted import WeightedRisk
from belated.typing import Bools, Floats, Ints


class OccurringRisk(Risk):
    """A weighted risk of each occurrence.

    A model fits ``occurrences.risk``, whose margins are those of the occurrences (E, 1). New rows have a margin in every group,
    (n, groups): the costs of rows left out, and the link, take those.
    """

    def __init__(self, occurrences: Occurrences, link: Link) -> None:
        self.occurrences: Occurrences = occurrences
        self.link = link

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        return self.occurrences.risk.value_and_gradient(margins, shared)

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        row, group = self.occurrences.row, self.occurrences.group
        costs = self.occurrences.risk.row_costs(margins[row, group][:, None], shared)
        return np.bincount(row, costs, len(margins)).astype(np.float64, copy=False)

    def kinds(self) -> Ints:
        return self.occurrences.risk.kinds()

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        all_of_them = self.occurrences
        kept, place = rows[all_of_them.row], np.cumsum(rows) - 1
        some = Occurrences(
            place[all_of_them.row[kept]],
            all_of_them.group[kept],
            all_of_them.count,
            all_of_them.increasing,
            all_of_them.risk.take(kept, factor),
        )
        return OccurringRisk(some, self.link)

    def start(self) -> tuple[Floats, Floats]:
        return self.occurrences.risk.start()


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

    def negative_part(self, margins: Any) -> float:
        return super().negative_part(margins + self.offset[:, None])

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        return OffsetRisk(factor * self.a[rows], factor * self.b[rows], self.offset[rows])

    def spread(self, rows: Bools) -> Risk | None:
        return None

    def start(self) -> tuple[Floats, Floats]:
        return np.zeros(1), EMPTY


@dataclass(frozen=True)
class LastGroup(Link):
    """p = sigmoid of the margin in the last group, on top of the level of that group."""

    level: float

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return expit(self.decision(margins, shared))

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, -1] + self.level


@dataclass(frozen=True)
class AnyGroup(Link):
    """p = 1 - the product of 1 - sigmoid(margin + level): something happens in one of the groups, which follow each other."""

    levels: Floats

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return -np.expm1(-np.logaddexp(0.0, margins + self.levels).sum(axis=1))


def weighted_occurrences(
    row: Ints, group: Ints, weight: Floats, positive: Bools, increasing: bool
) -> tuple[Occurrences, Floats]:
    """Occurrences of which each costs the logistic loss of a label, times a weight, and the level of each group.

    A margin is what features add to the log odds of the group, so that a penalty on it does not draw groups together.
    """
    count = int(group.max()) + 1
    total, happened = np.bincount(group, weight, count), np.bincount(group, weight * positive, count)
    # A group without events, or with nothing else, gets a little of the overall rate.
    little = 1e-4 * total.sum()
    levels = logit((happened + little * happened.sum() / total.sum()) / (total + little))
    risk = OffsetRisk(weight * positive, weight * ~positive, levels[group])
    return Occurrences(row, group, count, increasing, risk), levels
