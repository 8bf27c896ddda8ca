"""Backtest: what each method would have predicted at past cut-offs, scored against labels that have matured since.

At each cut-off a method is fitted on the snapshot as it was known then, with l2 chosen by cross-validation within that
snapshot, and predicts the rows that arrived in the following period. Nothing later than a cut-off has any influence
on what is fitted there. The one exception is the oracle, which is BL with the final labels.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog
from belated.data.labels import check_labels
from belated.data.times import show_instant
from belated.evaluation.column_findings import check_columns
from belated.evaluation.cross_validation import L2_GRID, Choice, choose_l2
from belated.evaluation.cutoff_plan import plan_cutoffs
from belated.evaluation.fitting import fit_method
from belated.evaluation.progress import progress_file
from belated.evaluation.recommendation import Recommendation, recommend
from belated.evaluation.results import CutoffResult, ResultStore, Settings
from belated.evaluation.summary import summarise
from belated.evaluation.window import suggest_window
from belated.evaluation.workers import run_tasks
from belated.features.field_matrix import FieldMatrix
from belated.methods import METHODS, resolve_method
from belated.methods.base import Method
from belated.methods.biased import BL
from belated.models.base import Model
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.tables.frames import as_text, open_table, require
from belated.tables.refusal import counted
from belated.typing import Bools, Floats


@dataclass(frozen=True, repr=False)
class Backtest:
    """Results at all cut-offs; :meth:`summary` and :meth:`recommend` say what they mean."""

    log: EventLog
    settings: Settings
    cutoffs: list[CutoffResult]
    model: Model
    chosen: dict[str, Method]
    windows: dict[str, float]  # in days; a method whose window does not fit into the history has a shorter one

    def __repr__(self) -> str:
        first, last = self.cutoffs[0].as_of, self.cutoffs[-1].as_of
        tested = sum(len(cutoff.y) for cutoff in self.cutoffs)
        return (
            f"Backtest({len(self.methods)} methods at {len(self.cutoffs)} cut-offs from {first} to {last}, {tested} rows tested; "
            f"recommend() says which to use, summary() has all numbers)"
        )

    @property
    def methods(self) -> list[str]:
        """Those that could be fitted at every cut-off, the oracle last."""
        return [name for name in self.cutoffs[0].p if all(name in cutoff.p for cutoff in self.cutoffs)]

    @property
    def failed(self) -> dict[str, str]:
        """Why a method could not be fitted somewhere."""
        return {name: f"at {c.as_of}: {why}" for c in reversed(self.cutoffs) for name, why in c.failed.items()}

    @property
    def unsettled(self) -> dict[str, str]:
        """What was wrong with a fit that is scored all the same: it did not converge."""
        return {name: f"at {c.as_of}: {why}" for c in reversed(self.cutoffs) for name, why in c.unsettled.items()}

    @property
    def notes(self) -> list[str]:
        """What the table does not show: methods that were given another window than asked."""
        shorter: dict[float, list[str]] = {}
        for name, days in self.windows.items():
            if days < self.settings.window:
                shorter.setdefault(days, []).append(name)
        return [
            f"A window of {self.settings.window:.3g} days does not fit {', '.join(names)} into a history of {2 * days:.3g}: shown with "
            f"{days:.3g} days. For the longer window, take a lookback of {2 * self.settings.window:.3g} days or more."
            for days, names in shorter.items()
        ]

    def summary(self) -> dict[str, Any]:
        """Everything a person or a program may want to know, as plain data; the same that ``--json`` writes."""
        return summarise(self)

    def recommend(self) -> Recommendation:
        """The method, window and l2 to use now, how sure that is, and a sentence why."""
        return recommend(self)


def backtest(
    log: EventLog,
    *,
    horizon: Any,
    window: Any = None,
    methods: Sequence[str] | Mapping[str, Method] | None = None,
    cutoffs: int | Sequence[Any] = 6,
    lookback: Any = None,
    period: Any = None,
    l2: Sequence[float] = L2_GRID,
    group: str | None = None,
    model: Model | None = None,
    n_jobs: int | None = None,
    cache: str | Path | None = None,
    progress: bool = True,
    keep: Sequence[str] = (),
) -> Backtest:
    """Fit and score methods at past cut-offs.

    Parameters
    ----------
    log : EventLog
    horizon : duration
        A row is positive if its outcome comes within this long.
    window : duration, optional
        The age from which a label counts as final. By default the age by which 90% of the positives within the horizon
        have come, but at most half the lookback.
    methods : names, or a mapping of names to methods, optional
        By default all. BL and the oracle are always there.
    cutoffs : int or sequence of instants
        How many, spread evenly; or which.
    lookback : duration, optional
        How long before a cut-off training rows may have arrived. By default half of the time that can be used.
    period : duration, optional
        How long after a cut-off rows are predicted. By default until the next.
    l2 : sequence of float
        What to choose from, at each cut-off and for each method.
    group : str, optional
        A feature by which to break calibration down.
    model : Model, optional
        By default ``LinearModel(tol=1e-5)``: a finer tolerance changes no score that can be seen.
    n_jobs : int, optional
        Cut-offs at a time. By default one a core.
    cache : path, optional
        A folder for finished cut-offs. An interrupted backtest that is run again with the same arguments goes on there.
    keep : sequence of str
        Features to use though they seem to know the outcome (:mod:`belated.evaluation.leaks`); others that do are refused.
    """
    chosen = _methods(methods)
    if not len(l2):
        raise ValueError("l2 is empty: give at least one value, or leave it out.")
    limit = parse_duration(horizon, "horizon", log.clock)
    plan = plan_cutoffs(log, cutoffs, lookback, period, limit)
    _check_group(log, group)
    check_columns(log, limit, keep)
    if window is None:
        first = log.without_features().snapshot_at(plan.instants[0], plan.lookback, limit)
        days = suggest_window(first, plan.lookback / DAY)
    else:
        days = parse_duration(window, "window", log.clock) / DAY
    settings = Settings(
        horizon=limit / DAY,
        window=days,
        lookback=plan.lookback / DAY,
        period=plan.period / DAY,
        methods=tuple(chosen),
        l2=tuple(float(v) for v in l2),
        group=group,
    )
    # Find out what cannot be done before anything is fitted.
    tasks = [_Task.of(log.without_features(), instant, replace(settings, group=None)) for instant in plan.instants]
    windows = _windows(chosen, days, min(float(task.elapsed.max()) for task in tasks))
    logger.info("backtest: %s, cut-offs %s", settings, [show_instant(i, log.clock) for i in plan.instants])
    engine = LinearModel(tol=1e-5) if model is None else model
    store = ResultStore(cache, log, settings, engine, chosen)
    results = {i: found for i in plan.instants if (found := store.load(i)) is not None}
    missing = [i for i in plan.instants if i not in results]
    with closing(_run(log, missing, engine, chosen, windows, settings, n_jobs, progress)) as found_now:
        for instant, result in zip(missing, found_now, strict=True):
            results[instant] = result
            store.save(instant, result)
    return Backtest(log, settings, [results[i] for i in plan.instants], engine, chosen, windows)


def _windows(methods: dict[str, Method], days: float, history: float) -> dict[str, float]:
    """The window of each method: as asked where it leaves enough of the shortest history, else half of that history."""
    return {name: days if method.fits(days, history) else history / 2.0 for name, method in methods.items()}


def _run(
    log: EventLog,
    instants: list[int],
    model: Model,
    methods: dict[str, Method],
    windows: dict[str, float],
    settings: Settings,
    n_jobs: int | None,
    progress: bool,
) -> Generator[CutoffResult]:
    """The results at cut-offs, in their order, each as soon as it is there; several processes work on them."""
    total = len(instants) * (len(methods) + 1)
    with progress_file(total, f"Fitting at {counted(len(instants), 'cut-off')}", progress) as file:
        tasks = (
            (_Task.of(log, instant, settings), clone(model), methods, windows, settings, file) for instant in instants
        )
        yield from run_tasks(_run_cutoff, tasks, len(instants), n_jobs)


def _check_group(log: EventLog, group: str | None) -> None:
    if group is None:
        return
    if isinstance(log.frame, FieldMatrix):
        raise ValueError(f"group={group!r}: a log of hashed fields has no named columns.")
    require(open_table(log.frame, "the log"), [group], "the log")


def _methods(methods: Sequence[str] | Mapping[str, Method] | None) -> dict[str, Method]:
    if isinstance(methods, str):
        raise ValueError(f"methods={methods!r} must be a list of names, as in methods=[{methods!r}].")
    if methods is not None and not methods:
        raise ValueError("methods is empty: name at least one, or leave it out for all.")
    if methods is None:
        return {name: resolve_method(name) for name in METHODS}
    chosen = {name: resolve_method(methods[name] if isinstance(methods, Mapping) else name) for name in methods}
    if "oracle" in chosen:
        raise ValueError("oracle is always there and is no method that could be used: leave it out.")
    if not isinstance(chosen.get("bl", BL()), BL):
        raise ValueError("the name bl stands for BL, against which all are measured: give this method another.")
    return {"bl": BL(), **chosen}


@dataclass(frozen=True)
class _Task:
    """What a worker needs to know of the log."""

    as_of: str
    X: Any
    elapsed: Floats
    delay: Floats
    final: Bools
    test: Any
    test_y: Bools
    days: Floats
    group: NDArray[Any] | None

    @classmethod
    def of(cls, log: EventLog, as_of: int, settings: Settings) -> _Task:
        reach, step, limit = (round(d * DAY) for d in (settings.lookback, settings.period, settings.horizon))
        snap, final = log.snapshot_at(as_of, reach, limit), log.hindsight_at(as_of, reach, limit)
        for labels, when in ((snap.y, "known then"), (final.y, "known now")):
            if labels.all() or not labels.any():
                raise ValueError(
                    f"of the {len(snap)} rows that had arrived by {snap.as_of}, {'all' if labels.any() else 'none'} are positive by what is "
                    f"{when}. Move the cut-offs, or lengthen the lookback."
                )
        test = log.matured_after(as_of, step, limit)
        if settings.group is None:
            group = None
        else:
            group = np.array(as_text(nw.from_native(test.X, eager_only=True), settings.group).to_pylist())
        days = (test.as_of_micros - test.elapsed_micros - as_of) / DAY
        return cls(snap.as_of, snap.X, snap.elapsed, snap.delay, final.y == 1, test.X, test.y == 1, days, group)


def _run_cutoff(
    task: _Task,
    model: Model,
    methods: dict[str, Method],
    windows: dict[str, float],
    settings: Settings,
    progress: str,
) -> CutoffResult:
    y = ~np.isnan(task.delay)
    known = check_labels(y, task.elapsed, task.delay, None, settings.window, settings.horizon)
    labels = {name: replace(known, window=days) for name, days in windows.items()}
    methods = {**methods, "oracle": BL()}
    final = check_labels(task.final, task.elapsed, np.where(task.final, 0.0, np.nan))
    p: dict[str, Floats] = {}
    l2: dict[str, float | None] = {}
    failed: dict[str, str] = {}
    unsettled: dict[str, str] = {}
    with quietly():
        choices = choose_l2(task.X, {**labels, "oracle": final}, model, methods, settings.l2)
        encoded, later = model.encode(task.X, known.weight), model.transform(task.test)
        for name, method in methods.items():
            choice = choices[name]
            # Where the past is too short to choose, take the middle value on offer.
            value = choice.l2 if isinstance(choice, Choice) else sorted(settings.l2)[len(settings.l2) // 2]
            try:
                with quietly() as unheard:
                    fit = fit_method(model, encoded, method, labels.get(name, final), value)
                    found = fit.predict(later)
            except ValueError as error:
                if name in ("bl", "oracle"):
                    raise
                failed[name] = str(error)
            else:
                p[name], l2[name] = found, fit.l2
                stopped = [w.message for w in unheard if issubclass(w.category, ConvergenceWarning)]
                if stopped:
                    unsettled[name] = stopped[0]
            with open(progress, "ab") as file:
                file.write(b".")
    return CutoffResult(task.as_of, len(y), int(y.sum()), task.test_y, task.days, task.group, p, l2, failed, unsettled)
