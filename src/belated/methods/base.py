"""What a method is: one paper's way to turn observed labels into a risk."""

from __future__ import annotations

import warnings
from typing import ClassVar, Protocol

from sklearn.base import BaseEstimator

from belated.data.labels import Observed
from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints


class Learner(Protocol):
    """What a method may ask of the model while it builds its risk: to fit an auxiliary risk."""

    def __call__(self, risk: Risk, rows: Bools, groups: Ints, at: Ints) -> Floats:
        """Fit ``risk`` on the features of ``rows`` and their ordered ``groups``; return the margin (n,) of all rows as
        if their groups were ``at``."""
        ...


class Method(BaseEstimator):
    """One correction for late labels. A subclass says what it needs and returns a :class:`~belated.risks.base.Risk`."""

    needs_window: ClassVar[bool] = False
    needs_delay: ClassVar[bool] = False
    rewinds: ClassVar[bool] = False  # sets the clock back by the window, so the history must be twice as long
    means_nothing_without_times: ClassVar[bool] = False
    has_stages: ClassVar[bool] = False  # asks its learner for auxiliary fits

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        raise NotImplementedError

    def check(self, observed: Observed) -> None:
        """Refuse data that this method cannot use, before anything is fitted."""
        name = type(self).__name__
        if observed.elapsed is None:
            if self.means_nothing_without_times:
                raise ValueError(
                    f"{name} learns from delays: pass elapsed and delay, as in fit(X, y, elapsed=snap.elapsed, delay=snap.delay)."
                )
            return
        if self.needs_delay and observed.delay is None:
            raise ValueError(f"{name} needs the delay of each positive beside elapsed: pass delay=snap.delay to fit.")
        if not self.needs_window:
            return
        if observed.window is None:
            raise ValueError(
                f"{name} needs a window: the age from which a label counts as final. Set window= (in the unit of elapsed), or "
                f"horizon= to use the whole horizon. A shorter window keeps more recent rows, a longer one misses fewer late positives."
            )
        oldest = float(observed.elapsed.max())
        if not observed.mature_total > 0:
            raise ValueError(
                f"no mature rows: window={observed.window:g} but the oldest row is {oldest:g} old. Shorten the window or lengthen the lookback."
            )
        # The oldest row is rarely exactly as old as the history is long, hence the 2%.
        if self.rewinds and observed.window > 0.51 * oldest:
            raise ValueError(
                f"window={observed.window:g} is longer than half the history ({oldest:g}): {name} sets the clock back by one window and "
                f"learns from rows that were young then, so the history must be at least two windows long. Shorten the window or "
                f"lengthen the lookback."
            )


def require_mature_positives(observed: Observed, name: str) -> None:
    if not (observed.mature & observed.y).any():
        raise ValueError(
            f"{name} learns from mature positives, and there are none. Shorten the window or lengthen the lookback."
        )


def warn_if_nothing_late(observed: Observed, name: str) -> None:
    if observed.elapsed is not None and not observed.late.any():
        warnings.warn(
            f"no positive arrived during the last window ({observed.window:g}), so {name} has nothing to correct and equals BL.",
            UserWarning,
            stacklevel=4,
        )
