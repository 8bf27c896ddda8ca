"""Pages of what was found, for those who work in Python: what the command line writes with ``--report``."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from belated.evaluation.backtest import Backtest
from belated.evaluation.diagnosis import Diagnosis, diagnose
from belated.extras import needs
from belated.forecasting.forecast import Forecast
from belated.monitoring.monitor import Monitor
from belated.streaming.replay_results import Replay
from belated.tables.writing import write_text

_ENOUGH = 200_000  # rows that tell about delays and columns


def write_report(
    found: Backtest | Diagnosis | Forecast | Monitor | Replay, path: str | Path, name: str = "log"
) -> None:
    """Write what was found as one HTML file, whole or not at all.

    Parameters
    ----------
    found : Backtest, Diagnosis, Forecast, Monitor or Replay
        What :func:`backtest`, :func:`diagnose`, :func:`forecast`, :func:`monitor` or :func:`replay` gave.
    path : path
    name : str
        What to call the log in the headline.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from belated import diagnose, write_report
    >>> from belated.datasets import example_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(diagnose(example_log(), horizon="7d"), f"{folder}/delays.html", name="clicks")
    ...     text = Path(folder, "delays.html").read_text()
    >>> "clicks" in text
    True
    """
    with needs("report"):
        from belated.report.diagnosis_page import render_diagnosis
        from belated.report.forecast_page import render_forecast
        from belated.report.monitor_page import render_monitor
        from belated.report.page import render
        from belated.report.replay_page import render_replay
    renderers: dict[type, Any] = {
        Backtest: render,
        Diagnosis: render_diagnosis,
        Forecast: render_forecast,
        Monitor: render_monitor,
        Replay: render_replay,
    }
    kind = next((kind for kind in renderers if isinstance(found, kind)), None)
    if kind is None:
        names = ", ".join(kind.__name__ for kind in renderers)
        raise TypeError(f"there is no page for a {type(found).__name__}; give one of {names}.")
    summary = comparison(found, name) if isinstance(found, Backtest) else {**found.summary(), "name": name}
    write_text(Path(path), renderers[kind]({"command": "", **summary}))


def comparison(found: Backtest, name: str) -> dict[str, Any]:
    """The summary of a backtest, with a diagnosis of its log."""
    log, settings = found.log, found.settings
    # What is said of delays and columns shows in some of the rows.
    some = log.sample(min(1.0, _ENOUGH / len(log))).collect() if log.on_cluster else log
    horizon, window = (timedelta(days=days) for days in (settings.horizon, settings.window))
    diagnosis = diagnose(some, horizon=horizon, window=window, group=settings.group)
    return {**found.summary(), "name": name, "train": None, "diagnosis": diagnosis.summary()}
