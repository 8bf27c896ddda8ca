"""
Delays differ by segment: who looks bad only because they are slow?
===================================================================

Two kinds of customers buy equally often, but one takes ten times as long. On labels as they stand the slow ones look like poor customers. The data is
simulated, and the truth is nearly the same rate for both (a few of the slow ones buy after the horizon).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from belated import DelayedFeedbackClassifier, EventLog, LinearModel

rng = np.random.default_rng(1)
n = 20_000
day = np.sort(rng.uniform(0, 35, n))
business = rng.uniform(size=n) < 0.5
rate = np.where(rng.uniform(size=n) < 0.5, 0.15, 0.25)
delay = rng.exponential(np.where(business, 8.0, 0.8))
bought = (rng.uniform(size=n) < rate) & (delay <= 21)
table = pd.DataFrame(
    {
        "visited": pd.Timestamp("2024-03-01") + pd.to_timedelta(day, unit="D"),
        "bought": pd.Timestamp("2024-03-01")
        + pd.to_timedelta(np.where(bought, day + delay, np.nan), unit="D"),
        "customer": np.where(business, "business", "private"),
        "channel": np.where(rate == 0.25, "search", "display"),
    }
)
log = EventLog.from_frame(table, arrival="visited", outcome="bought")
snap = log.snapshot("2024-04-04", lookback="28d", horizon="21d")
both = pd.DataFrame({"customer": ["business", "private"], "channel": ["search", "search"]})

# %%
# What each method believes of a visitor from search, by kind of customer:

methods = ["bl", "rescale", "hazard", "dfm-piecewise"]
fitted = {
    m: DelayedFeedbackClassifier(m, window=7.0, model=LinearModel(l2=1e-5)).fit_snapshot(snap)
    for m in methods
}
believed = pd.DataFrame(
    {name: clf.predict_proba(both)[:, 1] for name, clf in fitted.items()},
    index=both["customer"],
)
search = table["channel"] == "search"
truth = [bought[search & (table["customer"] == kind)].mean() for kind in both["customer"]]
print(believed.round(3).assign(truth=np.round(truth, 3)).to_string())

# %%
# ``dfm-piecewise`` has two answers for each kind: how many, and how soon. The second is a curve:

ages = np.linspace(0, 21, 85)
curves = fitted["dfm-piecewise"].predict_incidence(both, ages)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
places = np.arange(len(methods))
for shift, kind in ((-0.2, 0), (0.2, 1)):
    left.bar(places + shift, believed.iloc[kind], 0.38, label=both["customer"][kind])
left.axhline(np.mean(truth), color="black", linestyle="--", label="truth, mean of both")
left.set_xticks(places, methods)
left.set(ylabel="believed rate")
left.set_title("Slow is not poor")
left.legend()
for kind in (0, 1):
    right.plot(ages, curves[kind], label=both["customer"][kind])
right.set(xlabel="age, days", ylabel="positive by this age")
right.set_title("dfm-piecewise: how many, and how soon")
right.legend()
plt.show()

# %%
# ``rescale`` multiplies all odds by one number, so the slow ones stay behind. ``hazard`` has one number for both questions, and whoever is slow must convert less.
# A model with two numbers tells them apart.
