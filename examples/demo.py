"""Fit every method on a simulated click log, and compare each with an oracle that knew the final labels."""

from __future__ import annotations

from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.metrics import average_precision_score, log_loss

from belated import DelayedFeedbackClassifier, EventLog, LinearModel
from belated.datasets import simulate_clicks
from belated.methods import METHODS

console = Console()
clicks = simulate_clicks(seed=0)
log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time")

snap = log.snapshot(as_of="2024-02-12", lookback="21d", horizon="14d")
final = log.matured("2024-01-22", "2024-02-12", horizon="14d")
test = log.matured("2024-02-12", "2024-02-19", horizon="14d")
console.print(f"Simulated clicks. {snap!r}")
console.print(f"{snap.y.mean():.1%} have converted so far; {final.y.mean():.1%} of the same clicks will in the end.\n")

scores = {}
for name in track(["oracle", *METHODS], description="Fitting", console=console):
    model = LinearModel(l2=1e-5)
    if name == "oracle":
        clf = DelayedFeedbackClassifier(method="bl", model=model).fit(snap.X, final.y)
    else:
        clf = DelayedFeedbackClassifier(method=name, window=7.0, horizon=14.0, model=model)
        clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    p = clf.predict_proba(test.X)[:, 1]
    scores[name] = log_loss(test.y, p), p.mean() / test.y.mean(), average_precision_score(test.y, p)

table = Table(title=f"The next seven days: {len(test)} clicks, {test.y.mean():.1%} converted (simulated)")
table.add_column("method")
for heading in ("log loss", "calibration ratio", "PR AUC"):
    table.add_column(heading, justify="right")
for name, (loss, ratio, area) in sorted(scores.items(), key=lambda item: item[1][0]):
    style = "bold green" if name == "oracle" else "red" if name == "bl" else ""
    table.add_row(name, f"{loss:.4f}", f"{ratio:.2f}", f"{area:.3f}", style=style)
console.print(table)
console.print(
    "Calibration ratio: mean prediction / true rate. oracle: knew the final labels. bl: took the labels as they stood."
)
