"""The README's picture: the newest labels are wrong, and what that costs (simulated clicks)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from belated import DelayedFeedbackClassifier, EventLog
from belated.datasets import simulate_clicks

RED, BLUE, GREY, INK = "#c53030", "#2b6cb0", "#8a94a3", "#1a202c"
DAYS = 21

log = EventLog.from_frame(simulate_clicks(), arrival="click_time", outcome="conversion_time")
snap = log.snapshot("2024-02-12", lookback=f"{DAYS}d", horizon="14d")
final = log.matured("2024-01-22", "2024-02-12", horizon="14d")
test = log.matured("2024-02-12", "2024-02-19", horizon="14d")

clf = DelayedFeedbackClassifier(horizon=14.0).fit_snapshot(snap)
age = np.floor(snap.elapsed).astype(int)
known, predicted, true = (
    100 * np.bincount(age, values) / np.bincount(age) for values in (snap.y, clf.predict_proba(snap.X)[:, 1], final.y)
)

losses = {}
for name, method in {"labels as they are": "bl", "wait for 14 days": "tw", "belated": "dfm-piecewise"}.items():
    fitted = DelayedFeedbackClassifier(method, window=14.0, horizon=14.0).fit_snapshot(snap)
    losses[name] = log_loss(test.y, fitted.predict_proba(test.X)[:, 1])
oracle = log_loss(test.y, DelayedFeedbackClassifier("bl").fit(snap.X, final.y).predict_proba(test.X)[:, 1])
excess = {name: 100 * (loss / oracle - 1) for name, loss in losses.items()}
print(excess)

plt.rcParams |= {"font.size": 13, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 2), constrained_layout=True)
when = -np.arange(DAYS) - 0.5
left.fill_between(when, known, true, color=RED, alpha=0.1, lw=0)
left.plot(when, true, color=GREY, lw=2.5)
left.plot(when, predicted, color=BLUE, lw=2.5)
left.plot(when, known, color=RED, lw=2.5)
left.annotate("what will be true", (-13, true[13]), xytext=(-9.6, 19.9), color="#5a6472", fontweight="bold")
left.annotate("what belated predicts", (-8, predicted[8]), xytext=(-9.6, 18.2), color=BLUE, fontweight="bold")
left.annotate("what the table says today", (-3, known[3]), xytext=(-12.5, 4), color=RED, fontweight="bold")
left.set(ylim=(0, 23), xlim=(-DAYS, 0), ylabel="clicks that convert (%)", xlabel="day of the click (simulated log)")
left.set_xticks([-21, -14, -7, 0], ["3 weeks ago", "2 weeks", "1 week", "today"])
left.set_title("The newest labels are the most wrong", loc="left", fontweight="bold", fontsize=14)

names = list(excess)[::-1]
bars = right.barh(names, [excess[name] for name in names], color=[BLUE, GREY, RED], height=0.6)
right.bar_label(bars, [f"{excess[name]:+.1f}%" for name in names], padding=5, fontweight="bold")
right.set_xlim(0, max(excess.values()) * 1.25)
right.spines["bottom"].set_visible(False)
right.set_xticks([])
right.tick_params(left=False)
right.set_title("What it costs (log loss)", loc="left", fontweight="bold", fontsize=14)
right.set_xlabel("next week, above a model\ntrained on final labels")
figure.savefig(Path(__file__).with_name("overview.png"), dpi=110)
