"""Backtest: what each method would have predicted at past cut-offs, scored against labels that have matured since.

At each cut-off a method is fitted on the snapshot as it was known then, with l2 chosen by cross-validation within that
snapshot, and predicts the rows that arrived in the following period. Nothing later than a cut-off has any influence
on what is fitted there. The one exception is the oracle, which is BL with the final labels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from belated.cluster.sharded import Sharded, by_rows
from belated.data.durations import DAY, parse_budget, parse_duration
from belated.data.event_log import EventLog, require_log
from belated.data.labels import check_labels
from belated.data.times import show_instant
from belated.evaluation.column_findings import check_columns
from belated.evaluation.compatibility import require_on_cluster
from belated.evaluation.cross_validation import Choice, choose_setting, chosen_value
from belated.evaluation.cutoff_plan import plan_cutoffs
from belated.evaluation.fitting import fit_method
from belated.evaluation.pairs import ORACLE, Pair, check_methods, check_models, pair_up, waves
from belated.evaluation.progress import progress_file
from belated.evaluation.recommendation import Recommendation, recommend
from belated.evaluation.results import CutoffResult, ResultStore, Settings
from belated.evaluation.summary import summarise
from belated.evaluation.teachers import Teachers
from belated.evaluation.window import suggest_window
from belated.evaluation.workers import run_tasks
from belated.features.cluster_table import ClusterTable
from belated.features.field_matrix import FieldMatrix
from belated.methods.base import Method
from belated.models.base import Model
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.tables.frames import as_text, open_table, require
from belated.tables.refusal import counted
from belated.typing import Bools, Floats


@dataclass(frozen=True, repr=False)
class Backtest:
    """Results at all cut-offs; :meth:`summary` and :meth:`recommend` say what they mean.

    Examples
    --------
    >>> from belated import backtest
    >>> from belated.datasets import example_log
    >>> result = backtest(example_log(), horizon="7d", methods=["tw"], cutoffs=2, n_jobs=1, progress=False)
    >>> result.recommend().method
    'bl'
    >>> scores = result.summary()["methods"]["tw"]
    >>> round(scores["log_loss"], 3), round(scores["calibration_ratio"], 2)
    (0.435, 0.82)
    """

    log: EventLog
    settings: Settings
    cutoffs: list[CutoffResult]
    pairs: dict[str, Pair]  # by name
    skipped: list[str]  # pairs for which there was no time

    def __repr__(self) -> str:
        first, last = self.cutoffs[0].as_of, self.cutoffs[-1].as_of
        tested = sum(len(cutoff.y) for cutoff in self.cutoffs)
        return (
            f"Backtest({len(self.methods)} {'methods' if len(self.models) == 1 else 'pairs of model and method'} at {len(self.cutoffs)} cut-offs from {first} to {last}, {tested} rows tested; "
            f"recommend() says which to use, summary() has all numbers)"
        )

    @property
    def windows(self) -> dict[str, float]:
        """The window of each pair in days; one that does not fit into the history is shorter than asked."""
        return {name: pair.window for name, pair in self.pairs.items() if not pair.is_oracle}

    @property
    def models(self) -> dict[str, Model]:
        return {pair.model_name: pair.model for pair in self.pairs.values()}

    @property
    def methods(self) -> list[str]:
        """Methods, or pairs of model and method, that could be fitted at every cut-off; the oracle of a model last."""
        return [name for name in self.pairs if all(name in cutoff.p for cutoff in self.cutoffs)]

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
        """What the table does not show: methods that were given another window than asked, and what there was no time for."""
        shorter: dict[float, list[str]] = {}
        for pair in self.pairs.values():
            if pair.window < self.settings.window and not pair.is_oracle:
                names = shorter.setdefault(pair.window, [])
                names += [pair.method_name] * (pair.method_name not in names)
        several = []
        if len(self.models) > 1:
            first = next(iter(self.models))
            several = [
                f"Names without a model's are those of {first}; so are the bl and oracle that all are measured by."
            ]
        if self.skipped:
            several.append(f"There was no time for {', '.join(self._skipped_in_short())}: give a larger budget.")
        return several + [
            f"A window of {self.settings.window:.3g} days does not fit {', '.join(names)} into a history of {2 * days:.3g}: shown with "
            f"{days:.3g} days. For the longer window, take a lookback of {2 * self.settings.window:.3g} days or more."
            for days, names in shorter.items()
        ]

    def _skipped_in_short(self) -> list[str]:
        """Where all methods of a model were skipped, its name alone."""
        whole = [model for model in self.settings.models[1:] if model not in self.models]
        return whole + [name for name in self.skipped if name.partition(":")[0] not in whole]

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
    l2: Sequence[float] | None = None,
    group: str | None = None,
    model: Model | None = None,
    models: Sequence[str] | Mapping[str, Model] | None = None,
    budget: Any = None,
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
    l2 : sequence of float, optional
        What to choose from, at each cut-off and for each method, for models with an l2.
    group : str, optional
        A feature by which to break calibration down.
    model : Model, optional
        By default ``LinearModel(tol=1e-5)``: a finer tolerance changes no score that can be seen. Its l2 is chosen from ``l2``, whatever
        the model says; rounds or epochs that a model has are kept.
    models : names, or a mapping of names to models, optional
        Several engines instead of one, as in ``["linear", "boost"]``: every method under each of them. The methods of the first
        keep their names, the others are called ``"boost:tw"`` and so on.
    budget : duration, or seconds, optional
        About how long all of it may take. Cheap pairs come first, and those that find no time are in ``skipped``.
    n_jobs : int, optional
        Cut-offs at a time. By default one a core.
    cache : path, optional
        A folder for finished cut-offs. An interrupted backtest that is run again with the same arguments goes on there.
    keep : sequence of str
        Features to use though they seem to know the outcome (:mod:`belated.evaluation.leaks`); others that do are refused.
    progress : bool
        Show a progress bar, where somebody looks.

    Examples
    --------
    >>> from belated import backtest
    >>> from belated.datasets import example_log
    >>> result = backtest(example_log(), horizon="7d", methods=["tw"], cutoffs=2, n_jobs=1, progress=False)
    >>> list(result.summary()["methods"])
    ['bl', 'tw', 'oracle']
    """
    begun = time.monotonic()
    require_log(log, "backtest")
    chosen, engines = check_methods(methods), check_models(models, model)
    if log.on_cluster:
        require_on_cluster(engines.values())
        n_jobs = 1  # the cluster has the processes
    if l2 is not None and not len(l2):
        raise ValueError("l2 is empty: give at least one value, or leave it out.")
    seconds = None if budget is None else parse_budget(budget)
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
        l2=tuple(float(v) for v in (LinearModel.grid if l2 is None else l2)),
        group=group,
        models=tuple(engines),
    )
    # Find out what cannot be done before anything is fitted.
    tasks = [_Task.of(log.without_features(), instant, replace(settings, group=None)) for instant in plan.instants]
    history = min(float(task.elapsed.max()) for task in tasks)
    pairs = [replace(pair, window=_window(pair.method, days, history)) for pair in pair_up(chosen, engines, l2)]
    logger.info("backtest: %s, cut-offs %s", settings, [show_instant(i, log.clock) for i in plan.instants])
    clock = _Budget(begun, seconds)
    found: list[list[CutoffResult]] = []
    skipped: list[str] = []
    together = waves(pairs, seconds is not None)
    total = len(plan.instants) * len(pairs)
    with progress_file(total, f"Fitting at {counted(len(plan.instants), 'cut-off')}", progress) as file:
        for wave in together:
            names = [pair.name for pair in wave]
            store = ResultStore(cache, log, settings, wave)
            results = {i: kept for i in plan.instants if (kept := store.load(i)) is not None}
            missing = [i for i in plan.instants if i not in results]
            with open(file, "ab") as bar:
                bar.write(b"." * (len(results) * len(wave)))
            if found and missing and not clock.has_time_for(wave[0].model_name):
                skipped += names
                continue
            work = ((_Task.of(log, i, settings), wave, settings, file) for i in missing)
            with closing(run_tasks(_run_cutoff, work, len(missing), n_jobs)) as found_now, clock.timed(wave):
                for instant, result in zip(missing, found_now, strict=False):
                    results[instant] = result
                    store.save(instant, result)
                    if found and clock.is_over and len(results) < len(plan.instants):
                        break
            if len(results) < len(plan.instants):
                skipped += names
            else:
                found.append([results[i] for i in plan.instants])
    cutoffs_found = [CutoffResult.joined(parts) for parts in zip(*found, strict=True)]
    return Backtest(log, settings, cutoffs_found, {p.name: p for p in pairs if p.name not in skipped}, skipped)


