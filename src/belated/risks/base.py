"""The interface between methods and models: a risk turns margins into a number to minimise.

A risk holds what a method knows about n rows. It maps margins of shape (n, m), one column for each function that a model
has to learn, and ``shared`` parameters of shape (s,) to a value with its gradient. That is all a model needs to know of a
method; a model adds its own regulariser. Weights are already divided by N or M, so a value is an average.

Arrays may come from NumPy or from torch (see :mod:`belated.arrays`); a risk returns what it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.arrays import at_least, moved, namespace
from belated.risks.links import Link
from belated.typing import Bools, Floats, Ints

EMPTY = np.zeros(0)
_STEP = 1e-5  # of the differences by which a curvature is estimated


@dataclass(frozen=True)
class Occurrences:
    """Rows that occur in one or several of ``count`` ordered groups (ages, say), where their margin depends on the group too.

    A model learns from the occurrences, of which there are E, and gives new rows a margin in each group: (n, count).
    """

    row: Ints  # (E,): which row
    group: Ints  # (E,): in which group
    levels: Floats  # (count,): what is added to the margin in each group
    increasing: bool  # whether the sum of both can only rise with the group
    risk: Any  # of the occurrences, with one margin: an OffsetRisk

    @property
    def count(self) -> int:
        return len(self.levels)


class Risk:
    """A value to minimise, and what a model may want to know about it before it chooses a solver.

    A subclass writes :meth:`value_and_gradient`, :meth:`start` and ``link``; everything else has a default.

    Attributes
    ----------
    n_margins, n_shared : int
        m and s.
    intercepts : sequence of bool of length m
        Which margins want an intercept; the others get their level from ``shared``.
    link : Link
        From margins and shared parameters to a probability.
    convex, smooth : bool
        Whether the value is convex in (margins, shared), and differentiable everywhere. A risk that is not smooth has
        smooth stand-ins, see :meth:`smoothed`.
    stiff : bool
        Whether the curvature may change by orders of magnitude within a fit, as that of hazards does.
    scale : float or None
        What a tolerance is relative to; None: the value.
    minibatch_only : bool
        Whether only training on mini-batches gives this risk its meaning.
    parts : sequence of Risk
        The problems of which this one is the sum, one for each margin, where they share nothing; else empty.
    non_negative : bool
        Whether it is J+ + max(J-, 0), which :meth:`relaxed` and :meth:`negative_part` take apart.
    logistic_weights : (a, b) or None
        Where a row costs a log(1 + exp(-g)) + b log(1 + exp(g)): solvers have short cuts for such rows.
    simple_margins : sequence of int
        Margins that need less freedom than the others: with two free functions of x, a row without an event is explained
        as well by a low rate as by a long delay.
    occurrences : Occurrences or None
        Where rows occur in ordered groups: the model then learns one margin of features and group together.
    """

    n_margins: int = 1
    n_shared: int = 0
    intercepts: Sequence[bool] = (True,)
    link: Link
    convex: bool = True
    smooth: bool = True
    stiff: bool = False
    scale: float | None = None
    minibatch_only: bool = False
    parts: Sequence[Risk] = ()
    non_negative: bool = False
    logistic_weights: tuple[Floats, Floats] | None = None
    simple_margins: Sequence[int] = ()
    occurrences: Occurrences | None = None

    @property
    def steep(self) -> bool:
        """Whether the gradient may be large where the curvature is next to nothing, so that steps must be kept short."""
        return self.stiff

    @property
    def has_dual(self) -> bool:
        """Whether dual coordinate ascent can minimise it."""
        return self.logistic_weights is not None and self.convex

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        """Value, gradient in the margins (n, m), gradient in the shared parameters (s,)."""
        raise NotImplementedError

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        """Second derivative of the value in each single margin, of shape (n, m); by default from differences.

        A row's cost depends on its own margins alone, so all rows can be moved at once.
        """
        xp = namespace(margins)
        columns = []
        for k in range(self.n_margins):
            move = xp.zeros_like(margins)
            move[:, k] = _STEP
            up, down = (self.value_and_gradient(margins + sign * move, shared)[1][:, k] for sign in (1.0, -1.0))
            columns.append((up - down) / (2.0 * _STEP))
        return xp.stack(columns, axis=1)

    def bounding_curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        """The same, but never negative: what an engine divides by that takes one step a round, as boosting does."""
        return at_least(self.curvature(margins, shared), 0.0)

    def shared_curvature(self) -> Floats | None:
        """An estimate of the second derivatives in the shared parameters (s, s), from which a solver takes its steps."""
        return None

    def penalty(self, shared: Any) -> tuple[float, Any]:
        """What the value holds that is about the shared parameters alone, and its gradient."""
        return 0.0, 0.0 * shared

    def kinds(self) -> Ints:
        """A kind of each row (n,), so that mini-batches can have some of every kind; -1 for rows that cost nothing."""
        raise NotImplementedError

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        """What each row adds to the value, of shape (n,): all of it but penalties on shared parameters."""
        raise NotImplementedError

    def left_out_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        """What rows cost that were not fitted, as far as that tells how good probabilities are; by default all of it."""
        return self.row_costs(margins, shared)

    def negative_part(self, margins: Any) -> float:
        """Of a risk with negative weights, J- = sum b l(-g), an estimate of something that cannot be negative; else 0."""
        return 0.0

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        """The same risk of some rows, their weights multiplied by ``factor``; the laws of delays stay as they are."""
        raise NotImplementedError

    def left_out(self, rows: Bools, fitted: Risk) -> Risk:
        """The same risk of rows that were not fitted, as ``fitted``, that of those which were, would have it."""
        return self.take(rows)

    def spread(self, rows: Bools) -> Risk | None:
        """The same risk where its rows are some of many, and the others cost nothing; None where that cannot be said."""
        return None

    def start(self) -> tuple[Floats, Floats]:
        """A first guess: a constant for each margin (m,), and the shared parameters (s,)."""
        raise NotImplementedError

    def smoothed(self, width: float) -> Risk:
        """A smooth stand-in that tends to this risk with ``width``; itself where it is smooth."""
        return self

    def relaxed(self, share: float) -> Risk:
        """Of a non-negative risk, J+ + share * J-."""
        raise NotImplementedError

    def moved(self, convert: Callable[[Floats], Any]) -> Risk:
        """The same risk with its arrays in another library or on a device."""
        return moved(self, convert)
