"""What says how much is still to come: a fitted classifier, or the chain ladder of spreadsheets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from belated.classifier import DelayedFeedbackClassifier
from belated.evaluation.fitting import value_of, with_setting
from belated.evaluation.seen_shares import SeenShares, seen_shares
from belated.evaluation.window import suggest_window
from belated.forecasting.open_rows import KnownRows
from belated.methods.base import Method
from belated.models import open_model
from belated.models.base import Model
from belated.models.linear import LinearModel
from belated.notices import quietly
from belated.typing import Bools, Floats

CHAIN_LADDER = "chain-ladder"
_TOL = 1e-5  # of linear models: ten times as fine moves sums by less than a thousandth
_LEAST = 0.05  # of positives seen, for a chain ladder

Come = Callable[[Any], Floats]


class Predictor(Protocol):
    """Learned from rows, with a method of its own."""

    def expected_so_far(self, rows: KnownRows) -> Floats:
        """The probability that each row has turned positive by its age."""
        ...

    def to_come(self, rows: KnownRows) -> Come:
        """Days from now to the positives (n,) that each row adds by then; 0 where it is positive already."""
        ...

    def from_arrival(self, rows: KnownRows) -> Come:
        """Of rows as if they were to arrive: ages (n,), negative ones before arrival, to the probability of having turned positive."""
        ...


@dataclass(frozen=True)
class ModelPredictor:
    """A classifier that was fitted on rows as they were known."""

    classifier: DelayedFeedbackClassifier

    def expected_so_far(self, rows: KnownRows) -> Floats:
        return self.classifier.curve(rows.snapshot.X)[1](rows.elapsed)

    def to_come(self, rows: KnownRows) -> Come:
        _, by = self.classifier.curve(rows.snapshot.X)
        now = by(rows.elapsed)

        def come(ahead: Any) -> Floats:
            p = np.clip((by(rows.elapsed + ahead) - now) / np.maximum(1.0 - now, 1e-300), 0.0, 1.0)
            return np.where(rows.y, 0.0, p)

        return come

    def from_arrival(self, rows: KnownRows) -> Come:
        _, by = self.classifier.curve(rows.snapshot.X)
        return lambda ages: np.where(ages >= 0, by(np.maximum(ages, 0.0)), 0.0)


@dataclass(frozen=True)
class ModelFamily:
    """How to fit classifiers for forecasts: a method and an engine whose setting is chosen once."""

    method: str | Method
    engine: Model | str

    def chosen(self, rows: KnownRows) -> ModelFamily:
        """The same with the setting that cross-validation on these rows chooses."""
        engine = self.engine
        if isinstance(engine, str):
            engine = open_model(engine)
            if isinstance(engine, LinearModel):
                engine.set_params(tol=_TOL)
        if engine.setting is None or value_of(engine) is not None:
            return ModelFamily(self.method, engine)
        with quietly():
            fitted = self._fit(rows, engine)
        return ModelFamily(
            fitted.method_ if self.method == "auto" else self.method, with_setting(engine, value_of(fitted.model_))
        )

    def fit(self, rows: KnownRows, keep: Bools | None = None) -> ModelPredictor:
        with quietly():
            return ModelPredictor(self._fit(rows if keep is None else rows.take(keep), self.engine))

    def _fit(self, rows: KnownRows, engine: Any) -> DelayedFeedbackClassifier:
        window = suggest_window(rows.snapshot, float(rows.elapsed.max() - rows.elapsed.min()))
        fitted = DelayedFeedbackClassifier(self.method, window, rows.horizon, engine).fit_snapshot(rows.snapshot)
        return fitted if fitted.delays_from == "features" else fitted.learn_delays(rows.snapshot)


@dataclass(frozen=True)
class ChainLadder:
    """The spreadsheet: positives by cohort of arrival and by age, and by which factor each age grows to the next.

    What a cohort has so far, times the factors that are left, is what it will have in the end, though no more than it has rows. Features play no part. Cohorts so young that less than a
    twentieth of their positives should have been seen get the average rate, as a careful user of spreadsheets would have it. What is to come is spread over the rows of
    its cohort by their ages.
    """

    shares: SeenShares  # the product of the factors that are left is 1 / F
    rate: float
    cohort: int  # its length in microseconds

    def expected_so_far(self, rows: KnownRows) -> Floats:
        return self.rate * self.shares.at(rows.elapsed)

    def to_come(self, rows: KnownRows) -> Come:
        _, cohort = np.unique(rows.arrival // self.cohort, return_inverse=True)
        now = self.shares.at(rows.elapsed)
        size, seen, so_far = (np.bincount(cohort, weights) for weights in (None, now, rows.y))
        factor = np.where(seen < _LEAST * size, self.rate, so_far / np.maximum(seen, _LEAST * size))
        factor = np.minimum(factor, (size - so_far) / np.maximum(size - seen, 1e-300))[cohort]
        return lambda ahead: factor * (self.shares.at(rows.elapsed + ahead) - now)

    def from_arrival(self, rows: KnownRows) -> Come:
        return lambda ages: np.where(ages >= 0, self.rate * self.shares.at(np.maximum(ages, 0.0)), 0.0)


@dataclass(frozen=True)
class ChainLadderFamily:
    cohort: int

    def chosen(self, rows: KnownRows) -> ChainLadderFamily:
        return self

    def fit(self, rows: KnownRows, keep: Bools | None = None) -> ChainLadder:
        keep = np.ones(len(rows.y), dtype=bool) if keep is None else keep
        positive = keep & rows.y
        shares = seen_shares(rows.snapshot.delay[positive], np.minimum(rows.elapsed[positive], rows.horizon))
        rate = float(positive.sum() / shares.at(rows.elapsed[keep]).sum())
        return ChainLadder(shares, min(rate, 1.0), self.cohort)


Family = ModelFamily | ChainLadderFamily
