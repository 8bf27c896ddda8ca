"""
A campaign started yesterday: what is its rate?
===============================================

A new campaign has only young clicks, so its labels look bad whatever it is worth. Many a good campaign is switched off for that. Here a campaign starts
that converts three times as often as the others, and we ask every day what each method believes. The data is simulated.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from belated import DelayedFeedbackClassifier, EventLog, LinearModel

rng = np.random.default_rng(0)
n, start = 40_000, 30.0  # the campaign starts on day 30
day = np.sort(rng.uniform(0, 45, n))
campaign = rng.integers(0, 5, n)
campaign = np.where((day > start) & (rng.uniform(size=n) < 0.15), 5, campaign)
rate = np.array([0.10, 0.08, 0.12, 0.09, 0.11, 0.30])[campaign]
delay = rng.exponential(4.0, n)
converts = rng.uniform(size=n) < rate
table = pd.DataFrame(
    {
        "clicked": pd.Timestamp("2024-03-01") + pd.to_timedelta(day, unit="D"),
        "converted": pd.Timestamp("2024-03-01")
        + pd.to_timedelta(np.where(converts, day + delay, np.nan), unit="D"),
        "campaign": np.array(["a", "b", "c", "d", "e", "new"])[campaign],
    }
)
log = EventLog.from_frame(table, arrival="clicked", outcome="converted")

# %%
# Each day, fit on what was known then, and look at the prediction for the new campaign.

methods = ["bl", "tw", "convdf", "dfm-piecewise"]
new = table.loc[table["campaign"] == "new", ["campaign"]].head(1)
ages = [1, 2, 3, 4, 6, 8, 10, 12]
believed = {name: [] for name in methods}
for age in ages:
    today = pd.Timestamp("2024-03-31") + pd.Timedelta(days=age)
    snap = log.snapshot(today, lookback="28d", horizon="14d")
    for name in methods:
        clf = DelayedFeedbackClassifier(
            name, window=7.0, model=LinearModel(l2=1e-5)
        ).fit_snapshot(snap)
        believed[name].append(clf.predict_proba(new)[0, 1])

# %%

truth = 0.30 * -np.expm1(-14 / 4.0)
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
for name in methods:
    axes.plot(ages, believed[name], "o-", label=name)
axes.axhline(truth, color="black", linestyle="--", label="truth")
axes.axhline(
    0.10 * -np.expm1(-14 / 4.0), color="grey", linestyle=":", label="the other campaigns"
)
axes.set(
    xlabel="days since the campaign started", ylabel="believed conversion rate", ylim=(0, 0.5)
)
axes.set_title("What each method believes of the new campaign")
axes.legend(ncol=2)
plt.show()

# %%
# Labels as they stand (``bl``) begin far too low and creep up. Waiting (``tw``) knows nothing for a week, and gives the rate of the others.
# ``convdf`` corrects by what was late a week ago, when the campaign did not exist. ``dfm-piecewise`` weighs each click by its own age, with delays
# borrowed from the other campaigns: it is near the truth from the first days on, as far as so few clicks allow.
