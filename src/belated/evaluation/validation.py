"""Choose a method and l2 from one snapshot alone, by setting the clock back.

The clock is set back by ``back`` days. Rows that had arrived by then, with the labels that were known then, are for
training; rows that arrived just after are for validation, with the labels known now. These labels may still be
incomplete: a row of age e has shown a share F(e) of its positives (:mod:`belated.evaluation.delay_curve`). With r = y / F(e), whose
mean is the rate of final positives where delays do not depend on the features,

    r log p + (1 - r) log(1 - p)

is an unbiased estimate of a row's final log likelihood. Nothing later than the snapshot is used. Where the history is shorter
than the horizon nobody knows the last part of F, and "final" means by the oldest age.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from belated.data.labels import Observed, grid_step, observe
from belated.evaluation.delay_curve import incidence
from belated.methods import Method
from belated.models import Model
from belated.risks.links import Link
from belated.tables.frames import take_rows
from belated.typing import Bools, Floats

logger = logging.getLogger("belated")


AUTO = ("bl", "tw", "rescale", "fsiw", "nndf", "dfm", "dfm-piecewise", "hazard")
L2_GRID = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)

_FEWEST_ROWS, _FEWEST_POSITIVES = 30, 5
_ENOUGH_ROWS = 1000
LEAST_SEEN = 0.05  # of a row's positives, for it to be of use in validation


@dataclass(frozen=True)
class Fitted:
    """A model of one method at one l2 (None where the model has no path), and how its margins become probabilities."""

    model: Model
    link: Link
    l2: float | None

    def predict(self, X: Any) -> Floats:
        return self.link.probability(self.model.margins(X), self.model.shared_)


def fit_path(
    model: Model, encoded: Any, method: Method, observed: Observed, l2: Sequence[float | None] | None
) -> list[Fitted]:
    """Fit a method at each l2, on rows that ``model`` has encoded; auxiliary fits are regularised as the main one is."""
    method.check(observed)
    fits: list[Fitted] = []
    paths: list[Any] = [[value] for value in l2] if l2 and method.has_stages else [l2]
    for values in paths:
        side = copy(model)
        if values is not None and hasattr(model, "path"):
            side.set_params(l2=values[0])
        risk = method.risk(observed, partial(side.side_margin, encoded))
        if not risk.link.has_probability:
            raise ValueError("its loss gives no probabilities, which are what is scored here.")
        if values is None or not hasattr(model, "path"):
            fits.append(Fitted(side.fit(encoded, risk), risk.link, getattr(model, "l2", None)))
        else:
            fits += [Fitted(fitted, risk.link, fitted.l2) for fitted in side.path(encoded, risk, values)]
    return fits


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings: of many fits that are only tried, none is worth one."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class Split:
    """A clock set back: what was known then, which rows came after, and what is known of them now."""

    back: float
    train: Bools
    observed: Observed  # of the rows in train
    valid: Bools
    r: Floats  # of the rows in valid: y / F(age)
    weight: Floats

    def loss(self, p: Floats) -> float:
        """Corrected log loss on the rows in valid."""
        return corrected_loss(self.r, p, self.weight)


def corrected_loss(r: Floats, p: Floats, weight: Floats) -> float:
    """Mean log loss of probabilities against r = y / F(age)."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return float(-np.average(r * np.log(p) + (1.0 - r) * np.log1p(-p), weights=weight))


def _enough(age: Floats, y: Bools, low: float, high: float) -> bool:
    rows = (age >= low) & (age < high)
    return bool(rows.sum() >= _ENOUGH_ROWS and y[rows].sum() >= _ENOUGH_ROWS // 10)


def set_back(observed: Observed) -> Split | None:
    """Set the clock back far enough for validation, but not so far that no history is left; None where it cannot be done.

    Methods that rewind need a history of two windows in training too.
    """
    e, d = observed.elapsed, observed.delay
    if e is None or d is None:
        return None
    # The clock stands at the last arrival, or later.
    youngest, span = float(e.min()), float(e.max() - e.min())
    window = min(observed.window or span / 4.0, span / 2.0)
    least = np.clip(span - 2.0 * window, span / 12.0, max(window, span / 12.0))
    # Of a small log, a longer stretch to validate on.
    longer = (max(float(least), share * span) for share in (0.0, 1 / 6, 1 / 4, 1 / 3))
    after = next(
        (a for a in longer if _enough(e, observed.y, youngest + a / 2.0, youngest + a)), float(max(least, span / 3.0))
    )
    if step := grid_step(e):  # of a log stamped by the day, say, whose clock must not stand between two days
        after = max(round(after / step), 1) * step
    back = youngest + after
    if not 0.0 < back < youngest + span:
        return None
    then = replace(observed, window=back)
    train, known = then.mature, then.early
    valid = ~train & (e >= back - after / 2.0)
    if not observed.y.any() or not known[train].any() or known[train].all():
        return None
    seen = incidence(e, d, observed.horizon, weight=observed.weight).seen(e)
    valid &= seen >= LEAST_SEEN
    if valid.sum() < _FEWEST_ROWS or observed.y[valid].sum() < _FEWEST_POSITIVES:
        return None
    past = observe(
        known[train],
        then.rewound[train],
        np.where(known, d, np.nan)[train],
        observed.weight[train],
        None if observed.window is None else min(observed.window, (span - after) / 2.0),
        observed.horizon,
    )
    return Split(back, train, past, valid, observed.y[valid] / seen[valid], observed.weight[valid])


@dataclass(frozen=True)
class Choice:
    """The corrected validation loss of each l2, or of the model's own, and the best of them."""

    l2: float | None
    losses: dict[float | None, float]

    @property
    def loss(self) -> float:
        return min(self.losses.values())


def choose_l2(
    X: Any, observed: Observed, model: Model, methods: Mapping[str, Method], l2: Sequence[float] | None
) -> dict[str, Choice | str]:
    """For each method the l2 that would have served best, or why the method cannot be fitted in the past."""
    split = set_back(observed)
    if split is None:
        why = "too little history to set the clock back and validate"
        return dict.fromkeys(methods, why)
    encoded = model.encode(take_rows(X, split.train), split.observed.weight)
    later = model.transform(take_rows(X, split.valid))
    found: dict[str, Choice | str] = {}
    for name, method in methods.items():
        try:
            method.check(observed)  # the past may allow what the present does not
            with quietly():
                fits = fit_path(model, encoded, method, split.observed, l2)
        except ValueError as error:
            found[name] = str(error)
            continue
        losses = {fit.l2: split.loss(fit.predict(later)) for fit in fits}
        found[name] = choice = Choice(min(losses, key=losses.__getitem__), losses)
        logger.info("%s: with the clock set back by %.3g, the best l2 is %s", name, split.back, choice.l2)
    return found
