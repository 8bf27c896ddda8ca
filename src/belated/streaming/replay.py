"""Replay a log as a stream: what would each method have predicted of the next step, step after step?

The protocol of the literature. A classifier is fitted on what was known at the end of a warm-up, and every online method starts
from it. Then, step by step, each learns the records that became known, in one pass, and predicts the rows that arrive in the
next step; these are scored by their final labels. Nothing later than a step has any influence on what is learned in it; the one
exception is the oracle, which learns final labels at arrival.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from belated.classifier import DelayedFeedbackClassifier
from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog, require_log
from belated.data.times import NEVER, show_instant
from belated.evaluation.metrics import log_losses, scores
from belated.evaluation.progress import progress_file
from belated.evaluation.workers import run_tasks
from belated.methods import METHODS
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.streaming.methods import STREAM_METHODS, resolve_stream_method
from belated.streaming.methods.base import StreamMethod
from belated.streaming.online_classifier import OnlineClassifier
from belated.streaming.online_linear import OnlineLinearModel
from belated.streaming.replay_results import ORACLE_NAME, START, Replay, ReplaySettings
from belated.streaming.replayed_events import ReplayedEvents
from belated.streaming.saved_streams import read_checkpoint, write_checkpoint
from belated.streaming.stream import Stream
from belated.streaming.stream_records import FIRST, Records
from belated.tables.refusal import counted
from belated.tables.writing import write_beside
from belated.typing import Floats, Ints

REPLAYED = (START, *(name for name in STREAM_METHODS if name != "final"), ORACLE_NAME)
_MEASURES = ("log_loss", "roc_auc", "pr_auc", "prediction")
_BETWEEN = 5.0  # seconds between checkpoints, where they are quick to write
_SHARE = 0.1  # of the time that may go into checkpoints
_ENOUGH_ROWS = 500  # for an area under a curve: steps with fewer are put together
_COSTS = {"hazard-heads": 4.0, "dfm-stream": 4.0, "defer": 3.0, "ddfm": 3.0, "es-dfm": 2.0, "defuse": 2.0}
_POSITION = ("done", "scores", "seconds", "together", "labels", "measured")
_WARMUP_TEACHER = "dfm-piecewise"
_MANY = 300_000  # rows on which l2 is chosen


def replay(
    log: EventLog,
    *,
    horizon: Any,
    warmup: Any,
    step: Any = "1h",
    wait: Any = "15min",
    methods: Sequence[str] | Mapping[str, StreamMethod] | None = None,
    refit: Any = None,
    model: Any = None,
    n_jobs: int | None = None,
    cache: str | Path | None = None,
    progress: bool = True,
) -> Replay:
    """Replay a log.

    Parameters
    ----------
    log : EventLog
    horizon : duration
        A row is positive if its outcome comes within this long.
    warmup : duration
        How much of the log, from its first arrival on, the first model is fitted on.
    step : duration
        How often methods learn; they then predict what arrives in the next step.
    wait : duration
        The window of methods that wait for a first label.
    methods : names, or a mapping of names to methods of the stream, optional
        Of the stream, by default all of them; names of batch methods (``"dfm-piecewise"``) are fitted again every ``refit``, on
        what was known then.
    refit : duration, optional
        How often batch methods are fitted again; by default a day.
    model : OnlineLinearModel or NetworkModel, optional
    n_jobs : int, optional
        Processes, among which the methods are shared out. By default one a core.
    cache : path, optional
        A folder in which a replay keeps how far it is. One that was interrupted goes on there.
    progress : bool
        Show a progress bar, where somebody looks.

    Returns
    -------
    Replay
        ``summary()`` has the scores of each method, in all and step by step, and a verdict in words.

    Examples
    --------
    >>> from belated import replay
    >>> from belated.datasets import example_log
    >>> found = replay(
    ...     example_log(), horizon="7d", warmup="10d", step="1d", methods=["fnw"], n_jobs=1, progress=False
    ... )
    >>> sorted(found.summary()["methods"])
    ['fnw', 'oracle', 'pretrained']
    """
    require_log(log, "replay")
    plan = _Plan.of(log, horizon, warmup, step, wait, refit, methods, model)
    every = len(plan.starts) * len(plan.names)
    groups = _shared_out(plan, n_jobs)
    logger.info("replay: %s, %d steps, methods %s", plan.settings, len(plan.starts), groups)
    folder = None if cache is None else str(cache)
    files = [_file(log, plan, group, folder) for group in groups]
    unbegun = any(file is None or not (file.exists() or file.with_suffix(".json").exists()) for file in files)
    with quietly():
        teacher = _teacher(log, plan) if unbegun else None
    with progress_file(every, f"Replaying {len(plan.starts)} steps", progress) as file:
        work = ((log, plan, group, teacher, file, kept) for group, kept in zip(groups, files, strict=True))
        with closing(run_tasks(_run, work, len(groups), n_jobs)) as found_now:
            parts = list(found_now)
    found = {name: measured for part in parts for name, measured in part["scores"].items()}
    seconds = {name: taken for part in parts for name, taken in part["seconds"].items()}
    first = parts[0]
    times = [show_instant(int(when), log.clock) for when in plan.starts]
    in_order = {name: {m: np.array(found[name][m]) for m in _MEASURES} for name in plan.names}
    rows, positive = (np.array(first[name], dtype=np.float64) for name in ("rows", "positive"))
    begins = plan.starts - plan.begin
    kept = rows > 0  # a step in which nothing arrives says nothing
    if not kept.any():
        raise ValueError("nothing arrives after the warm-up that has reached the horizon by now: shorten either.")
    in_order = {name: {m: values[kept] for m, values in one.items()} for name, one in in_order.items()}
    times = [when for when, keep in zip(times, kept, strict=True) if keep]
    counts = next((part["counts"] for part in parts if part["on_stream"]), first["counts"])
    notes = [
        f"{name} could not be fitted again {counted(len(why), 'time')}, and went on as it was; {why[0]}"
        for part in parts
        for name, why in part["failed"].items()
    ]
    return Replay(plan.settings, times, begins[kept], rows[kept], positive[kept], in_order, counts, seconds, notes)


@dataclass(frozen=True)
class _Plan:
    """When each step begins, in microseconds, and what is replayed."""

    settings: ReplaySettings
    begin: int  # the end of the warm-up
    starts: Ints  # of the steps that are predicted
    step: int
    wait: int
    horizon: int
    refit: int | None
    methods: dict[str, StreamMethod | None]  # None: a batch method
    model: Any

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.methods)

    def classifier(self, name: str) -> OnlineClassifier:
        """The online classifier that goes by a name."""
        method = self.methods[name]
        assert method is not None
        return OnlineClassifier(method, self.model, self.wait / 1e6, self.horizon / 1e6)

    @classmethod
    def of(
        cls, log: EventLog, horizon: Any, warmup: Any, step: Any, wait: Any, refit: Any, methods: Any, model: Any
    ) -> _Plan:
        limit, before, each, waiting = (
            parse_duration(value, name, log.clock)
            for value, name in ((horizon, "horizon"), (warmup, "warmup"), (step, "step"), (wait, "wait"))
        )
        again = None if refit is None else parse_duration(refit, "refit", log.clock)
        chosen = checked_methods(methods, again is not None)
        if waiting >= limit:
            raise ValueError(f"wait={wait!r} must be shorter than horizon={horizon!r}.")
        if None in chosen.values() and again is None:
            again = max(DAY, each)
        if again is not None and again < each:
            raise ValueError(
                f"refit={refit!r} is shorter than step={step!r}, and methods can be fitted again no more often than once a step."
            )
        begin = log.first + before
        # Rows of the last step must have reached the horizon by the end of the log.
        starts = np.arange(begin, log.until - limit - each + 1, each, dtype=np.int64)
        if len(starts) < 2:
            raise ValueError(
                f"the log is too short: after a warm-up of {warmup}, and before the last {horizon}, whose labels are not final, there is not "
                f"room for two steps of {step}. Shorten one of them."
            )
        days = (before / DAY, each / DAY, waiting / DAY, limit / DAY, None if again is None else again / DAY)
        engine = OnlineLinearModel() if model is None else model
        settings = ReplaySettings(*days, tuple(chosen), " ".join(repr(engine).split()))
        return cls(settings, begin, starts, each, waiting, limit, again, chosen, engine)


def checked_methods(methods: Any, refits: bool) -> dict[str, StreamMethod | None]:
    """The methods to replay, None for those that are fitted again; the model that all start from and the oracle are always there."""
    if isinstance(methods, str):
        raise ValueError(f"methods={methods!r} must be a list of names, as in methods=[{methods!r}].")
    asked = [*REPLAYED, *([_WARMUP_TEACHER] if refits else [])] if methods is None else list(methods)
    found: dict[str, StreamMethod | None] = {START: resolve_stream_method("vanilla")}
    for name in asked:
        given = methods[name] if isinstance(methods, Mapping) else name
        if isinstance(given, str) and given not in (*REPLAYED, *METHODS, *STREAM_METHODS):
            raise ValueError(
                f"method {given!r} is not known; choose out of {', '.join(STREAM_METHODS)} on the stream, and of {', '.join(METHODS)} fitted "
                f"again and again."
            )
        if name not in (START, ORACLE_NAME):
            found[name] = None if given in METHODS else resolve_stream_method(given)
    if refits and None not in found.values():
        found[_WARMUP_TEACHER] = None
    return {**found, ORACLE_NAME: resolve_stream_method("vanilla")}


def _shared_out(plan: _Plan, n_jobs: int | None) -> list[list[str]]:
    """Methods in about equally expensive groups, one for each process."""
    import joblib

    costs = {name: 8.0 if one is None else _COSTS.get(one.name, 1.0) for name, one in plan.methods.items()}
    count = min(joblib.effective_n_jobs(n_jobs or -1), len(costs))
    groups: list[list[str]] = [[] for _ in range(count)]
    for name in sorted((n for n in costs if plan.methods[n] is not None), key=lambda n: -costs[n]):
        min(groups, key=lambda group: sum(costs[n] for n in group)).append(name)
    again = [name for name, one in plan.methods.items() if one is None]  # by themselves, since they cannot go on
    return [group for group in (again, *groups) if group]


def _teacher(log: EventLog, plan: _Plan) -> DelayedFeedbackClassifier:
    """A classifier of what is known at the end of the warm-up; its l2 is chosen on some of many rows."""
    events = ReplayedEvents.of(log, plan.begin)
    snap = events.log.snapshot_at(plan.begin, NEVER, plan.horizon)
    if not snap.y.any():
        raise ValueError("nothing is positive by the end of the warm-up: lengthen it.")
    some = snap
    if len(snap) > _MANY:
        rows = np.sort(np.random.default_rng(0).choice(len(snap), _MANY, replace=False))
        some = replace(
            snap, X=snap.X[rows], elapsed_micros=snap.elapsed_micros[rows], delay_micros=snap.delay_micros[rows]
        )
    found = DelayedFeedbackClassifier(_WARMUP_TEACHER, model=LinearModel(l2=None, tol=1e-4)).fit_snapshot(some)
    if some is not snap:
        # More rows need less of it, in proportion: the loss is a mean.
        l2 = found.model_.l2 * len(some) / len(snap)
        found = DelayedFeedbackClassifier(_WARMUP_TEACHER, model=LinearModel(l2=l2, tol=1e-3)).fit_snapshot(snap)
    logger.info("warm-up: %d rows, l2 %g", len(snap), found.model_.l2)
    return found


def _run(
    log: EventLog, plan: _Plan, names: list[str], teacher: Any, progress: str, file: Path | None
) -> dict[str, Any]:
    """Replay some methods over all events. Of what is finished, the scores are kept."""
    finished = None if file is None else file.with_suffix(".json")
    if finished is not None and finished.exists():
        return json.loads(finished.read_text())
    with quietly():
        one = _Run.of(log, plan, names, teacher, file)
        for _ in one.go():
            with open(progress, "ab") as bar:
                bar.write(b"." * len(names))
    found = one.found()
    if file is not None and finished is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_beside(finished, lambda out: out.write(json.dumps(found).encode()))
        file.unlink(missing_ok=True)
    return found


@dataclass
class _Run:
    """Some methods on their way through the events."""

    events: ReplayedEvents
    plan: _Plan
    online: dict[str, OnlineClassifier]
    batch: dict[str, DelayedFeedbackClassifier]
    stream: Stream
    done: int
    scores: dict[str, dict[str, list[float | None]]]
    seconds: dict[str, float]
    file: Path | None
    failed: dict[str, list[str]] = field(default_factory=dict)  # why batch methods could not be fitted again
    together: dict[str, list[float]] = field(default_factory=dict)  # predictions since areas were last measured
    labels: list[bool] = field(default_factory=list)  # and labels
    measured: int = 0  # how many steps have areas

    @classmethod
    def of(cls, log: EventLog, plan: _Plan, names: list[str], teacher: Any, file: Path | None) -> _Run:
        events = ReplayedEvents.of(log, plan.begin)
        online = {name: plan.classifier(name) for name in names if plan.methods[name] is not None}
        batch = {
            name: DelayedFeedbackClassifier(name, window=plan.settings.horizon / 2)
            for name in names
            if name not in online
        }
        on_stream = {n: clf.method for n, clf in online.items() if n not in (START, ORACLE_NAME)} or {START: "vanilla"}
        stream = Stream(on_stream, window=plan.wait / 1e6, horizon=plan.horizon / 1e6)
        empty: dict[str, dict[str, list[float | None]]] = {name: {m: [] for m in _MEASURES} for name in names}
        one = cls(events, plan, online, batch, stream, 0, empty, dict.fromkeys(names, 0.0), file)
        if not one._goes_on():
            one._warm_up(teacher)
        return one

    def _warm_up(self, teacher: DelayedFeedbackClassifier) -> None:
        """Start all methods from what a classifier believes, and tell the stream what is still pending."""
        events, plan = self.events, self.plan
        snap = events.log.snapshot_at(plan.begin, NEVER, plan.horizon)
        for clf in self.online.values():
            clf.start(snap, teacher)
        for name, clf in self.batch.items():
            self.batch[name] = clf.set_params(model=LinearModel(l2=teacher.model_.l2, tol=1e-3)).fit_snapshot(snap)
        self.stream.advance(np.datetime64(events.first - 1, "us"))
        self._tell(events.first - 1, plan.begin)
        for name in self.stream.methods:
            self.stream.records(name)  # what was known by now is in the model that all start from

    def _tell(self, after: int, until: int) -> None:
        """Tell the stream what happened, and let it go on."""
        rows, turned = self.events.arrivals(after, until), self.events.outcomes(after, until)
        events = self.events
        self.stream.arrive(rows, events.X[rows], _instants(events.arrival[rows]))
        self.stream.outcome(turned, _instants(events.outcome[turned]))
        self.stream.advance(np.datetime64(until, "us"))
        if START in self.stream.methods:  # where nobody learns from the stream
            self.stream.records(START)

    def go(self) -> Iterator[int]:
        kept, taken = time.monotonic(), 0.0
        for k in range(self.done, len(self.plan.starts)):
            self._one_step(k)
            self.done = k + 1
            begun = time.monotonic()
            if self.file is not None and self.online and begun - kept > max(_BETWEEN, taken / _SHARE):
                self._keep()
                kept = time.monotonic()
                taken = kept - begun
            yield k

    def _one_step(self, k: int) -> None:
        """Learn what has become known up to the start of a step, and predict the rows that arrive in it."""
        events, plan, now = self.events, self.plan, int(self.plan.starts[k])
        before = now - plan.step
        if k:
            self._tell(before, now)
        rows = events.arrivals(now, now + plan.step)
        final = events.final(rows, plan.horizon)
        fresh = events.arrivals(before, now) if k else np.zeros(0, dtype=np.int64)
        X = events.X[rows]
        for name in self.scores:
            begun = time.monotonic()
            if k:
                self._learn(name, fresh, now)
            p = self._predict(name, X) if len(rows) else np.zeros(0)
            self.seconds[name] += time.monotonic() - begun
            losses = float(log_losses(final, p).mean()) if len(rows) else None
            found = {"log_loss": losses, "prediction": float(p.mean()) if len(rows) else None}
            for measure in _MEASURES:
                self.scores[name][measure].append(found.get(measure))
            self.together.setdefault(name, []).extend(p.tolist())
        self.labels.extend(final.tolist())
        self._measure_areas(k)

    def _measure_areas(self, k: int) -> None:
        """Areas under curves, once there are rows enough; they stand for all steps since they were last measured."""
        many = len(self.labels)
        if not many or (many < _ENOUGH_ROWS and k + 1 < len(self.plan.starts)):
            return
        for name, p in self.together.items():
            measured = scores(np.array(self.labels), np.array(p))
            for measure in ("roc_auc", "pr_auc"):
                line = self.scores[name][measure]
                line[self.measured :] = [measured[measure]] * (len(line) - self.measured)
        self.measured, self.together, self.labels = k + 1, {}, []

    def _learn(self, name: str, fresh: Ints, now: int) -> None:
        events, plan = self.events, self.plan
        if name == ORACLE_NAME:
            if len(fresh):
                self.online[name].partial_fit(_labelled(events.X[fresh], events.final(fresh, plan.horizon), now))
        elif name in self.online and name != START:
            self.online[name].partial_fit(self.stream.records(name))
        elif name in self.batch:
            assert plan.refit is not None
            if (now - plan.begin) // plan.refit > (now - plan.step - plan.begin) // plan.refit:
                snap = events.log.snapshot_at(now, round(plan.settings.warmup * DAY), plan.horizon)
                try:
                    self.batch[name] = clone(self.batch[name]).fit_snapshot(snap)
                except ValueError as error:  # nothing positive lately, say: the last one stays
                    logger.error("%s could not be fitted again at %s: %s", name, snap.as_of, error)
                    self.failed.setdefault(name, []).append(f"first at {snap.as_of}: {error}")

    def _predict(self, name: str, X: Any) -> Floats:
        clf: Any = self.online[name] if name in self.online else self.batch[name]
        return np.asarray(clf.predict_proba(X)[:, 1])

    def found(self) -> dict[str, Any]:
        events, plan = self.events, self.plan
        rows = [events.arrivals(int(t), int(t) + plan.step) for t in plan.starts]
        positive = [int(events.final(some, plan.horizon).sum()) for some in rows]
        numbers = {
            n: {m: [np.nan if v is None else v for v in line] for m, line in one.items()}
            for n, one in self.scores.items()
        }
        counts = dict(self.stream.counts)
        return {
            "scores": numbers,
            "seconds": self.seconds,
            "rows": [len(r) for r in rows],
            "positive": positive,
            "counts": counts,
            "on_stream": bool(self.online),
            "failed": self.failed,
        }

    # What is kept for a replay that is interrupted. Batch methods are fitted anew at their next turn, so those are not resumed.

    def _keep(self) -> None:
        assert self.file is not None
        self.file.parent.mkdir(parents=True, exist_ok=True)
        position = {name: getattr(self, name) for name in _POSITION}
        write_checkpoint(self.file, self.stream, self.online, position)

    def _goes_on(self) -> bool:
        if self.file is None or not self.file.exists():
            return False
        position = read_checkpoint(self.file, self.stream, self.online)
        for name in _POSITION:
            setattr(self, name, position[name])
        return True


def _file(log: EventLog, plan: _Plan, names: list[str], cache: str | None) -> Path | None:
    """Where some methods keep how far they are."""
    if cache is None:
        return None
    asked = json.dumps([repr(plan.settings), [(name, repr(plan.methods[name])) for name in names], plan.begin])
    key = hashlib.blake2b(log.fingerprint() + asked.encode(), digest_size=8).hexdigest()
    return Path(cache) / f"replay-{key}.npz"


def _labelled(X: Any, label: Any, now: int) -> Records:
    """Records of rows whose label is known, however that may be."""
    n = len(label)
    nothing = np.full(n, NEVER)
    return Records(X, np.full(n, now), np.arange(n), label, nothing, np.full(n, FIRST, dtype=np.int16))


def _instants(micros: Ints) -> Any:
    return micros.astype("datetime64[us]")
