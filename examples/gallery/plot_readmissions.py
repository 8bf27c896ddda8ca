"""
Readmissions: are the probabilities right for this month's patients?
====================================================================

A hospital wants the risk of readmission within 90 days, for planning. That needs probabilities which are right, not only a good ranking, and they should come from
recent patients, since treatment changes. The data is simulated, and in it a new ward protocol lowered the risk in the last two months.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from belated import DelayedFeedbackClassifier, EventLog, LinearModel

rng = np.random.default_rng(5)
n = 30_000
day = np.sort(rng.uniform(0, 500, n))
ward = rng.choice(["cardiology", "surgery", "geriatrics"], n, p=[0.3, 0.5, 0.2])
age, previous = np.clip(rng.normal(66, 14, n), 18, 98).round(), rng.poisson(0.7, n)
protocol = np.where((day > 300) & (ward == "cardiology"), "new", "old")
margin = (
    -2.6
    + 0.02 * (age - 66)
    + 0.45 * previous
    + np.select([ward == "geriatrics", ward == "cardiology"], [0.6, 0.4], 0.0)
)
margin -= 0.9 * (protocol == "new")
delay = np.where(rng.uniform(size=n) < 0.5, rng.exponential(10, n), rng.uniform(0, 90, n))
readmitted = rng.uniform(size=n) < 1 / (1 + np.exp(-margin))
begin = pd.Timestamp("2023-01-01")
stays = pd.DataFrame(
    {
        "discharged": begin + pd.to_timedelta(day, unit="D"),
        "readmitted": begin
        + pd.to_timedelta(np.where(readmitted & (delay <= 90), day + delay, np.nan), unit="D"),
        "ward": ward,
        "age": age,
        "previous_stays": previous,
        "protocol": protocol,
    }
)
log = EventLog.from_frame(stays, arrival="discharged", outcome="readmitted")
today = begin + pd.Timedelta(days=360)  # the protocol is two months old
snap = log.snapshot(today, lookback="300d", horizon="90d")
test = log.matured(today, today + pd.Timedelta(days=45), horizon="90d")

# %%
# Three models: wait until all labels are final, take them as they stand, or correct for those that are still to come.

methods = {"tw": 90.0, "bl": None, "dfm-piecewise": None}
fitted = {
    m: DelayedFeedbackClassifier(m, window=w, model=LinearModel(l2=1e-5)).fit_snapshot(snap)
    for m, w in methods.items()
}
groups = (test.X["ward"] + ", " + test.X["protocol"]).to_numpy()
names = sorted(set(groups))
rows = {
    name: {m: clf.predict_proba(test.X)[groups == name, 1].mean() for m, clf in fitted.items()}
    for name in names
}
found = pd.DataFrame(rows).T.assign(truth=[test.y[groups == name].mean() for name in names])
print(found.round(3).to_string())

# %%

figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
for name, clf in fitted.items():
    p = clf.predict_proba(test.X)[:, 1]
    tenth = pd.qcut(p, 10, labels=False, duplicates="drop")
    axes.plot(
        [p[tenth == t].mean() for t in np.unique(tenth)],
        [test.y[tenth == t].mean() for t in np.unique(tenth)],
        "o-",
        label=name,
    )
top = axes.get_xlim()[1]
axes.plot([0, top], [0, top], color="grey", linestyle=":")
axes.set(
    xlabel="predicted risk, by tenths of patients", ylabel="share readmitted within 90 days"
)
axes.set_title("Patients of the next six weeks")
axes.legend()
plt.show()

# %%
# Labels as they stand are too low for everybody. Waiting ninety days never saw the new protocol, so it frightens cardiology with the risk of last year.
# The correction is right for the others. For the new protocol it is still too high, by as much as labels as they stand are too low: two months of it say little about
# what comes in the third, and the rest is taken from before.
