"""The README's picture: why recent labels are wrong, and what each method makes of it (simulated clicks)."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from belated import DelayedFeedbackClassifier, EventLog
from belated.datasets import simulate_clicks

METHODS = ["bl", "tw", "convdf", "rescale", "dfm", "fsiw", "dfm-piecewise"]

log = EventLog.from_frame(simulate_clicks(), arrival="click_time", outcome="conversion_time")
snap = log.snapshot("2024-02-12", lookback="21d", horizon="14d")
final = log.matured("2024-01-22", "2024-02-12", horizon="14d")
test = log.matured("2024-02-12", "2024-02-19", horizon="14d")
days = np.floor(snap.elapsed).astype(int)
seen, true = (np.bincount(days, labels) / np.bincount(days) for labels in (snap.y, final.y))

excess = {}
oracle = log_loss(test.y, DelayedFeedbackClassifier("bl").fit(snap.X, final.y).predict_proba(test.X)[:, 1])
for name in METHODS:
    clf = DelayedFeedbackClassifier(name, window=7.0, horizon=14.0)
    clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    excess[name] = 100 * (log_loss(test.y, clf.predict_proba(test.X)[:, 1]) / oracle - 1)

plt.rcParams |= {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), constrained_layout=True)
ages = np.arange(len(seen))
left.plot(ages, 100 * true, color="#2b6cb0", lw=2, label="in the end")
left.plot(ages, 100 * seen, color="#c53030", lw=2, label="known today")
left.fill_between(ages, 100 * seen, 100 * true, color="#c53030", alpha=0.12)
left.set_xticks(range(0, 21, 5))
left.invert_xaxis()
left.set(xlabel="age of the click (days; simulated)", ylabel="converted (%)", ylim=(0, None))
left.set_title("The newest labels are the most wrong", loc="left", fontweight="bold")
left.legend(frameon=False, loc="lower left")
names = sorted(excess, key=lambda name: -excess[name])
right.barh(names, [excess[name] for name in names], color=["#c53030" if n == "bl" else "#2b6cb0" for n in names])
right.set(xlabel="log loss above an oracle with final labels (%)")
right.set_title("The right correction closes the gap", loc="left", fontweight="bold")
figure.savefig(Path(__file__).with_name("overview.png"), dpi=110)
