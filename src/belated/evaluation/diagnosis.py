"""How late labels are, and whether the assumptions of the corrections hold: everything that can be said before fitting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog, require_log
from belated.data.snapshot import Snapshot
from belated.data.times import show_instant
from belated.evaluation.column_findings import ColumnFinding, examine_columns
from belated.evaluation.delay_curve import DelayCurve, delay_curve
from belated.evaluation.window import age_of_most
from belated.features.field_matrix import FieldMatrix
from belated.methods import METHODS, resolve_method
from belated.methods.delayed_feedback import correction_matters_below
from belated.tables.frames import as_text, decoded, is_text, open_table, require, to_arrow
from belated.tables.refusal import counted
from belated.typing import Bools, Floats

_SHARES = (0.5, 0.8, 0.9, 0.95, 0.99)
_LEVEL = 0.01  # a p-value below this counts as a change
_MATTERS = 0.05  # smaller changes of the rate (relative) or of the delay curve (distance) do not matter
_MOST_VALUES = 20
_KNOWS = " seems to know the outcome"
_FEWEST = 200  # rows that a value needs in each half to be tested
_FEWEST_POSITIVE = 50  # positives of a value, from which on it has a delay of its own


@dataclass(frozen=True)
class Change:
    """Early against recent arrivals, both watched to the same age: has the rate changed, or when positives come?"""

    rows: tuple[int, int]
    rate: tuple[float, float]
    rate_p: float
    median_delay: tuple[float | None, float | None]
    delay_distance: float | None  # Kolmogorov and Smirnov's
    delay_p: float | None

    @property
    def rate_changed(self) -> bool:
        early, recent = self.rate
        return bool(self.rate_p < _LEVEL and abs(recent - early) > _MATTERS * max(early, 1e-300))

    @property
    def delay_changed(self) -> bool:
        return bool(self.delay_p is not None and self.delay_p < _LEVEL and (self.delay_distance or 0.0) > _MATTERS)


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`diagnose` found; ``summary()`` gives it as plain data.

    Examples
    --------
    >>> from belated import diagnose
    >>> from belated.datasets import example_log
    >>> round(diagnose(example_log(), horizon="7d").summary()["window"], 1)
    4.9
    """

    as_of: str
    rows: int
    positive: int
    horizon: float | None
    curve: DelayCurve
    days: list[dict[str, Any]]
    windows: list[dict[str, float]]
    window: float
    after_window: tuple[float, float, float]
    watched_to: float
    change: Change | None
    changes: dict[str, Change]
    unseen: dict[str, float]
    group: str | None
    half_times: dict[str, float]  # of values of the group with enough positives: the age by which half have come
    history: float
    columns: list[ColumnFinding]
    correction_below: (
        float | None
    )  # the mean loss of negatives, relative to the largest, below which NnDF's correction may bias a fit

    def limits(self) -> list[str]:
        """What the horizon, the window and the history make impossible, and the nearest that would work."""
        found = []
        if self.horizon is not None and self.history <= self.horizon:
            found.append(
                f"The history of {self.history:.3g} days is no longer than the horizon of {self.horizon:.3g}: no label is final, so nothing can "
                f"be compared. A horizon of {self.history / 2:.2g} days, or a log of {2 * self.horizon:.3g}, would leave room."
            )
        refused = [name for name in METHODS if not resolve_method(name).fits(self.window, self.history)]
        if refused:
            found.append(
                f"A window of {self.window:.3g} days is more than half the history of {self.history:.3g}, and {', '.join(refused)} need two "
                f"windows of history: the longest that fits is {self.history / 2:.3g} days, or take a lookback of {2 * self.window:.3g}."
            )
        return found

    def findings(self) -> list[str]:
        """One sentence for each thing worth knowing."""
        half, ninety = self.curve.age_of(0.5), self.curve.age_of(0.9)
        within = "" if self.horizon is None else f" within {self.horizon:g} days"
        found = [
            f"Half of all positives{within} come within {half:.3g} days, 90% within {ninety:.3g}.",
            f"A window of {self.window:.3g} days misses {self.after_window[0]:.0%} of them (95% interval "
            f"{self.after_window[1]:.0%} to {self.after_window[2]:.0%}).",
        ]
        if self.change is not None:
            early, recent = self.change.rate
            found.append(
                f"By the age of {self.watched_to:.3g} days, {early:.2%} of the earlier and {recent:.2%} of the later arrivals are "
                f"positive: the rate {'has changed' if self.change.rate_changed else 'has not clearly changed'}."
            )
            a, b = self.change.median_delay
            if a is not None and b is not None:
                found.append(
                    f"Of the positives by then, half come within {a:.3g} days among the earlier and {b:.3g} among the later arrivals: "
                    f"delays {'have changed' if self.change.delay_changed else 'have not clearly changed'}."
                )
        if len(self.half_times) > 1:
            soon, late = (
                min(self.half_times, key=self.half_times.__getitem__),
                max(self.half_times, key=self.half_times.__getitem__),
            )
            found.append(
                f"Of the values of {self.group}, {soon} has its positives soonest, half within {self.half_times[soon]:.3g} days, and {late} latest, half within {self.half_times[late]:.3g}."
            )
        changed = [name for name, c in self.changes.items() if c.rate_changed or c.delay_changed]
        if self.group is not None:
            found.append(
                f"Of {counted(len(self.changes), 'value')} of {self.group} with enough rows, {len(changed)} {'has' if len(changed) == 1 else 'have'} changed in rate or delay"
                + (f": {', '.join(changed[:5])}." if changed else ".")
            )
        if self.correction_below is not None and self.correction_below >= _MATTERS / 10:
            found.append(
                f"NnDF keeps the risk of negatives from falling below 0. With so many rows that biases a fit with a probability of more than 5% only "
                f"where the fit brings their mean loss below {self.correction_below:.2g} of the largest (Lemma 1 of Yasui and Kato 2022)."
            )
        for name, share in self.unseen.items():
            if share >= 0.01:
                found.append(
                    f"{share:.0%} of the rows younger than the window have a value of {name} that no older row has."
                )
        return [
            *found,
            *self.limits(),
            *(f"Column {one.column}{_KNOWS * (one.kind == 'leak')}: {one.text}" for one in self.columns),
        ]

    def summary(self) -> dict[str, Any]:
        """Plain data, as ``--json`` writes it."""

        def change(c: Change) -> dict[str, Any]:
            return {**asdict(c), "rate_changed": c.rate_changed, "delay_changed": c.delay_changed}

        return {
            "as_of": self.as_of,
            "rows": self.rows,
            "positive": self.positive,
            "horizon": self.horizon,
            "window": self.window,
            "after_window": dict(zip(("share", "low", "high"), self.after_window, strict=True)),
            "windows": self.windows,
            "curve": {name: values.tolist() for name, values in asdict(self.curve).items() if name != "steps"},
            "days": self.days,
            "watched_to": self.watched_to,
            "change": None if self.change is None else change(self.change),
            "group": self.group,
            "half_times": self.half_times,
            "changes": {name: change(c) for name, c in self.changes.items()},
            "unseen": self.unseen,
            "history": self.history,
            "correction_below": self.correction_below,
            "columns": [asdict(one) for one in self.columns],
            "findings": self.findings(),
        }


