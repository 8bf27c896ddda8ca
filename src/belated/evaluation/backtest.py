"""Backtest: what each method would have predicted at past cut-offs, scored against labels that have matured since.

At each cut-off a method is fitted on the snapshot as it was known then, with l2 chosen by setting the clock back within
that snapshot, and predicts the rows that arrived in the following period. Nothing later than a cut-off has any influence
on what is fitted there, with one exception that has it by name: the oracle, which is BL with the final labels.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import narwhals as nw
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from sklearn.base import clone

from belated.data.event_log import EventLog
from belated.data.labels import observe
from belated.data.times import DAY, parse_duration, parse_instant, show_instant
from belated.evaluation.delay_curve import incidence
from belated.evaluation.results import CutoffResult, Settings, Store
from belated.evaluation.validation import L2_GRID, Choice, choose_l2, fit_path, quietly
from belated.features.fields import FieldMatrix
from belated.methods import BL, METHODS, Method, resolve_method
from belated.models import LinearModel, Model
from belated.tables.frames import as_text, open_table, require
from belated.typing import Bools, Floats

logger = logging.getLogger("belated")


_SEEN_BY_WINDOW = 0.9  # of the positives within the horizon


@dataclass(frozen=True)
class Backtest:
    """Results at all cut-offs; :mod:`belated.evaluation.recommendation` turns them into tables, intervals and a recommendation."""

    log: EventLog
    settings: Settings
    cutoffs: list[CutoffResult]
    model: Model
    chosen: dict[str, Method]

    @property
    def methods(self) -> list[str]:
        """Those that could be fitted at every cut-off, the oracle last."""
        return [name for name in self.cutoffs[0].p if all(name in cutoff.p for cutoff in self.cutoffs)]

    @property
    def failed(self) -> dict[str, str]:
        """Why a method could not be fitted somewhere."""
        return {name: f"at {c.as_of}: {why}" for c in reversed(self.cutoffs) for name, why in c.failed.items()}

    def summary(self) -> dict[str, Any]:
        """Everything a person or a program may want to know, as plain data; the same that ``--json`` writes."""
        from belated.evaluation.recommendation import summarise

        return summarise(self)

    def recommend(self) -> Any:
        """The method, window and l2 to use now, how sure that is, and a sentence why."""
        from belated.evaluation.recommendation import recommend

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
    seed: int = 0,
    progress: bool = True,
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
        By default ``LinearModel()``.
    n_jobs : int, optional
        Cut-offs at a time. By default one a core.
    cache : path, optional
        A folder for finished cut-offs. An interrupted backtest that is run again with the same arguments goes on there.
    """
    chosen = _methods(methods)
    limit = parse_duration(horizon, "horizon", log.clock)
    reach, step, instants = _plan(log, cutoffs, lookback, period, limit)
    if group is not None:
        if isinstance(log.frame, FieldMatrix):
            raise ValueError(f"group={group!r}: a log of hashed fields has no named columns.")
        require(open_table(log.frame, "the log"), [group], "the log")
    if window is None:
        days = suggest_window(log, instants[0], reach, limit)
    else:
        days = parse_duration(window, "window", log.clock) / DAY
    settings = Settings(
        limit / DAY, days, reach / DAY, step / DAY, tuple(chosen), tuple(float(v) for v in l2), group, seed
    )
    engine = LinearModel() if model is None else model
    for instant in instants:
        _Task.of(log.bare(), instant, replace(settings, group=None))  # complains, if at all, before anything is fitted
    logger.info("backtest: %s, cut-offs %s", settings, [show_instant(i, log.clock) for i in instants])
    jobs = min(joblib.effective_n_jobs(n_jobs or -1), len(instants))
    store = Store(cache, log, settings, engine, chosen)
    results: dict[int, CutoffResult] = {i: found for i in instants if (found := store.load(i)) is not None}
    missing = [i for i in instants if i not in results]
    total = len(missing) * (len(chosen) + 1)
    with _progress_file(total, f"Fitting at {len(missing)} cut-offs", progress) as file:
        tasks = (
            delayed(_at)(_Task.of(log, instant, settings), clone(engine), chosen, settings, file) for instant in missing
        )
        # With one task waiting for each worker, snapshots are made when they are needed and not all at once.
        run = Parallel(n_jobs=jobs, pre_dispatch=jobs, return_as="generator")
        for instant, result in zip(missing, run(tasks), strict=True):
            results[instant] = result
            store.save(instant, result)
    return Backtest(log, settings, [results[i] for i in instants], engine, chosen)


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


