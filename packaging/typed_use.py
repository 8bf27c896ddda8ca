"""What a user writes who checks types: `mypy --strict` finds nothing wrong here, with the installed wheel."""

from __future__ import annotations

from pathlib import Path

from belated import (
    DFM,
    Backtest,
    DelayedFeedbackClassifier,
    EventLog,
    LinearModel,
    Snapshot,
    backtest,
    forecast,
    load,
)
from belated.datasets import simulate_clicks


def fit(log: EventLog, as_of: str) -> DelayedFeedbackClassifier:
    """A classifier of what was known on a day."""
    snap: Snapshot = log.snapshot(as_of=as_of, lookback="21d", horizon="14d")
    clf = DelayedFeedbackClassifier(DFM(delay="weibull"), model=LinearModel(l2=1e-4))
    return clf.fit_snapshot(snap)


def compare(log: EventLog) -> str:
    """The recommended method."""
    result: Backtest = backtest(log, horizon="14d", cutoffs=3, methods=["tw", "dfm-piecewise"], progress=False)
    recommended = result.recommend()
    return f"{recommended.method}: {recommended.log_loss:.4f}"


def main(folder: Path) -> None:
    """Fits, saves, loads, predicts, and looks ahead."""
    log = EventLog.from_frame(
        simulate_clicks(days=60, clicks_per_day=200), arrival="click_time", outcome="conversion_time"
    )
    fit(log, "2024-02-12").save(folder / "model.skops")
    clf = load(folder / "model.skops")
    rate = float(clf.predict_proba(log.matured("2024-02-12", "2024-02-19", horizon="14d").X)[:, 1].mean())
    print(f"{rate:.3f}", compare(log))
    print(forecast(log, horizon="14d", as_of="2024-02-12").verdict)


if __name__ == "__main__":
    main(Path())
