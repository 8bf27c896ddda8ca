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
from typing import TYPE_CHECKING, Any

import numpy as np

from belated.cluster.sharded import by_rows
from belated.data.labels import Labels
from belated.data.stretches import STRETCHES, stretch_of_rows
from belated.evaluation.compatibility import require_compatible
from belated.evaluation.fitting import require_probabilities, with_setting
from belated.evaluation.learners import EngineLearner
from belated.methods.base import Learner, Method, no_learner
from belated.models.base import Model
from belated.notices import logger, quietly
from belated.risks.base import Risk
from belated.tables.frames import take_rows
from belated.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from belated.evaluation.teachers import Teachers

_FOLDS = 3


@dataclass(frozen=True)
class Choice:
    """The value to take (None: the model has no such setting), and the risk of rows left out at each that was tried."""

    value: float | None
    risks: dict[float | None, float]


def chosen_value(choice: Choice | str | None, values: Sequence[float] | None) -> float | None:
    """The value chosen; where the past was too short for a choice, the middle one on offer, and None where none is."""
    if isinstance(choice, Choice):
        return choice.value
    return None if values is None else sorted(values)[len(values) // 2]


def choose_setting(
    X: Any,
    labels: Mapping[str, Labels],
    model: Model,
    methods: Mapping[str, Method],
    values: Sequence[float] | None,
    teachers: Teachers | None = None,
) -> dict[str, Choice | str]:
    """For each method the value of the model's setting that serves rows left out best, or why there is none.

    Labels of different methods may differ in their windows.
    """
    try:
        folds = _Folds.of(X, next(iter(labels.values())), model, teachers)
    except ValueError as error:
        return dict.fromkeys(methods, str(error))
    found: dict[str, Choice | str] = {}
    known: dict[Any, Choice] = {}  # some methods differ in what they do with a fit, and not in what they fit
    for name, method in methods.items():
        try:
            require_compatible(method, model)
            method.check(labels[name])
            candidate = _Candidate.of(method, labels[name])
            choice = known.get(candidate.fingerprint) or _choose(folds, candidate, values)
        except ValueError as error:
            found[name] = str(error)
            continue
        found[name] = choice
        if candidate.fingerprint is not None:
            known[candidate.fingerprint] = choice
        logger.info("%s: %s %s, by the risk of stretches of time left out", name, model.setting, choice.value)
    return found


@dataclass(frozen=True)
class _Candidate:
    """A method and its labels, with its risk where that depends on nothing else."""

    method: Method
    labels: Labels
    risk: Risk | None

    @classmethod
    def of(cls, method: Method, labels: Labels) -> _Candidate:
        if method.has_auxiliary_fits or method.has_teacher:
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
    teachers: Teachers | None

    @classmethod
    def of(cls, X: Any, labels: Labels, model: Model, teachers: Teachers | None) -> _Folds:
        stretch = stretch_of_rows(_ages(labels))
        if not stretch.any():
            raise ValueError("all rows came at the same time, so none can be left out.")
        parts = []
        for fold in range(min(_FOLDS, int(stretch.max()) + 1)):
            out, engine = stretch % _FOLDS == fold, model.for_trials()
            encoded = engine.encode(take_rows(X, ~out), labels.weight[~out])
            parts.append(_Fold(out, engine, encoded, engine.transform(take_rows(X, out))))
        return cls(X, labels.weight, stretch, model, parts, teachers)

    @cached_property
    def all_rows(self) -> tuple[Model, Any]:
        """A model with all rows encoded, for auxiliary fits."""
        engine = self.model.for_trials()
        return engine, engine.encode(self.X, self.weight)


def _ages(labels: Labels) -> Floats:
    """Without times, rows count as having come in their order."""
    return -np.arange(len(labels.y), dtype=np.float64) if labels.elapsed is None else labels.elapsed


def _choose(folds: _Folds, candidate: _Candidate, offered: Sequence[float] | None) -> Choice:
    values: list[float | None] = [None]
    if folds.model.path is not None and offered is not None:
        values = [*folds.model.simplest_first(offered)]
    tried: list[Floats] = []  # the risk of each stretch at each value
    with quietly():
        # All folds go down the values together, so that they can stop where the risk rises.
        for costs in zip(*(_risks_left_out(folds, fold, candidate, values) for fold in folds.parts), strict=True):
            tried.append(np.sum(costs, axis=0))
            if _has_risen(tried) and (folds.model.takes_simplest or _has_risen(tried[:-1])):
                break
    totals = np.array([costs.sum() for costs in tried])
    if not np.isfinite(totals).any():
        raise ValueError(f"at no {folds.model.setting or 'setting'} is the risk of rows left out a finite number.")
    best = int(np.nanargmin(totals))
    first = 0 if folds.model.takes_simplest else best
    chosen = next(k for k in range(first, best + 1) if _is_close(tried[k], tried[best]))
    value = values[chosen]
    if value is not None:
        value = folds.model.for_more_rows(value, len(folds.parts) / max(len(folds.parts) - 1, 1))
    return Choice(value, dict(zip(values, totals.tolist(), strict=False)))


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
    for risk, fitted, model in _fits(folds, fold, candidate, values):
        # A risk with learned weights depends on l2 itself. All values are judged by the first, the most regularised.
        left = risk.left_out(fold.out, fitted) if left is None else left
        margins, costs = model.margins(fold.later), np.zeros(STRETCHES)
        costs += np.bincount(stretch, by_rows(_costs, left, margins, model.shared_), STRETCHES)
        costs[inside] += _below_zero(left, margins) / len(inside)
        yield costs


def _costs(risk: Risk, margins: Floats, shared: Floats) -> Floats:
    return risk.left_out_costs(margins, shared)


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
) -> Iterator[tuple[Risk, Risk, Model]]:
    """The risk of all rows, that of those not left out, and models of these; auxiliary models see no more than they do."""
    # Weights are such that a risk is an average of rows, so that l2 means the same for some rows as for all.
    factor = candidate.labels.total / candidate.labels.weight[~fold.out].sum()
    method, risk = candidate.method, candidate.risk
    if risk is None and not (method.has_auxiliary_fits and fold.model.auxiliary_follows_setting):
        risk = method.build_risk(candidate.labels, _learner(folds, fold, method, None))
        require_probabilities(risk)
    if risk is not None and values != [None]:
        some = risk.take(~fold.out, factor)
        for model in fold.model.path(fold.encoded, some, values):
            yield risk, some, model
        return
    for value in values:
        one = risk or method.build_risk(candidate.labels, _learner(folds, fold, method, value))
        require_probabilities(one)
        some = one.take(~fold.out, factor)
        yield one, some, with_setting(fold.model, value).fit(fold.encoded, some)


def _learner(folds: _Folds, fold: _Fold, method: Method, value: float | None) -> Learner:
    if not method.has_auxiliary_fits:
        return EngineLearner(fold.model, None, folds.teachers, ~fold.out)
    whole, encoded = folds.all_rows
    return EngineLearner(with_setting(whole, value), encoded, folds.teachers, ~fold.out)
