"""What a method is: one paper's way to turn labels as they stand into a risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from sklearn.base import BaseEstimator

from belated.data.labels import Labels
from belated.notices import warn
from belated.risks.base import Risk
from belated.risks.links import Link
from belated.risks.losses import Loss, resolve_loss
from belated.risks.weighted import WeightedRisk
from belated.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class Taught:
    """What a fitted method believes of all rows: margins (n, m), shared parameters (s,) and the link of both."""

    margins: Floats
    shared: Floats
    link: Link


class Learner(Protocol):
    """What a method may ask for while it builds its risk: to have something else fitted first."""

    def __call__(self, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        """Fit ``risk`` on the features of ``rows`` and their ordered ``groups``.

        Returns the margin (n,) of all rows as if their groups were ``new_groups``.
        """
        ...

    def teach(self, method: Method, labels: Labels, known: Bools | None = None, l2: float | None = None) -> Taught:
        """Fit another method on the rows in ``known``, with a linear model; l2=None is chosen by cross-validation."""
        ...


class Method(BaseEstimator):
    """One correction for late labels. A subclass says what it needs and returns a :class:`~belated.risks.base.Risk`.

    Without times every label is final, and a method that needs times is regularised logistic regression.

    Attributes
    ----------
    needs_window, needs_delay : bool
        What must be known of labels; checked, in words, before anything is fitted.
    rewinds : bool
        Whether it sets the clock back by the window, so that the history must be two windows long.
    has_auxiliary_fits, has_teacher : bool
        Whether it asks its ``learner`` for fits of other targets, or for a linear model of another method.
    has_groups, has_delay_law : bool
        Whether rows occur in groups of ages; whether its link knows how many positives are still to come.
    """

    needs_window: ClassVar[bool] = False
    needs_delay: ClassVar[bool] = False
    rewinds: ClassVar[bool] = False  # sets the clock back by the window, so the history must be twice as long
    has_auxiliary_fits: ClassVar[bool] = False  # asks the model to fit something else first
    has_groups: ClassVar[bool] = False  # its risk has rows that occur in groups
    has_teacher: ClassVar[bool] = False  # asks for a linear model of another method first
    has_delay_law: ClassVar[bool] = False  # its link knows how many positives are still to come, so it can teach

    @property
    def needs_times(self) -> bool:
        """Whether it corrects anything by ages or delays."""
        return self.needs_window or self.needs_delay

    def build_risk(self, labels: Labels, learner: Learner) -> Risk:
        """What to minimise, for these labels; where a method needs times and there are none, they count as they stand."""
        if labels.all_final and self.needs_times:
            loss = resolve_loss(getattr(self, "loss", "logistic"), False, type(self).__name__)
            return final_label_risk(labels, loss)
        return self.risk(labels, learner)

    def risk_of_others(self, labels: Labels, link: Link, learner: Learner) -> Risk:
        """The risk of rows that were not fitted; where delays follow a law, under the one that ``link`` learned."""
        return self.build_risk(labels, learner)

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        """What to minimise, for labels with the times that this method needs."""
        raise NotImplementedError

    def fits(self, window: float, history: float) -> bool:
        """Whether a window leaves this method enough of the history: the age of the oldest row."""
        if not self.needs_window:
            return True
        # The oldest row is rarely exactly as old as the history is long, hence the 2%.
        return window <= (0.51 if self.rewinds else 1.0) * history

    def check(self, labels: Labels) -> None:
        """Refuse data that this method cannot use, before anything is fitted."""
        name = type(self).__name__
        if labels.elapsed is None:
            return
        if self.needs_delay and labels.delay is None:
            raise ValueError(f"{name} needs the delay of each positive beside elapsed: pass delay=snap.delay to fit.")
        if not self.needs_window:
            return
        if labels.window is None:
            raise ValueError(
                f"{name} needs a window: the age from which a label counts as final. Set window= (in the unit of elapsed), or "
                f"horizon= to use the whole horizon. A shorter window keeps more recent rows, a longer one misses fewer late positives."
            )
        oldest = float(labels.elapsed.max())
        if not labels.mature_total > 0:
            raise ValueError(
                f"no mature rows: window={labels.window:g} but the oldest row is {oldest:g} old. Shorten the window or lengthen the lookback."
            )
        if self.rewinds and not self.fits(labels.window, oldest):
            raise ValueError(
                f"window={labels.window:g} is longer than half the history ({oldest:g}): {name} sets the clock back by one window and "
                f"learns from rows that were young then, so the history must be at least two windows long. Shorten the window or "
                f"lengthen the lookback."
            )


class _NoLearner:
    """The learner of methods that fit nothing else first."""

    def __call__(self, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        raise AssertionError("a method with auxiliary fits was given nothing to fit them with")

    def teach(self, method: Method, labels: Labels, known: Bools | None = None, l2: float | None = None) -> Taught:
        raise AssertionError("a method with a teacher was given nothing to fit it with")


no_learner = _NoLearner()


def final_label_risk(labels: Labels, loss: Loss | None = None) -> WeightedRisk:
    """The risk where labels count as they stand: a = y/N, b = (1-y)/N."""
    share = labels.weight / labels.total
    return WeightedRisk(share * labels.y, share * ~labels.y, loss)


def require_mature_positives(labels: Labels, name: str) -> None:
    if not (labels.mature & labels.y).any():
        raise ValueError(
            f"{name} learns from mature positives, and there are none. Shorten the window or lengthen the lookback."
        )


def warn_if_nothing_late(labels: Labels, name: str) -> None:
    if labels.elapsed is not None and not labels.late.any():
        warn(
            f"no positive arrived during the last window ({labels.window:g}), so {name} has nothing to correct and equals BL.",
            UserWarning,
            stacklevel=4,
        )