def diagnose(
    log: EventLog, *, horizon: Any = None, window: Any = None, lookback: Any = None, group: str | None = None
) -> Diagnosis:
    """Diagnose a log as it is known at its end.

    Parameters
    ----------
    log : EventLog
    horizon : duration, optional
        Outcomes later than this after arrival count as negative. By default there is no limit.
    lookback : duration, optional
        Only rows that arrived at most this long before the last one. By default all.
    window : duration, optional
        By default the shortest that misses at most 10% of the positives.
    group : str, optional
        A feature whose values are tested one by one for changes, with p-values corrected for their number (Holm).

    Examples
    --------
    >>> from belated import diagnose
    >>> from belated.datasets import example_log
    >>> found = diagnose(example_log(), horizon="7d")
    >>> for sentence in found.summary()["findings"][:2]:
    ...     print(sentence)
    Half of all positives within 7 days come within 0.433 days, 90% within 4.91.
    A window of 4.91 days misses 10% of them (95% interval 8% to 12%).
    """
    require_log(log, "diagnose")
    if log.on_cluster:
        raise ValueError("a diagnosis wants its rows here: diagnose(log.sample(0.1).collect(), ...), say.")
    limit = None if horizon is None else parse_duration(horizon, "horizon", log.clock)
    reach = None if lookback is None else parse_duration(lookback, "lookback", log.clock)
    snap = log.latest(reach, limit)
    if not snap.y.any():
        raise ValueError(
            f"{'the only row is not' if len(snap) == 1 else f'none of the {len(snap)} rows is'} positive, so there is nothing to say about delays."
        )
    elapsed, delay = snap.elapsed, snap.delay
    curve = delay_curve(elapsed, delay, snap.horizon)
    days = age_of_most(curve) if window is None else parse_duration(window, "window", log.clock) / DAY
    # Both halves can be compared only up to the age that the later half has reached.
    middle = float(np.median(elapsed))
    watched_to = min(middle, snap.horizon or np.inf, days)
    usable, recent = elapsed >= watched_to, elapsed < (float(elapsed.max()) + watched_to) / 2.0
    at = np.searchsorted(curve.ages, days * (1 + 1e-12), side="right") - 1
    after = tuple(float(1.0 - v[at]) if at >= 0 else 1.0 for v in (curve.share, curve.share_high, curve.share_low))
    return Diagnosis(
        as_of=snap.as_of,
        rows=len(snap),
        positive=int(snap.y.sum()),
        horizon=snap.horizon,
        curve=curve,
        days=_by_day(snap, curve),
        windows=[_window(share, curve) for share in _SHARES],
        window=days,
        after_window=after,  # type: ignore[arg-type]
        watched_to=watched_to,
        change=_change(delay, usable & ~recent, usable & recent, watched_to),
        changes={} if group is None else _changes(snap, group, usable, recent, watched_to),
        unseen=_unseen(snap, days),
        group=group,
        half_times={} if group is None else _half_times(snap, group),
        history=float(elapsed.max()),
        columns=examine_columns(log, limit),
        correction_below=_correction_below(len(elapsed), int((elapsed >= days).sum())),
    )


