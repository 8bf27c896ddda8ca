"""monitor: how good scores are by period, now, although labels are not all in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog
from belated.data.log_columns import OutcomeWarning
from belated.data.times import show_minute
from belated.evaluation.seen_shares import SeenShares
from belated.evaluation.silence import silence
from belated.monitoring.limits import parse_limits
from belated.monitoring.looking import Look
from belated.monitoring.own_past import own_past
from belated.monitoring.scored_rows import ScoredRows
from belated.monitoring.verdicts import (
    broken_limits,
    finding,
    is_off,
    judged_period,
    notes_on,
    verdict_on,
    versions_in_use,
)
from belated.notices import logger, overheard
from belated.tables.refusal import counted


@dataclass(frozen=True)
class Monitor:
    """What a monitor found, as plain data.

    Attributes
    ----------
    periods : list of dict
        For each version of the model and period: rows, positives so far, the share of labels that are in, when they will be final, and estimates with 95% intervals
        (value, low, high) of ``rate``, ``log_loss``, ``brier``, ``auc``, ``oe`` (observed over expected) and ``calibration`` (predicted over actual). ``delays`` says
        whether positives come sooner or later than usual. ``same_age`` compares with earlier periods cut at the same age, which assumes nothing.
    segments : list of dict
        With ``by``: the same for each segment of the rows that are not final yet, of each version in use, the most striking first; ``adjusted_p`` is corrected
        for their number.
    check : list of dict
        What the monitor would have said of periods that are final now, some days after each, and the truth.
    judged : dict or None
        The period that the verdict is about. Each version that gave scores of late (within the length of a period) is judged by the newest period of its own of which enough is known;
        one that breaks a limit, or is clearly off, goes before one that does not.
    failed : list of str
        The limits of ``fail_on`` that are clearly broken, by any version in use.
    headline, verdict : str
        A few words, and the sentence.
    delays : dict
        The share of positives ``seen`` by ``ages``, and the ages by which half and nine in ten have come.
    settings, notes : dict and list of str
        What was asked, and what else is to be known.

    Examples
    --------
    >>> from belated import monitor
    >>> from belated.datasets import simulate_scores
    >>> scores, outcomes = simulate_scores(10_000, rate_change=0.6)
    >>> columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at"}
    >>> found = monitor(scores, outcomes, **columns, horizon="30d", fail_on=["calibration=0.9..1.1"])
    >>> [round(number, 1) for number in found.judged["calibration"]]  # predicted over actual, and its interval
    [1.8, 1.3, 2.6]
    >>> len(found.failed)
    1
    """

    periods: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    check: list[dict[str, Any]]
    judged: dict[str, Any] | None
    headline: str
    verdict: str
    failed: list[str]
    delays: dict[str, Any]
    settings: dict[str, Any]
    notes: list[str]

    @property
    def ok(self) -> bool:
        """Whether no limit is clearly broken."""
        return not self.failed

    def summary(self) -> dict[str, Any]:
        """Everything as plain data, for JSON and reports."""
        names = (
            "headline",
            "verdict",
            "ok",
            "failed",
            "judged",
            "periods",
            "segments",
            "check",
            "delays",
            "settings",
            "notes",
        )
        return {name: getattr(self, name) for name in names}


def monitor(
    scores: Any,
    outcomes: Any = None,
    *,
    time: str,
    score: str,
    outcome: str,
    horizon: Any,
    key: str | None = None,
    period: Any = "7d",
    by: str | None = None,
    version: str | None = None,
    until: Any = None,
    outcome_where: str | None = None,
    fail_on: str | Sequence[str] | Mapping[str, Any] | None = None,
    lags: Any = ("1d", "3d", "7d"),
    time_format: str | None = None,
    time_unit: str | None = None,
) -> Monitor:
    """How good recent scores are, before their labels are final; from scores and outcomes alone.

    Parameters
    ----------
    scores : table
        A row for each score that was given: when, and how high.
    outcomes : table, optional
        A row for each outcome, which finds its score by ``key``; by default the outcomes are a column of ``scores``.
    time, score, outcome : str
        Columns: when a row was scored, the probability that it was given, and when its outcome came.
    horizon : duration
        A row is positive if its outcome comes within this long.
    key : str, optional
        The column that both tables share.
    period : duration
        Rows are put together by when they were scored. Weeks begin on Mondays.
    by, version : str, optional
        Columns of ``scores``: a segment, and the version of the model. Versions are never mixed.
    until : instant, optional
        How far outcomes are known; by default the latest time in the tables. Scores given later are left out, and counted.
    outcome_where : str, optional
        Which outcomes count, as in :meth:`belated.EventLog.from_frame`: ``"stage == 'won'"``, say.
    fail_on : str, sequence of str or mapping
        Limits such as ``"calibration=0.9..1.1"``; one is broken where the whole interval of the judged period lies outside.
    lags : sequence of durations
        How long after their end final periods are looked at again, to check the monitor itself.
    time_format, time_unit : str, optional
        How times are written, as in :meth:`belated.EventLog.from_frame`.

    Examples
    --------
    >>> from belated.datasets import simulate_scores
    >>> scores, outcomes = simulate_scores(20_000, rate_change=0.7)
    >>> found = monitor(scores, outcomes, key="id", time="scored_at", score="p", outcome="converted_at", horizon="30d")
    >>> print(found.verdict)
    From 2024-03-25 to 2024-04-01: predictions 37% too high (12% to 68%), with 55% of labels in; delays unchanged.
    """
    limits = parse_limits(fail_on)
    columns = [name for name in (score, by, version) if name is not None]
    for name in columns:
        if name in (key, time, outcome):
            raise ValueError(f"column {name!r} cannot be a score, a segment or a version: it is the key or a time.")
    how: dict[str, Any] = {"time_format": time_format, "time_unit": time_unit, "outcome_where": outcome_where}
    log: EventLog
    left_out: list[str] = []
    if outcomes is None:
        log = EventLog.from_frame(scores, arrival=time, outcome=outcome, features=columns, **how)
    elif key is None:
        raise ValueError("outcomes in a table of their own find their scores by a key: say which column with key=.")
    else:
        with overheard(OutcomeWarning) as left_out:
            log = EventLog.from_frames(
                scores, outcomes, key=key, arrival=time, outcome=outcome, features=columns, **how
            )
    log.refuse_future(time, outcome)
    rows = ScoredRows.of(log, score, by, version, horizon)
    if until is not None:
        told = len(rows.time)
        rows = rows.known_until(until)
        if len(rows.time) < told:
            left_out.append(f"{counted(told - len(rows.time), 'score')} given after {rows.show(rows.now)}: left out.")
    size = parse_duration(period, "period", log.clock)
    look = Look(rows, size)
    periods = look.by_period()
    in_use = versions_in_use(rows, size)
    segments, small = ([], 0) if by is None else look.by_segment(in_use)
    check = own_past(
        rows,
        size,
        [parse_duration(lag, "lags", log.clock) for lag in ([lags] if isinstance(lags, str) else lags or ())],
        periods,
    )
    judged, broken = [], {}
    for name in in_use:
        newest = judged_period(periods, name)
        if newest is not None:
            judged.append(newest)
            broken[name] = broken_limits(newest, limits)
    judged.sort(key=lambda one: (not broken[one.version], not is_off(one)))
    failed = [text for one in judged for text in broken[one.version]]
    settings = {
        "horizon": rows.days,
        "period": size / DAY,
        "as_of": rows.show(rows.now),
        "rows": len(rows.time),
        "by": by,
        "version": version,
        "fail_on": [str(limit) for limit in limits],
        "variation": look.varied,
    }
    logger.info("monitor: %s", settings)
    headline = finding(judged[0].plain if judged else None).partition(" (")[0]
    verdict = verdict_on(judged, [name for name in in_use if name not in broken], segments, by, failed, bool(limits))
    quiet = _silence(look)
    if quiet is not None:
        headline, verdict = "outcomes seem to end before the scores", f"{quiet} As it stands: {verdict}"
    return Monitor(
        periods=[one.plain for one in periods],
        segments=segments,
        check=check,
        judged=judged[0].plain if judged else None,
        headline=headline,
        verdict=verdict,
        failed=failed,
        delays=delays_in_plain(look.scaled.shares, rows),
        settings=settings,
        notes=[*left_out, *notes_on(periods, check, small, _surprises(rows))],
    )


def _silence(look: Look) -> str | None:
    """What to say where outcomes seem to end before the scores."""
    rows = look.rows
    at, now = (show_minute(instant, rows.clock) for instant in (rows.last, rows.now))
    return silence(*look.expected_since(rows.last), at, now, f"If so, say until='{at}' (--until).")


def _surprises(rows: ScoredRows) -> int:
    """Positives that were scored 0, and final negatives that were scored 1."""
    final = rows.elapsed >= rows.days
    return int(np.where(rows.positive, rows.score == 0, final & (rows.score == 1)).sum())


def delays_in_plain(shares: SeenShares, rows: ScoredRows) -> dict[str, Any]:
    ages = np.unique(np.append(np.linspace(0.0, rows.days, 101), [1.0 / 24, 1.0, 3.0, 7.0]))
    ages = ages[ages <= rows.days]
    return {
        "ages": ages.tolist(),
        "seen": shares.at(ages).tolist(),
        "median": shares.age_of(0.5),
        "ninety": shares.age_of(0.9),
    }