def _plan(log: EventLog, cutoffs: Any, lookback: Any, period: Any, horizon: int) -> tuple[int, int, list[int]]:
    """Lookback, period and cut-offs in microseconds, checked against the log."""
    first, last = log.first, min(log.until - horizon, log.last)
    usable = last - first
    if usable <= 0:
        raise ValueError(
            f"the log runs from {show_instant(first, log.clock)} to {show_instant(log.until, log.clock)}, which is no longer than "
            f"the horizon ({horizon / DAY:g} days): no label is final yet. Take a shorter horizon or a longer log."
        )
    reach = usable // 2 if lookback is None else parse_duration(lookback, "lookback", log.clock)
    if isinstance(cutoffs, int):
        if cutoffs < 1:
            raise ValueError(f"cutoffs={cutoffs!r} must be at least 1.")
        if usable - reach <= 0:
            raise ValueError(
                f"a lookback of {reach / DAY:g} days and a horizon of {horizon / DAY:g} leave nothing to test on in a log of "
                f"{(log.until - first) / DAY:g} days. Shorten one of them."
            )
        # Between two days of a log stamped by the day, the clock must not stand.
        grid, start = log.grid, first + reach // log.grid * log.grid
        if period is None:
            step = max((last - start) // cutoffs // grid, 1) * grid
        else:
            step = parse_duration(period, "period", log.clock)
        room = (last - start) // step
        if room < cutoffs:
            raise ValueError(
                f"after a lookback of {reach / DAY:g} days and before the last horizon there are {(last - start) / DAY:g} days, which is room "
                f"for {room} periods of {step / DAY:g} days that do not overlap, and cutoffs={cutoffs}. Take fewer or shorter ones."
            )
        gap = step if period is None else (last - step - start) // max(cutoffs - 1, 1) // grid * grid
        return reach, step, [start + k * gap for k in range(cutoffs)]
    instants = sorted({parse_instant(value, "cutoffs", log.clock) for value in cutoffs})
    if not instants:
        raise ValueError("cutoffs is empty.")
    if instants[0] < first or instants[-1] >= last:
        raise ValueError(
            f"cut-offs must lie between {show_instant(first, log.clock)}, where the log begins, and "
            f"{show_instant(last, log.clock)}, one horizon before it ends or at its last arrival."
        )
    gaps = np.diff(instants)
    step = (
        (int(gaps.min()) if len(gaps) else last - instants[-1])
        if period is None
        else parse_duration(period, "period", log.clock)
    )
    if len(gaps) and step > gaps.min():
        raise ValueError(
            f"periods of {step / DAY:g} days overlap where cut-offs are {gaps.min() / DAY:g} days apart, and their rows would count twice. "
            f"Shorten the period."
        )
    if instants[-1] + step > last:
        raise ValueError(
            f"the last cut-off must lie before {show_instant(last - step, log.clock)}: after it come the {step / DAY:g} days to predict, "
            f"and a whole horizon. Move it, or shorten the period."
        )
    return reach, step, instants


def suggest_window(log: EventLog, as_of: int, lookback: int, horizon: int) -> float:
    """Days by which 90% of the positives within the horizon have come, as known at ``as_of``; at most half the lookback."""
    snap = log.at(as_of, lookback, horizon)
    if not snap.y.any():
        raise ValueError(f"no positives are known by {snap.as_of}: start the cut-offs later, or lengthen the lookback.")
    days = incidence(snap.elapsed, snap.delay, horizon / DAY).age_of(_SEEN_BY_WINDOW)
    return float(np.clip(days, lookback / DAY / 50.0, min(lookback / 2, horizon) / DAY))


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
        snap, final = log.at(as_of, reach, limit), log.at(as_of, reach, limit, final=True)
        for labels, when in ((snap.y, "known then"), (final.y, "known now")):
            if labels.all() or not labels.any():
                raise ValueError(
                    f"of the {len(snap)} rows that had arrived by {snap.as_of}, {'all' if labels.any() else 'none'} are positive by what is "
                    f"{when}. Move the cut-offs, or lengthen the lookback."
                )
        test = log.after(as_of, step, limit)
        if settings.group is None:
            group = None
        else:
            group = np.array(as_text(nw.from_native(test.X, eager_only=True), settings.group).to_pylist())
        days = (test.as_of_micros - test.elapsed_micros - as_of) / DAY
        return cls(snap.as_of, snap.X, snap.elapsed, snap.delay, final.y == 1, test.X, test.y == 1, days, group)


def _at(task: _Task, model: Model, methods: dict[str, Method], settings: Settings, progress: str) -> CutoffResult:
    y = ~np.isnan(task.delay)
    observed = observe(y, task.elapsed, task.delay, None, settings.window, settings.horizon)
    final = observe(task.final, task.elapsed, np.where(task.final, 0.0, np.nan))
    p: dict[str, Floats] = {}
    l2: dict[str, float | None] = {}
    failed: dict[str, str] = {}
    with quietly():
        choices = choose_l2(task.X, observed, model, methods, settings.l2)
        choices |= choose_l2(task.X, final, model, {"oracle": BL()}, settings.l2)
        encoded, later = model.encode(task.X, observed.weight), model.transform(task.test)
        for name, method in [*methods.items(), ("oracle", BL())]:
            choice = choices[name]
            # Where the past is too short to choose from, the middle of what is offered.
            value = choice.l2 if isinstance(choice, Choice) else sorted(settings.l2)[len(settings.l2) // 2]
            try:
                (fit,) = fit_path(model, encoded, method, final if name == "oracle" else observed, [value])
            except ValueError as error:
                if name in ("bl", "oracle"):
                    raise
                failed[name] = str(error)
            else:
                p[name], l2[name] = fit.predict(later), fit.l2
            with open(progress, "ab") as file:
                file.write(b".")
    return CutoffResult(task.as_of, len(y), int(y.sum()), task.test_y, task.days, task.group, p, l2, failed)


@contextmanager
def _progress_file(total: int, what: str, show: bool) -> Iterator[str]:
    """A file to which workers add a byte for each fit, and a bar that follows its size."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with TemporaryDirectory() as folder, Progress(*columns, disable=not show, transient=True) as bar:
        file = Path(folder) / "progress"
        file.touch()
        task, done = bar.add_task(what, total=total), threading.Event()

        def follow() -> None:
            while not done.wait(0.2):
                bar.update(task, completed=file.stat().st_size)

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield str(file)
        finally:
            done.set()
            watcher.join()