def _correction_below(rows: int, mature: int) -> float | None:
    return min(correction_matters_below(rows, mature), 1.0) if mature else None


def _window(share: float, curve: DelayCurve) -> dict[str, float]:
    days = curve.age_of(share)
    return {"days": days, "positives_lost": float(1.0 - curve.seen(np.array(days)))}


def _by_day(snap: Snapshot, curve: DelayCurve) -> list[dict[str, Any]]:
    """For each day of arrival: rows, the rate so far, the share of positives seen by now, and the rate to expect."""
    arrival = snap.as_of_micros - snap.elapsed_micros
    day, code = np.unique(arrival // DAY, return_inverse=True)
    rows, positives = np.bincount(code), np.bincount(code, snap.y)
    seen = np.bincount(code, curve.seen(snap.elapsed)) / rows
    return [
        {
            "day": show_instant(int(d) * DAY, snap.clock)[:10] if snap.clock != "seconds" else f"day {int(d)}",
            "rows": int(n),
            "rate_so_far": float(k / n),
            "positives_seen": float(s),
            "rate_expected": float(k / n / s) if s > 0.05 else None,
        }
        for d, n, k, s in zip(day, rows, positives, seen, strict=True)
    ]


def _change(delay: Floats, early: Bools, recent: Bools, watched_to: float) -> Change | None:
    halves = [delay[early], delay[recent]]
    if min(len(half) for half in halves) < 2:
        return None
    known = [half[half <= watched_to * (1 + 1e-12)] for half in halves]
    n, k = np.array([len(half) for half in halves]), np.array([len(half) for half in known])
    rate_p = float(stats.chi2_contingency([k, n - k]).pvalue) if 0 < k.sum() < n.sum() else 1.0
    distance, delay_p = None, None
    if k.min() >= 2:
        test = stats.ks_2samp(*known, method="asymp")
        distance, delay_p = float(test.statistic), float(test.pvalue)
    medians = [float(np.median(half)) if len(half) else None for half in known]
    return Change(
        (int(n[0]), int(n[1])),
        (float(k[0] / n[0]), float(k[1] / n[1])),
        rate_p,
        (medians[0], medians[1]),
        distance,
        delay_p,
    )


def _values(snap: Snapshot, group: str) -> Iterator[tuple[str, Bools]]:
    """The values of a group and which rows have each, the most frequent first."""
    if isinstance(snap.X, FieldMatrix):
        raise ValueError(f"group={group!r}: a log of hashed fields has no named columns.")
    table = open_table(snap.X, "the log")
    require(table, [group], "the log")
    code = as_text(table, group).dictionary_encode()
    names, code = code.dictionary.to_pylist(), np.asarray(code.indices)
    for k in np.argsort(-np.bincount(code), kind="stable")[:_MOST_VALUES]:
        yield str(names[k]), code == k


def _half_times(snap: Snapshot, group: str) -> dict[str, float]:
    """For each value with enough positives, the age by which half of them come."""
    enough = [(name, mine) for name, mine in _values(snap, group) if snap.y[mine].sum() >= _FEWEST_POSITIVE]
    return {name: delay_curve(snap.elapsed[mine], snap.delay[mine], snap.horizon).age_of(0.5) for name, mine in enough}


def _changes(snap: Snapshot, group: str, usable: Bools, recent: Bools, watched_to: float) -> dict[str, Change]:
    found = {}
    for name, mine in _values(snap, group):
        halves = usable & ~recent & mine, usable & recent & mine
        change = _change(snap.delay, *halves, watched_to)
        if change is not None and min(change.rows) >= _FEWEST:
            found[name] = change
    p = [value for c in found.values() for value in (c.rate_p, 1.0 if c.delay_p is None else c.delay_p)]
    corrected = iter(_holm(np.array(p)))
    return {
        name: Change(c.rows, c.rate, next(corrected), c.median_delay, c.delay_distance, next(corrected))
        for name, c in found.items()
    }


def _holm(p: Floats) -> list[float]:
    order = np.argsort(p)
    raised = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    out = np.empty(len(p))
    out[order] = np.minimum(raised, 1.0)
    return out.tolist()


def _unseen(snap: Snapshot, window: float) -> dict[str, float]:
    """For each feature of categories: the share of rows younger than the window whose value no older row has."""
    if isinstance(snap.X, FieldMatrix) or not nw.dependencies.is_into_dataframe(snap.X):
        return {}
    young = snap.elapsed < window
    if not young.any() or young.all():
        return {}
    table, shares = open_table(snap.X, "the log"), {}
    for name in table.columns:
        values = decoded(to_arrow(table, name))
        if is_text(values.type):
            known = pc.is_in(values.filter(pa.array(young)), value_set=values.filter(pa.array(~young)))
            shares[name] = float(1.0 - np.mean(known.to_numpy(zero_copy_only=False)))
    return shares
