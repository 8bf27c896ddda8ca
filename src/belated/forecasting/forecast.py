"""forecast: of what has arrived, how much is positive so far, how much more will come, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from belated.data.durations import DAY, in_words, is_number, parse_duration
from belated.data.event_log import EventLog, require_log
from belated.data.times import in_minutes, parse_instant, show_instant, show_minute
from belated.evaluation.column_findings import check_columns
from belated.evaluation.silence import silence
from belated.forecasting.calendar import UNITS, Calendar
from belated.forecasting.fitted_sums import FittedSums
from belated.forecasting.open_rows import KnownRows
from belated.forecasting.past_forecasts import BLOCKS, came_until, look_back, past_dates
from belated.forecasting.plain_forecast import PlainForecast, errors_of, notes_on_past
from belated.forecasting.predictors import CHAIN_LADDER, ChainLadderFamily, Family, ModelFamily
from belated.forecasting.worth import ValueColumn
from belated.methods import METHODS
from belated.models.base import Model
from belated.notices import logger, progress_bar
from belated.tables.refusal import counted

_FEWEST = 30  # positives to learn from


@dataclass(frozen=True)
class Forecast:
    """What is still to come, as plain data.

    Attributes
    ----------
    total : dict
        ``rows`` that are not final yet, ``so_far`` positive, ``to_come`` by ``until``, and the ``final`` sum when all rows are, with ``bands``: for each level, low and high of what is to come.
        ``half_by`` is the day by which half of it will have come. ``came`` is what has come by the end of the log, where that is later than the forecast.
    history : list of dict
        What there was of the same rows by the end of each day up to the forecast.
    by_outcome : list of dict
        For each day ahead: what comes on it and, cumulated, by its end; with bands.
    by_arrival : list of dict
        For each day of arrival: rows, positive so far, to come, with bands.
    by_group : list of dict
        The same for each value of the group, the largest first.
    past : list of dict
        The same forecast at dates of the past, the chain ladder's beside it, and what came.
    errors : dict
        Of both: the mean absolute error of all that came, relative to it, and that of cohorts by day of arrival.
    settings : dict
        What was asked, and what was found on the way: ``unit`` and ``arrival_unit`` are the steps of ``by_outcome`` and ``by_arrival``, ``cohort`` that of the chain ladder,
        ``variation`` and ``drift`` what widens the bands, ``silence`` what to say where outcomes seem to end early, or None.
    notes : list of str
        What else is to be known.

    Examples
    --------
    >>> from belated import forecast
    >>> from belated.datasets import example_log
    >>> found = forecast(example_log(), horizon="7d", as_of="2024-01-24", method="chain-ladder", cutoffs=2)
    >>> found.total["rows"], found.total["so_far"], round(found.total["to_come"]), found.total["came"]
    (1377, 170.0, 50, 41.0)
    """

    total: dict[str, Any]
    history: list[dict[str, Any]]
    by_outcome: list[dict[str, Any]]
    by_arrival: list[dict[str, Any]]
    by_group: list[dict[str, Any]]
    past: list[dict[str, Any]]
    errors: dict[str, Any]
    settings: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """What it says, in a few sentences."""
        t, s = self.total, self.settings
        warned = "" if s.get("silence") is None else f"{s['silence']} As it stands: "
        level, (low, high) = next(iter(t["bands"].items()))
        what, show = s["value"], "{:,.0f}".format
        worth = f", worth {show(t['so_far'])} of {what}" if what else ""
        more = f"{show(t['to_come'])} more {f'of {what} ' if what else ''}will come"
        more += f" by {t['until']}" if s["ahead"] < s["horizon"] * (1 - 1e-12) else ""
        found = warned + (
            f"Of {counted(t['rows'], 'row')} that arrived in the {in_words(s['horizon'])} up to {in_minutes(t['as_of'])}, {t['positive']:,} are positive so far"
            f"{worth}. {more} ({level} band {show(low)} to {show(high)})"
        )
        found += f", half of it by {t['half_by']}." if t["half_by"] and t["to_come"] >= 1 else "."
        if s["arrivals"]:
            low, high = next(iter(t["all_bands"].values()))
            found += (
                f" With what arrives next, if that is like the last {counted(s['weeks'], 'week')}, {show(t['all_to_come'])} "
                f"({show(low)} to {show(high)}) by {t['until']}."
            )
        mine, other = self.errors.get("forecast"), self.errors.get(CHAIN_LADDER)
        if mine is not None:
            found += f" At {counted(len(self.past), 'date')} of the past it was off by {mine['total']:.0%} on average"
            found += (
                "." if s["method"] == CHAIN_LADDER or other is None else f", the chain ladder by {other['total']:.0%}."
            )
        return found

    def summary(self) -> dict[str, Any]:
        """Everything as plain data, for JSON and reports."""
        names = ("total", "history", "by_outcome", "by_arrival", "by_group", "past", "errors", "settings", "notes")
        return {"verdict": self.verdict, **{name: getattr(self, name) for name in names}}


def forecast(
    log: EventLog,
    *,
    horizon: Any,
    as_of: Any = None,
    lookback: Any = None,
    method: str = "dfm-piecewise",
    model: str | Model | None = "linear",
    group: str | None = None,
    value: str | None = None,
    arrivals: str | None = None,
    ahead: Any = None,
    levels: float | Sequence[float] = (0.8, 0.95),
    cutoffs: int = 6,
    keep: Sequence[str] = (),
    progress: bool = False,
) -> Forecast:
    """How much is still to come of rows that have arrived, when, and how sure that is.

    A classifier is fitted on the log as it stands, and says of every open row, given its features and its age, how likely it is to turn positive by each day. Bands hold
    three things: the draws, more varied than independent ones where days of the past were; the fit, by fitting again without a tenth of the weeks (of the days, in a
    short log), ten times; and how far the same forecast was off at past dates beyond the draws.

    Parameters
    ----------
    log : EventLog
    horizon : duration
        A row is positive if its outcome comes within this long.
    as_of : instant, optional
        When to forecast from; by default the end of the log.
    lookback : duration, optional
        Only rows that arrived at most this long before; by default all.
    method : str
        Of a classifier, or ``"chain-ladder"``: the spreadsheet, which knows no features.
    model : str or Model
        The engine of the classifier; a setting left open is chosen by cross-validation.
    group : str, optional
        A feature by whose values the forecast is broken down.
    value : str, optional
        A column that says what a positive is worth: sums of it are forecast, and not counts. Where only positives have one, others count what
        positives (of their group) are worth on average, and it is no feature.
    arrivals : {"repeat"}, optional
        Add what rows will bring that are still to arrive, if the last four weeks are repeated.
    ahead : duration, optional
        How far to look ahead; by default the horizon, by which all that has arrived is final.
    levels : sequence of float
        Of the bands.
    cutoffs : int
        How many dates of the past to forecast from as well.
    keep : sequence of str
        Features to use though they seem to know the outcome.
    progress : bool
        Show a progress bar, where somebody looks.

    Examples
    --------
    >>> from belated.datasets import simulate_clicks
    >>> from belated import EventLog, LinearModel
    >>> log = EventLog.from_frame(simulate_clicks(60, 200), arrival="click_time", outcome="conversion_time")
    >>> found = forecast(log, horizon="14d", as_of="2024-02-12", model=LinearModel(l2=1e-4), cutoffs=0)
    >>> found.total["rows"], found.total["positive"], round(found.total["to_come"], -1), found.total["came"]
    (2777, 324, 80.0, 106.0)
    """
    require_log(log, "forecast")
    if log.on_cluster:
        raise ValueError("a forecast wants its rows here: forecast(log.sample(0.1).collect(), ...), say.")
    if arrivals not in (None, "repeat"):
        raise ValueError(f"arrivals={arrivals!r} is not known; leave it out, or say 'repeat'.")
    levels = list(levels) if isinstance(levels, Iterable) else [levels]
    if not levels or not all(is_number(level) and 0 < level < 1 for level in levels):
        raise ValueError(f"levels={levels!r} must be numbers between 0 and 1.")
    if method not in (CHAIN_LADDER, "auto") and method not in METHODS:
        raise ValueError(f"method={method!r} is not known; choose {CHAIN_LADDER} or one of {', '.join(METHODS)}.")
    if method == CHAIN_LADDER and isinstance(model, str) and model != "linear":
        raise ValueError(
            f"model={model!r} goes with a classifier, and the chain ladder is none: leave the model out, or the method."
        )
    log.refuse_future("arrival", "outcome")
    limit = parse_duration(horizon, "horizon", log.clock)
    now = log.until if as_of is None else parse_instant(as_of, "as_of", log.clock)
    if not log.first <= now <= log.until:
        raise ValueError(
            f"as_of={as_of!r} is outside the log, which runs from {show_instant(log.first, log.clock)} to {show_instant(log.until, log.clock)}. Take a time in between."
        )
    reach = now - log.first if lookback is None else parse_duration(lookback, "lookback", log.clock)
    span = limit if ahead is None else parse_duration(ahead, "ahead", log.clock)
    calendar = Calendar(now, span, log.grid, log.clock)
    values = None if value is None else ValueColumn.read(log, value)
    if values is not None and values.of_positives:
        log = log.without_features(values.name)
    model = "linear" if model is None else model
    bare = not log.features
    if bare:  # nothing to learn from but times
        log, method = log.without_features(), CHAIN_LADDER
    rows = KnownRows.of(log, now, reach, limit, values, group)
    _check(rows, now, log)
    if method != CHAIN_LADDER:
        check_columns(log, limit, keep)
    dates = past_dates(log, now, limit, cutoffs)
    fits = 2 + BLOCKS + len(dates)
    with progress_bar("Forecasting", fits, progress) as advance:
        done = _Counter(advance)
        arrived = Calendar(now, limit, log.grid, log.clock)
        cohort = max(min(arrived.size, DAY), log.grid)
        family: Family = ChainLadderFamily(cohort) if method == CHAIN_LADDER else ModelFamily(method, model)
        past = look_back(log, family, dates, now, limit, span, reach, values, cohort, done)
        family = family.chosen(rows)
        done()
        made = FittedSums(rows, calendar, arrived, family, arrivals, done)
    end = now + span
    came = came_until(log, made.unripe, end) if log.until >= end else None
    plain = PlainForecast(made, past, levels, values is None, log.clock, came)
    settings = {
        "horizon": rows.horizon,
        "method": method,
        "model": None if method == CHAIN_LADDER else type(getattr(family, "engine", None)).__name__,
        "group": group,
        "value": value,
        "arrivals": arrivals,
        "weeks": made.new.weeks if made.new is not None else None,
        "unit": calendar.unit,
        "arrival_unit": arrived.unit,
        "cohort": next((name for name, size in UNITS.items() if size >= cohort), "year"),
        "ahead": span / DAY,
        "levels": [float(level) for level in levels],
        "training_rows": len(rows.y),
        "variation": made.varied,
        "drift": float(made.off(past) ** 0.5),
        "silence": _silence(log, made),
    }
    logger.info("forecast: %s", settings)
    notes = notes_on_past(past, len(dates))
    if bare:
        notes.append("The log has no features, so this is the chain ladder.")
    newest = int(rows.arrival.max())
    if arrivals and now - newest > max(DAY, log.grid):
        notes.append(
            f"No row arrived after {show_minute(newest, log.clock)}, {in_words((now - newest) / DAY)} before the forecast: the weeks that are repeated include this empty stretch. "
            f"If arrivals are known up to then only, forecast from then (as_of=, or --as-of)."
        )
    if group is not None and method == CHAIN_LADDER:
        notes.append(
            f"The chain ladder knows no {group}: what is to come of a {settings['cohort']} of arrival is spread over its rows alike."
        )
    if values is not None and values.of_positives:
        notes.append(
            f"Only positives have a {value}; others count what positives {'of their group ' if group else ''}are worth on average."
        )
    return Forecast(
        plain.total(),
        plain.history(),
        plain.by_outcome(),
        plain.by_arrival(),
        [] if group is None else plain.by_group(),
        [one.as_plain_data(log.clock) for one in past],
        errors_of(past),
        settings,
        notes,
    )


def _silence(log: EventLog, made: FittedSums) -> str | None:
    """What to say where outcomes seem to end before the arrivals; the forecast is then too low."""
    now, came = made.calendar.now, log.times[1]
    known = came[came <= now]
    last = int(known.max()) if len(known) else now
    at, today = (show_minute(instant, log.clock) for instant in (last, now))
    return silence(
        *made.expected_since(last + log.grid),
        at,
        today,
        f"If so, this forecast is too low: forecast from then, as_of='{at}' (--as-of).",
    )


class _Counter:
    def __init__(self, advance: Any) -> None:
        self.advance, self.count = advance, 0

    def __call__(self) -> None:
        self.count += 1
        self.advance(self.count)


def _check(rows: KnownRows, now: int, log: EventLog) -> None:
    if not rows.unripe.any():
        last = show_instant(int(rows.arrival.max()), log.clock)
        raise ValueError(
            f"every row is older than the horizon of {in_words(rows.horizon)} at {show_instant(now, log.clock)} (the last arrived at {last}), so nothing "
            f"is still to come. Forecast from an earlier time (as_of=, or --as-of)."
        )
    final = rows.y[~rows.unripe]
    if len(final) and final.all():
        raise ValueError(
            f"each of the {counted(len(final), 'row')} that are final is positive: there are no negatives to tell them from."
        )
    positive = int(rows.y.sum())
    if positive < _FEWEST:
        raise ValueError(
            f"{counted(positive, 'row')} of {len(rows.y)} positive so far: a forecast needs at least {_FEWEST} to learn from."
        )
    oldest = float(rows.elapsed.max())
    if oldest < rows.horizon * 0.995:
        raise ValueError(
            f"the oldest row is {oldest:.3g} days old, and the horizon is {rows.horizon:.3g}: nobody has seen yet what comes after {oldest:.3g} days. Take a "
            f"shorter horizon, or a longer log or lookback."
        )
