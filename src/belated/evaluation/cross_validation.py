"""Choose settings by cross-validation over blocks of arrival time, scored by the method's own risk.

A method's risk needs no final labels: it is an average over rows, whose minimum is what the method is after. So a setting
is as good as the risk of rows that were left out. (Of DFM and Hazard, the part of the likelihood that says whether a row of
its age is positive yet; when that came is no matter of predictions, and asks for more regularisation than they need.)

Which rows to leave out matters. Neighbours in time are alike, and rows left out at random are predicted too well by their
neighbours. Here the history is cut into six stretches that are dealt in turn to three folds; each fold is predicted by a
model of the other two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from belated.data.labels import Labels
from belated.evaluation.fitting import require_probabilities, with_l2
from belated.methods.base import Learner, Method, no_learner
from belated.models.base import Model
from belated.notices import logger, quietly
from belated.risks.base import Risk
from belated.tables.frames import take_rows
from belated.typing import Bools, Floats, Ints

L2_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)

_FOLDS, _STRETCHES = 3, 6


@dataclass(frozen=True)
class Choice:
    """The l2 to take (None: the model has none), and the risk of rows left out at each that was tried."""

    l2: float | None
    risks: dict[float | None, float]


def stretch_of_rows(age: Floats, stretches: int = _STRETCHES) -> Ints:
    """The stretch of time in which each row arrived, 0 for the oldest: as many rows in each as ties allow."""
    order = np.sort(age)
    edges = [order[len(age) * k // stretches] for k in range(1, stretches)]
    # Numbered without gaps, for where many rows came at the same time some stretches are empty.
    return np.unique(-np.searchsorted(edges, age, side="right"), return_inverse=True)[1]


def choose_l2(
    X: Any, labels: Mapping[str, Labels], model: Model, methods: Mapping[str, Method], l2: Sequence[float] | None
) -> dict[str, Choice | str]:
    """For each method the l2 that serves rows left out best, or why there is none.

    Labels of different methods may differ in their windows.
    """
    try:
        folds = _Folds.of(X, next(iter(labels.values())), model)
    except ValueError as error:
        return dict.fromkeys(methods, str(error))
    found: dict[str, Choice | str] = {}
    known: dict[Any, Choice] = {}  # some methods differ in what they do with a fit, and not in what they fit
    for name, method in methods.items():
        try:
            method.check(labels[name])
            candidate = _Candidate.of(method, labels[name])
            choice = known.get(candidate.fingerprint) or _choose(folds, candidate, l2)
        except ValueError as error:
            found[name] = str(error)
            continue
        found[name] = choice
        if candidate.fingerprint is not None:
            known[candidate.fingerprint] = choice
        logger.info("%s: l2 %s, by the risk of stretches of time left out", name, choice.l2)
    return found


@dataclass(frozen=True)
class _Candidate:
    """A method and its labels, with its risk where that depends on nothing else."""

    method: Method
    labels: Labels
    risk: Risk | None

    @classmethod
    def of(cls, method: Method, labels: Labels) -> _Candidate:
        if method.has_auxiliary_fits:
            return cls(method, labels, None)
        with quietly():
            risk = method.build_risk(labels, no_learner)
        require_probabilities(risk)
        return cls(method, labels, risk)

    @cached_property
    def fingerprint(self) -> Any:
        """The same for candidates whose fits are the same; None where that is not known."""
        weights = None if self.risk is None or self.risk.non_negative else self.risk.logistic_weights
        return None if weights is None else tuple(part.tobytes() for part in weights)


@dataclass(frozen=True)
class _Fold:
    """What is left out, and a model with the other rows encoded."""

    out: Bools
    model: Model
    encoded: Any
    later: Any  # the rows left out


@dataclass(frozen=True)
class _Folds:
    """Rows encoded for each fold, once for all methods."""

    X: Any
    weight: Floats
    stretch: Ints
    model: Model
    parts: list[_Fold]

    @classmethod
    def of(cls, X: Any, labels: Labels, model: Model) -> _Folds:
        stretch = stretch_of_rows(_ages(labels))
        if not stretch.any():
            raise ValueError("all rows came at the same time, so none can be left out.")
        parts = []
        for fold in range(min(_FOLDS, int(stretch.max()) + 1)):
            out, engine = stretch % _FOLDS == fold, model.for_trials()
            encoded = engine.encode(take_rows(X, ~out), labels.weight[~out])
            parts.append(_Fold(out, engine, encoded, engine.transform(take_rows(X, out))))
        return cls(X, labels.weight, stretch, model, parts)

    @cached_property
    def all_rows(self) -> tuple[Model, Any]:
        """A model with all rows encoded, for auxiliary fits."""
        engine = self.model.for_trials()
        return engine, engine.encode(self.X, self.weight)


def _ages(labels: Labels) -> Floats:
    """Without times, rows count as having come in their order."""
    return -np.arange(len(labels.y), dtype=np.float64) if labels.elapsed is None else labels.elapsed


def _choose(folds: _Folds, candidate: _Candidate, l2: Sequence[float] | None) -> Choice:
    values: list[float | None] = [None]
    if folds.model.path is not None and l2 is not None:
        values = [*sorted(l2, reverse=True)]
    tried: list[Floats] = []  # the risk of each stretch at each value
    with quietly():
        # All folds go down the values together, so that they can stop where the risk rises.
        for costs in zip(*(_risks_left_out(folds, fold, candidate, values) for fold in folds.parts), strict=True):
            tried.append(np.sum(costs, axis=0))
            if _has_risen(tried):
                break
    totals = np.array([costs.sum() for costs in tried])
    if not np.isfinite(totals).any():
        raise ValueError("at no l2 is the risk of rows left out a finite number.")
    best = int(np.nanargmin(totals))
    chosen = next(k for k in range(best + 1) if _is_close(tried[k], tried[best]))
    return Choice(values[chosen], dict(zip(values, totals.tolist(), strict=False)))


def _has_risen(tried: list[Floats]) -> bool:
    """Whether the risk has risen; with less regularisation it would rise on."""
    return len(tried) > 1 and bool(tried[-1].sum() > tried[-2].sum())


def _is_close(costs: Floats, best: Floats) -> bool:
    """Whether a risk exceeds the lowest by no more than one standard error, by differences between stretches."""
    rise = costs - best
    return bool(rise.sum() <= np.sqrt(len(rise)) * rise.std(ddof=1))


def _risks_left_out(folds: _Folds, fold: _Fold, candidate: _Candidate, values: list[float | None]) -> Iterator[Floats]:
    """The risk of each stretch that a fold leaves out, at each value, under a model of the other rows."""
    stretch, left = folds.stretch[fold.out], None
    inside = np.unique(stretch)
    for risk, model in _fits(folds, fold, candidate, values):
        # A risk with learned weights depends on l2 itself. All values are judged by the first, the most regularised.
        left = risk.take(fold.out) if left is None else left
        margins, costs = model.margins(fold.later), np.zeros(_STRETCHES)
        costs += np.bincount(stretch, left.left_out_costs(margins, model.shared_), _STRETCHES)
        costs[inside] += _below_zero(left, margins) / len(inside)
        yield costs


def left_out_risk(risk: Risk, margins: Floats, shared: Floats) -> float:
    """The risk of rows that were not fitted."""
    return float(risk.left_out_costs(margins, shared).sum()) + _below_zero(risk, margins)


def _below_zero(risk: Risk, margins: Floats) -> float:
    """What it adds that an estimate of something that cannot be negative counts by its size.

    Some methods estimate the risk of negatives by a difference. Where that is below 0 it is off by as much, and a model
    that fits noise could push it down for ever.
    """
    return 2.0 * max(-risk.negative_part(margins), 0.0)


def _fits(
    folds: _Folds, fold: _Fold, candidate: _Candidate, values: list[float | None]
) -> Iterator[tuple[Risk, Model]]:
    """The risk of all rows, and models of those that are not left out; auxiliary models see no more than they do."""
    # Weights are such that a risk is an average of rows, so that l2 means the same for some rows as for all.
    factor = candidate.labels.total / candidate.labels.weight[~fold.out].sum()
    if candidate.risk is not None and values != [None]:
        for model in fold.model.path(fold.encoded, candidate.risk.take(~fold.out, factor), values):
            yield candidate.risk, model
        return
    for value in values:
        risk = candidate.risk or candidate.method.build_risk(candidate.labels, _learner(folds, fold, value))
        require_probabilities(risk)
        yield risk, with_l2(fold.model, value).fit(fold.encoded, risk.take(~fold.out, factor))


def _learner(folds: _Folds, fold: _Fold, l2: float | None) -> Learner:
    whole, encoded = folds.all_rows
    engine = with_l2(whole, l2)

    def learn(risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        known = ~fold.out[rows]
        factor = len(known) / max(known.sum(), 1)
        return engine.auxiliary_margin(encoded, risk.take(known, factor), rows & ~fold.out, groups[known], new_groups)

    return learn
