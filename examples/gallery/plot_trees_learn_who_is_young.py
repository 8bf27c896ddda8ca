"""
Why does my flexible model get worse with late labels?
======================================================

A linear model on labels as they stand is too low on average. Boosted trees are worse: anything that tells them how old a row is (an app version, a price list, a campaign number)
lets them learn that new rows are never positive. They then give that answer to every new row. Simulated data.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from belated import BoostingModel, DelayedFeedbackClassifier, EventLog, LinearModel

rng = np.random.default_rng(2)
n = 30_000
day = np.sort(rng.uniform(0, 45, n))
version = np.floor(day / 3)  # a new version of the app every three days
pages, price = rng.geometric(0.3, n), rng.lognormal(3, 0.6, n)
margin = np.where(price > 15, -3.2, -1.6) + np.where(
    (pages > 2) & (price > 15) & (price < 40), 3.0, 0.0
)
converts = rng.uniform(size=n) < 1 / (1 + np.exp(-margin))
delay = rng.exponential(5.0, n)
table = pd.DataFrame(
    {
        "clicked": pd.Timestamp("2024-03-01") + pd.to_timedelta(day, unit="D"),
        "converted": pd.Timestamp("2024-03-01")
        + pd.to_timedelta(np.where(converts, day + delay, np.nan), unit="D"),
        "version": version,
        "pages": pages,
        "price": price.round(2),
    }
)
log = EventLog.from_frame(table, arrival="clicked", outcome="converted")
snap = log.snapshot("2024-04-06", lookback="30d", horizon="14d")
test = log.matured("2024-04-06", "2024-04-09", horizon="14d")

# %%
# The version has nothing to do with conversion. Fit both kinds of models, on labels as they stand and with a correction.

trees = BoostingModel(threads=1)  # how many rounds is chosen in fit
choices = {
    "linear, bl": ("bl", LinearModel(l2=1e-5)),
    "trees, bl": ("bl", trees),
    "linear, dfm-piecewise": ("dfm-piecewise", LinearModel(l2=1e-5)),
    "trees, soft-labels": ("soft-labels", trees),
}
fitted = {
    name: DelayedFeedbackClassifier(m, window=7.0, model=e).fit_snapshot(snap)
    for name, (m, e) in choices.items()
}
for name, clf in fitted.items():
    p = clf.predict_proba(test.X)[:, 1]
    print(
        f"{name:22} log loss {log_loss(test.y, p):.4f}   predicted / true rate {p.mean() / test.y.mean():.2f}"
    )

# %%

rows = snap.X
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
versions = np.sort(rows["version"].unique())
for name in ("trees, bl", "trees, soft-labels"):
    p = fitted[name].predict_proba(rows)[:, 1]
    axes.plot(versions, [p[rows["version"] == v].mean() for v in versions], "o-", label=name)
final = log.matured("2024-03-07", "2024-04-06", horizon="14d")
axes.plot(
    versions,
    [final.y[final.X["version"] == v].mean() for v in versions],
    "k--",
    label="in the end",
)
axes.set(
    xlabel="version of the app (a new one every three days)", ylabel="rate", ylim=(0, None)
)
axes.set_title("Trees on labels as they stand learn who is young")
axes.legend()
plt.show()

# %%
# ``soft-labels`` takes the correction from a simple model, which has one law of delays for all rows, and the features from a strong one. Leaving the version out would
# help here, but any feature that drifts tells a little of the same.
