"""
What does waiting cost?
=======================

Wait long, and labels are right but old. Wait briefly, and they are new but wrong. Between the two there is a best window, and the question is what it costs
beside a method that does not wait at all. The log is simulated: clicks in campaigns that come, go and change.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from belated import DelayedFeedbackClassifier, EventLog, LinearModel
from belated.datasets import simulate_campaigns

log = EventLog.from_frame(
    simulate_campaigns(), arrival="click_time", outcome="conversion_time", until="2024-03-01"
)
model = LinearModel(l2=1e-4)
days = ["2024-01-29", "2024-02-02", "2024-02-06", "2024-02-10"]
windows = [0.25, 0.5, 1, 2, 4, 7, 10, 14]


# %%
# On each of four days in the past, take what was known that day, fit, and predict the clicks of the next four days. Their final labels are known by now.


def score(method, window, day):
    snap = log.snapshot(day, lookback="21d", horizon="14d")
    end = np.datetime64(day) + np.timedelta64(4, "D")
    test = log.matured(day, str(end), horizon="14d")
    clf = DelayedFeedbackClassifier(method, window=window, model=model).fit_snapshot(snap)
    return log_loss(test.y, clf.predict_proba(test.X)[:, 1])


waiting = [np.mean([score("tw", window, day) for day in days]) for window in windows]
naive = np.mean([score("bl", None, day) for day in days])
corrected = np.mean([score("dfm-piecewise", None, day) for day in days])

# %%

figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.plot(windows, waiting, "o-", label="wait: rows older than the window (tw)")
axes.axhline(naive, color="tab:red", label="do not wait (bl)")
axes.axhline(
    corrected, color="tab:green", label="correct for what is still to come (dfm-piecewise)"
)
axes.set(
    xscale="log",
    xticks=windows,
    xticklabels=windows,
    xlabel="window, days",
    ylabel="log loss of the next days",
)
axes.minorticks_off()
axes.set_title("A window has to be chosen, and a correction does not")
axes.legend()
plt.show()

best = windows[int(np.argmin(waiting))]
print(
    f"labels as they stand {naive:.4f}; the best window, {best:g} days, {min(waiting):.4f}; corrected {corrected:.4f}"
)

# %%
# Nobody tells you the best window in advance, and it moves. A correction uses every click at its own age and has no window to choose.