@dataclass
class _Budget:
    """How much time there is, and how much a wave of each model has taken."""

    begun: float
    seconds: float | None
    taken: dict[str, float] = field(default_factory=dict)

    @property
    def left(self) -> float:
        return np.inf if self.seconds is None else self.begun + self.seconds - time.monotonic()

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def has_time_for(self, model: str) -> bool:
        """Whether there is time for as much as the last of the same model took."""
        return self.left > self.taken.get(model, 0.0)

    @contextmanager
    def timed(self, wave: list[Pair]) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.taken[wave[0].model_name] = time.monotonic() - start


def _window(method: Method, days: float, history: float) -> float:
    """The window of a method: as asked where it leaves enough of the shortest history, else half of that history."""
    return days if method.fits(days, history) else history / 2.0


def _check_group(log: EventLog, group: str | None) -> None:
    if group is None:
        return
    if isinstance(log.frame, FieldMatrix):
        raise ValueError(f"group={group!r}: a log of hashed fields has no named columns.")
    if isinstance(log.frame, ClusterTable):
        if group not in log.features or log.frame.hashed:
            raise ValueError(f"group={group!r}: there is no such column; the features are {', '.join(log.features)}.")
        return
    require(open_table(log.frame, "the log"), [group], "the log")


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
        days: Any = (test.as_of_micros - test.elapsed_micros - as_of) / DAY
        if log.on_cluster:  # of the rows to be predicted, what they are scored by comes here
            group = (
                None if settings.group is None else by_rows(_texts, test.X.rows, settings.group).collect().astype(str)
            )
            y, days = (test.y == 1).collect(), days.collect()
            return cls(snap.as_of, snap.X, snap.elapsed, snap.delay, final.y == 1, test.X, y, days, group)
        if settings.group is None:
            group = None
        else:
            group = np.array(as_text(nw.from_native(test.X, eager_only=True), settings.group).to_pylist())
        return cls(snap.as_of, snap.X, snap.elapsed, snap.delay, final.y == 1, test.X, test.y == 1, days, group)


