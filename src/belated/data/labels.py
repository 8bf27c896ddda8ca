"""Labels: the labels of a snapshot, their times, and everything a window says about them.

With elapsed time e, delay d, label y and window w (the paper's tau):

=========== ============================================ ===================================
name        definition                                   meaning
=========== ============================================ ===================================
mature      e >= w                                       old enough for its label to be final
rewound_age e - w                                        age when the clock is set back by w
early       y and d <= e - w                             was positive already back then
late        mature and y and not early                   turned positive during the last w
=========== ============================================ ===================================
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from belated.cluster.sharded import Sharded, by_rows
from belated.data.durations import parse_age
from belated.tables.refusal import counted, refuse
from belated.typing import Bools, Floats


@dataclass(frozen=True)
class Labels:
    """Labels and times of n samples, all arrays of shape (n,). Make one with :func:`check_labels`, which checks them.

    ``elapsed`` and ``delay`` are None where the caller gave none: every label then counts as final.

    Attributes
    ----------
    y : array of bool
        Positive by now, and within the horizon.
    weight : array
        Sample weights; ``total`` is their sum, and ``mature_total`` that of mature rows.
    elapsed, delay : array or None
        Age now; delay where positive, else NaN.
    window, horizon : float or None
    mature, early, late : array of bool
        At least a window old; of these, positive a window ago already; positive now and not then.
    rewound_age : array
        The age a window ago; meaningful for mature rows.
    """

    y: Bools
    weight: Floats
    elapsed: Floats | None = None
    delay: Floats | None = None
    window: float | None = None
    horizon: float | None = None

    def take(self, rows: Bools) -> Labels:
        """The same of some rows."""
        elapsed = None if self.elapsed is None else self.elapsed[rows]
        delay = None if self.delay is None else self.delay[rows]
        return replace(self, y=self.y[rows], weight=self.weight[rows], elapsed=elapsed, delay=delay)

    @property
    def all_final(self) -> bool:
        """Whether every label counts as final, because no times were given."""
        return self.elapsed is None

    @cached_property
    def total(self) -> float:
        """N, the total weight."""
        return float(self.weight.sum())

    @cached_property
    def effective_rows(self) -> float:
        """How many rows of equal weight say as much as these: (sum w)^2 / sum w^2, whatever the scale of the weights."""
        share = self.weight / self.weight.max()
        return float(share.sum() ** 2 / (share**2).sum())

    @cached_property
    def mature(self) -> Bools:
        if self.elapsed is None or self.window is None:
            return np.ones_like(self.y, dtype=bool)
        return self.elapsed >= self.window - self.tie_width

    @cached_property
    def mature_total(self) -> float:
        """M, the total weight of mature rows."""
        return float(self.weight[self.mature].sum())

    @cached_property
    def rewound_age(self) -> Floats:
        """Age at the rewound time; meaningful for mature rows."""
        assert self.elapsed is not None and self.window is not None
        return np.maximum(self.elapsed - self.window, 0.0)

    @cached_property
    def early(self) -> Bools:
        if self.delay is None:
            return self.y
        return self.y & self.mature & (np.where(self.y, self.delay, np.inf) <= self.rewound_age + self.tie_width)

    @cached_property
    def late(self) -> Bools:
        if self.delay is None:
            return np.zeros_like(self.y, dtype=bool)
        return self.y & self.mature & ~self.early

    @cached_property
    def tie_width(self) -> float:
        """Times closer than this are equal, so that ties survive a change of unit."""
        return 0.0 if self.elapsed is None else 1e-12 * float(self.elapsed.max())


def check_labels(
    y: Bools,
    elapsed: Any = None,
    delay: Any = None,
    sample_weight: Floats | None = None,
    window: float | None = None,
    horizon: float | None = None,
    positive: Any = 1,
) -> Labels:
    """Check labels and times as they enter, and hold them together; ``positive`` is the label where ``y``."""
    weight = np.ones_like(y, dtype=np.float64) if sample_weight is None else sample_weight
    window, horizon = parse_age(window, "window"), parse_age(horizon, "horizon")
    if window is not None and horizon is not None and horizon < window:
        raise ValueError(
            f"horizon={horizon:g} is shorter than window={window:g}: nothing arrives after the horizon, so the window can be no longer."
        )
    if elapsed is None and delay is not None:
        raise ValueError(
            "delay was given without elapsed. Pass both, as in fit(X, y, elapsed=snap.elapsed, delay=snap.delay)."
        )
    if elapsed is None:
        return Labels(y, weight, window=None, horizon=horizon)
    if isinstance(elapsed, Sharded):  # of a log, which was checked when it was read
        ones = np.ones_like(elapsed) if sample_weight is None else sample_weight
        far: Any = elapsed
        return Labels(y, ones, far, delay, window if window is not None else horizon, horizon)
    elapsed = read_ages(elapsed, len(y))
    labels = Labels(y, weight, elapsed, None, window if window is not None else horizon, horizon)
    if delay is None:
        return labels
    delay = _column(delay, "delay", len(y))
    _check_delays(delay, labels, positive)
    return replace(labels, delay=delay)


def weights_on_cluster(weight: Any, y: Sharded) -> Any:
    """Sample weights of rows on a cluster, checked there."""
    if not isinstance(weight, Sharded) or weight.cluster is not y.cluster:
        raise ValueError(
            "sample_weight of rows on a cluster must be an array of the same snapshot: snap.X['column'], or np.exp(-snap.elapsed / 30), say."
        )
    weight = by_rows(_weights, weight, y).kept()
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    count = int(wrong.sum())
    if count:
        raise ValueError(
            f"sample_weight: {counted(count, 'row')} not finite or negative, one of them {weight[wrong][0]:g}. Leave these rows out, or give them weight 0."
        )
    return weight


def _weights(weight: Any, y: Any) -> Floats:
    """Of a partition."""
    if np.shape(weight) != np.shape(y):
        raise ValueError(
            f"sample_weight has the shape {np.shape(weight)} where there are {len(y)} rows: take it from the same snapshot."
        )
    return np.asarray(weight, dtype=np.float64)


def read_ages(elapsed: Any, n: int, name: str = "elapsed") -> Floats:
    """The age of each of n rows, checked."""
    if np.asarray(elapsed).dtype.kind == "b":
        raise ValueError(f"column {name!r} must hold numbers or durations, got truth values.")
    elapsed = _column(elapsed, name, n)
    refuse(~np.isfinite(elapsed), name, "{count} not finite", elapsed, "Every row needs the time since its arrival.")
    refuse(elapsed < 0, name, "{count} negative", elapsed, "Drop rows that had not arrived yet.")
    return elapsed


def plain_labels(y: Any) -> Any:
    """Labels as an array of NumPy; with NaN for what nullable types, and merges, leave behind."""
    y = column_or_1d(np.asarray(y), warn=True)
    if y.dtype.kind != "O":
        return y
    return np.array([np.nan if type(value).__name__ in ("NAType", "NoneType") else value for value in y])


def read_positives(y: Any, classes: Any) -> Bools:
    """Which labels are of the positive class; what is of neither is refused."""
    y = plain_labels(y)
    neither = " nor ".join(f"{one}" for one in classes).replace("{", "{{").replace("}", "}}")
    advice = "Give labels as they were given to fit, and leave out rows whose label is not known."
    refuse(~np.isin(y, classes), "y", f"{{count}} neither {neither}", y, advice)
    found: Bools = y == classes[-1]
    return found


def _check_delays(delay: Floats, labels: Labels, positive: Any) -> None:
    """Refuse delays that cannot be, or that do not agree with the labels and ages."""
    assert labels.elapsed is not None
    y, elapsed, horizon, slack = labels.y, labels.elapsed, labels.horizon, labels.tie_width
    known = ~np.isnan(delay)
    later = "Such a positive was not known yet: set y to 0 and the delay to NaN."
    beyond = "Positives past the horizon count as negatives: set y to 0 and the delay to NaN."
    before = "A positive cannot come before its arrival; correct or drop these rows."
    absent = "Give the delay of every positive, or set y to 0."
    refuse(np.isinf(delay), "delay", "{count} infinite", delay, "Use NaN where no positive has been seen.")
    refuse(delay < 0, "delay", "{count} negative", delay, before)
    refuse(y & ~known, "delay", f"{{count}} missing although y is {positive}", delay, absent)
    refuse(
        ~y & known,
        "delay",
        f"{{count}} known although y is not {positive}",
        delay,
        "Use NaN there, or change the label.",
    )
    refuse(delay > elapsed + slack, "delay", "{count} larger than the elapsed time", delay, later)
    if horizon is not None:
        refuse(delay > horizon + slack, "delay", "{count} larger than the horizon", delay, beyond)


def _number(value: Any) -> float | None:
    """A float, NaN where the value is missing, None where it is something else."""
    if value is None or type(value).__name__ == "NAType":
        return np.nan
    with suppress(TypeError, ValueError):
        return float(value)
    return None


def _column(values: Any, name: str, n: int) -> Floats:
    """Numbers as they are, durations as days."""
    array = np.asarray(values)
    if array.dtype == object and any(isinstance(value, timedelta) for value in array.ravel()):
        array = np.array(
            [np.timedelta64("NaT") if v is None or v != v else np.timedelta64(v, "us") for v in array.ravel()]
        )
    if array.dtype.kind == "m":
        array = np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "D"))
    if array.dtype.kind in "OU" and array.ndim == 1:
        numbers = [_number(value) for value in array]
        strange = np.array([number is None for number in numbers], dtype=bool)
        refuse(strange, name, "{count} neither a number nor a duration", array, "Give numbers of days, say.")
        array = np.array(numbers, dtype=np.float64)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"column {name!r} must hold numbers or durations, got {array.dtype}.")
    if array.shape != (n,):
        raise ValueError(f"column {name!r} has shape {array.shape}, but there are {n} rows.")
    return array.astype(np.float64)
