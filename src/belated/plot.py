"""Pictures for notebooks and papers, in the manner of scikit-learn's displays.

Each function draws on ``ax``, or on a new figure of pyplot's where there is none, and returns the axes. Titles are left to you. Other
keywords go to the main artist: ``belated.plot.delay_curve(log, color="black", lw=2)``. What is drawn may be the object that belated gave, or its
``summary()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from belated.extras import needs

if TYPE_CHECKING:
    from belated.data.event_log import EventLog
    from belated.evaluation.backtest import Backtest
    from belated.evaluation.diagnosis import Diagnosis
    from belated.forecasting.forecast import Forecast
    from belated.monitoring.lift import Lift
    from belated.monitoring.monitor import Monitor

__all__ = ["calibration", "delay_curve", "forecast", "lift", "maturity", "method_table", "monitor"]

Plain = dict[str, Any]


def delay_curve(log: EventLog | Diagnosis | Plain, *, horizon: Any = None, ax: Any = None, **style: Any) -> Any:
    """The share of all positives that have been seen by each age, with a 95% band, and the window that would be suggested.

    Parameters
    ----------
    log : EventLog, or what :func:`belated.diagnose` found
    horizon : duration, optional
        Of a log: later outcomes do not count. By default there is no limit.
    ax : Axes, optional
    **style
        Of the curve, as for ``Axes.step``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import simulate_clicks
    >>> log = belated.EventLog.from_frame(simulate_clicks(30, 200), arrival="click_time", outcome="conversion_time")
    >>> belated.plot.delay_curve(log, horizon="14d", color="black").get_xlabel()
    'age, days'
    """
    with needs("report"):
        from belated.report.delay_pictures import paint_delay_curve

    return _draw(paint_delay_curve, _diagnosis(log, horizon), ax, style)


def maturity(log: EventLog | Diagnosis | Plain, *, horizon: Any = None, ax: Any = None, **style: Any) -> Any:
    """The share of rows that are positive so far, by time of arrival, and as expected in the end.

    Parameters
    ----------
    log : EventLog, or what :func:`belated.diagnose` found
    horizon : duration, optional
        Of a log: later outcomes do not count. By default there is no limit.
    ax : Axes, optional
    **style
        Of the curve of what is expected, as for ``Axes.plot``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import example_log
    >>> belated.plot.maturity(example_log(), horizon="7d").get_ylabel()
    'share of rows'
    """
    with needs("report"):
        from belated.report.delay_pictures import paint_maturity

    return _draw(paint_maturity, _diagnosis(log, horizon), ax, style)


def calibration(
    result: Backtest | Plain, *, method: str | Sequence[str] | None = None, ax: Any = None, **style: Any
) -> Any:
    """The rate of positives against the mean prediction in ten bins, with 95% intervals, of the rows that a backtest predicted.

    Parameters
    ----------
    result : Backtest
    method : str or sequence of str, optional
        By default the one recommended, ``"bl"`` and the oracle.
    ax : Axes, optional
    **style
        Of the curves, as for ``Axes.errorbar``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import example_log
    >>> result = belated.backtest(example_log(), horizon="7d", methods=["tw"], cutoffs=2, n_jobs=1, progress=False)
    >>> belated.plot.calibration(result, method="tw").get_xlabel()
    'mean prediction'
    """
    with needs("report"):
        from belated.report.backtest_pictures import paint_calibration_of, special

    plain = _scores(result)
    names = special(plain) if method is None else [method] if isinstance(method, str) else list(method)
    for name in names:
        if name not in plain["methods"]:
            known = ", ".join(sorted(plain["methods"]))
            raise ValueError(f"method={name!r} is not in this backtest; there are {known}.")

    def paint(axes: Any, plain: Plain, look: Any, **style: Any) -> None:
        paint_calibration_of(axes, plain, names, look, **style)

    return _draw(paint, plain, ax, style)


def method_table(result: Backtest | Plain, *, ax: Any = None, **style: Any) -> Any:
    """The mean log loss of each method over the cut-offs, with a 95% interval from how they differ; the best on top.

    Parameters
    ----------
    result : Backtest
    ax : Axes, optional
    **style
        Of the dots, as for ``Axes.errorbar``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import example_log
    >>> result = belated.backtest(example_log(), horizon="7d", methods=["tw"], cutoffs=2, n_jobs=1, progress=False)
    >>> belated.plot.method_table(result).get_xlabel()
    'log loss, with 95% intervals'
    """
    with needs("report"):
        from belated.report.backtest_pictures import paint_methods

    return _draw(paint_methods, _scores(result), ax, style)


def forecast(f: Forecast | Plain, *, what: str = "cumulated", ax: Any = None, **style: Any) -> Any:
    """How much is still to come.

    Parameters
    ----------
    f : Forecast
    what : {"cumulated", "by_outcome", "by_arrival", "by_group", "past"}
        The fan of all that will have come; what comes on each day; what each day of arrival, or each group, has and will have; or forecasts
        at dates of the past beside what came.
    ax : Axes, optional
    **style
        Of what is expected: a line, bars or dots.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import simulate_clicks
    >>> log = belated.EventLog.from_frame(simulate_clicks(), arrival="click_time", outcome="conversion_time")
    >>> found = belated.forecast(log, horizon="14d", as_of="2024-02-12", method="chain-ladder", cutoffs=2)
    >>> belated.plot.forecast(found).get_ylabel()
    'positives'
    """
    with needs("report"):
        from belated.report import forecast_pictures as pictures

    plain = _plain(f, "total", "by_outcome")
    paint = _chosen(
        "what",
        what,
        {
            "cumulated": pictures.paint_cumulated,
            "by_outcome": pictures.paint_by_outcome,
            "by_arrival": pictures.paint_by_arrival,
            "by_group": pictures.paint_by_group,
            "past": pictures.paint_past,
        },
    )
    if what in ("by_group", "past") and not plain[what]:
        raise ValueError(
            f"what={what!r}: this forecast has no {'group' if what == 'by_group' else 'dates of the past'}."
        )
    return _draw(paint, plain, ax, style)


def monitor(m: Monitor | Plain, *, metric: str = "calibration", ax: Any = None, **style: Any) -> Any:
    """A figure by period of scoring with 95% intervals, hollow where labels are still to come; a colour for each version of the model.

    Parameters
    ----------
    m : Monitor
    metric : {"calibration", "oe", "rate", "log_loss", "auc", "brier", "delay", "same_age", "share_in", "segments", "check"}
        Predicted over actual, observed over expected, the final rate, ...; ``"same_age"`` compares with earlier periods when they were as old; ``"segments"`` shows
        predicted over actual by segment, and ``"check"`` what the monitor said of periods that are final now.
    ax : Axes, optional
    **style
        Of the dots.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import simulate_scores
    >>> scores, outcomes = simulate_scores(10_000)
    >>> columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at"}
    >>> found = belated.monitor(scores, outcomes, **columns, horizon="30d")
    >>> belated.plot.monitor(found, metric="auc").get_ylabel()
    'AUC'
    """
    with needs("report"):
        from belated.report import monitor_pictures as pictures

    plain = _plain(m, "periods", "segments")
    by_period = {name: partial(pictures.paint_metric, name=name) for name in pictures.NAMES}
    others = {"share_in": pictures.paint_share_in, "segments": pictures.paint_segments, "check": pictures.paint_check}
    paint = _chosen("metric", metric, {**by_period, **others})
    if metric in ("segments", "check") and not plain[metric]:
        advice = "say by= which" if metric == "segments" else "no period that is final had enough positives"
        raise ValueError(f"metric={metric!r}: this monitor has none; {advice}.")
    return _draw(paint, plain, ax, style)


def lift(found: Lift | Plain, *, ax: Any = None, **style: Any) -> Any:
    """What an experiment has shown so far, corrected for delays, from final labels alone, and from labels as they stand.

    Parameters
    ----------
    found : Lift
    ax : Axes, optional
    **style
        Of the dots, as for ``Axes.errorbar``.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import belated
    >>> from belated.datasets import example_log
    >>> found = belated.lift(example_log(), treatment="device", control="phone", horizon="7d")
    >>> belated.plot.lift(found).get_xlabel()
    'rate / rate of phone, with 95% intervals'
    """
    with needs("report"):
        from belated.report.lift_pictures import paint_lift

    return _draw(paint_lift, _plain(found, "effects", "dropped"), ax, style)


def _draw(paint: Any, plain: Plain, ax: Any, style: dict[str, Any]) -> Any:
    """On axes, new ones where there are none; with a legend."""
    with needs("report"):
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        from belated.report.marks import as_written
        from belated.report.palette import ON_WHITE
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(layout="constrained")
    # Short names are written out, so that c replaces color.
    paint(ax, plain, look=ON_WHITE, **normalize_kwargs(style, Line2D))
    if ax.get_legend_handles_labels()[1]:
        as_written(ax.legend().get_texts())
    return ax


def _plain(found: Any, *keys: str) -> Plain:
    """Its summary, which has these keys."""
    summary: Plain = found if isinstance(found, dict) else found.summary() if hasattr(found, "summary") else {}
    if not all(key in summary for key in keys):
        raise TypeError(f"this cannot be drawn from a {type(found).__name__}; see the documentation of the function.")
    return summary


def _diagnosis(log: Any, horizon: Any) -> Plain:
    from belated.data.event_log import EventLog

    if not isinstance(log, EventLog):
        if horizon is not None:
            raise ValueError("horizon= is for a log: what was diagnosed has the horizon that it was diagnosed with.")
        return _plain(log, "curve", "days")
    from belated.evaluation.diagnosis import diagnose

    return diagnose(log, horizon=horizon).summary()


def _scores(result: Any) -> Plain:
    """The scores of a backtest and the best of its methods, without what a recommendation fits on top."""
    if not hasattr(result, "cutoffs"):
        return _plain(result, "methods", "recommended")
    from belated.evaluation.recommendation import CrossFit, losses_by_cutoff
    from belated.evaluation.summary import score_methods

    return {"methods": score_methods(result), "recommended": CrossFit.of(losses_by_cutoff(result)).best}


def _chosen(name: str, value: str, among: dict[str, Any]) -> Any:
    if value not in among:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(among)}.")
    return among[value]
