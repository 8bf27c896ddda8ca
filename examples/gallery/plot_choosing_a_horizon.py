"""
Which horizon should I choose?
==============================

The horizon is part of the target: "converted **within 30 days**". A long one counts more of what will ever come. It also makes you wait longer until anything is
final, and leaves less of your history to check a model on. One fitted model can answer for all shorter ones, so you need not choose too early. Simulated clicks.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated import DelayedFeedbackClassifier, EventLog
from belated.datasets import simulate_campaigns

log = EventLog.from_frame(
    simulate_campaigns(), arrival="click_time", outcome="conversion_time", until="2024-03-01"
)
horizons = [1, 3, 7, 14, 21, 30]

# %%
# What a horizon costs and brings. Of the positives that come within 30 days, so many come within a shorter one; of the log's sixty days, so many have
# final labels and can be used to check a model.

snap = log.snapshot("2024-02-15", lookback="40d", horizon="30d")
clf = DelayedFeedbackClassifier().fit_snapshot(snap)
incidence = clf.predict_incidence(snap.X, horizons).mean(axis=0)
for horizon, share in zip(horizons, incidence / incidence[-1], strict=True):
    print(
        f"{horizon:3d} days: {share:5.0%} of positives, {60 - horizon} days with final labels"
    )

# %%
# The same model predicts every shorter horizon. Is it right? Compare with clicks of the days after the fit, as far as their labels are final by now.

checked = [1, 3, 7, 14]
truth, said = [], []
for horizon in checked:
    test = log.matured("2024-02-15", "2024-02-16", horizon=f"{horizon}d")
    truth.append(test.y.mean())
    said.append(clf.predict_incidence(test.X, [horizon])[:, 0].mean())

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
left.plot(horizons, incidence / incidence[-1], "o-", label="positives of 30 days that count")
left.plot(horizons, 1 - np.array(horizons) / 60, "s-", label="history that can be checked")
left.set(xlabel="horizon, days", ylabel="share", ylim=(0, 1.05))
left.set_title("What a horizon brings and costs")
left.legend()
right.plot(checked, truth, "o", color="black", label="came")
right.plot(checked, said, "-", label="predicted by one model (horizon 30 days)")
right.set(xlabel="positive within so many days", ylabel="rate", ylim=(0, None))
right.set_title("One model, every shorter horizon")
right.legend()
plt.show()

# %%
# A rule that has served well: take the time at which your business stops caring, or the age by which 95% of what comes within a generous horizon has come, whichever is shorter; then look with
# ``belated describe`` whether your history is at least three times as long.
