"""Fit and backtest a method, a delay law and an engine that are not part of belated.

python examples/extending/run.py
"""

from __future__ import annotations

from toy_law import Lomax
from toy_method import Ramp
from toy_model import ScipyModel

from belated import DFM, DelayedFeedbackClassifier, EventLog, backtest
from belated.datasets import simulate_campaigns


def main(rows: int = 6000) -> None:
    clicks = simulate_campaigns(rows)  # simulated
    log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    snap = log.snapshot(as_of="2024-02-10", lookback="21d", horizon="14d")
    for method, model in ((Ramp(), None), (DFM(delay=Lomax()), None), ("dfm-piecewise", ScipyModel())):
        clf = DelayedFeedbackClassifier(method, window=7.0, model=model).fit_snapshot(snap)
        print(f"{clf}: {snap.y.mean():.3f} so far, {clf.predict_proba(snap.X)[:, 1].mean():.3f} expected")
    result = backtest(
        log, horizon="14d", methods={"ramp": Ramp(), "lomax": DFM(delay=Lomax())}, model=ScipyModel(), cutoffs=2
    )
    for name, scores in result.summary()["methods"].items():
        print(f"{name:8s} log loss {scores['log_loss']:.4f}")


if __name__ == "__main__":
    main()