def _texts(table: Any, name: str) -> NDArray[Any]:
    return np.array(as_text(nw.from_native(table, eager_only=True), name).to_pylist(), dtype=object)


def _run_cutoff(task: _Task, wave: list[Pair], settings: Settings, progress: str) -> CutoffResult:
    """Fit the pairs of one model."""
    y = ~np.isnan(task.delay)
    known = check_labels(y, task.elapsed, task.delay, None, settings.window, settings.horizon)
    final = check_labels(task.final, task.elapsed, np.where(task.final, 0.0, np.nan))
    labels = {pair.name: final if pair.is_oracle else replace(known, window=pair.window) for pair in wave}
    methods, model, values = {pair.name: pair.method for pair in wave}, wave[0].model.unattended(), wave[0].values
    result = CutoffResult(task.as_of, len(y), int(y.sum()), task.test_y, task.days, task.group)
    with quietly():
        teachers = Teachers(task.X, tol=1e-5)
        choices: dict[str, Choice | str] = {}
        if values is not None:
            choices = choose_setting(task.X, labels, model, methods, values, teachers)
        encoded, later = model.encode(task.X, known.weight), model.transform(task.test)
        for pair in wave:
            value = chosen_value(choices.get(pair.name), values)
            try:
                with quietly() as unheard:
                    fit = fit_method(model, encoded, pair.method, labels[pair.name], value, teachers)
                    found = fit.predict(later)
            except ValueError as error:
                if pair.name in ("bl", ORACLE):
                    raise
                result.failed[pair.name] = str(error)
            else:
                found = found.collect() if isinstance(found, Sharded) else found
                result.p[pair.name], result.values[pair.name] = found, fit.value
                stopped = [w.message for w in unheard if issubclass(w.category, ConvergenceWarning)]
                if stopped:
                    result.unsettled[pair.name] = stopped[0]
            with open(progress, "ab") as file:
                file.write(b".")
    return result
