"""
Leads and long sales cycles: which open leads are worth a call?
===============================================================

A lead that is a month old and has not closed is less likely to than a new one, but how much less depends on how long leads of its kind take. A model
for late labels gives both: what is left, and when. The data is simulated: leads of small and of large companies over a year.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from belated import DelayedFeedbackClassifier, EventLog, LinearModel

rng = np.random.default_rng(4)
n = 12_000
day = np.sort(rng.uniform(0, 365, n))
large = rng.uniform(size=n) < 0.3
source = rng.choice(["webinar", "fair", "referral"], n, p=[0.6, 0.25, 0.15])
margin = (
    -1.9 + np.select([source == "referral", source == "fair"], [1.2, 0.4], 0.0) + 0.3 * large
)
delay = rng.gamma(2.0, np.where(large, 35.0, 9.0))  # 70 days on average, or 18
won = (rng.uniform(size=n) < 1 / (1 + np.exp(-margin))) & (delay <= 180)
begin = pd.Timestamp("2024-01-01")
leads = pd.DataFrame(
    {
        "created": begin + pd.to_timedelta(day, unit="D"),
        "won": begin + pd.to_timedelta(np.where(won, day + delay, np.nan), unit="D"),
        "size": np.where(large, "large", "small"),
        "source": source,
    }
)
log = EventLog.from_frame(leads, arrival="created", outcome="won")
today = begin + pd.Timedelta(days=270)
snap = log.snapshot(today, lookback="270d", horizon="180d")
clf = DelayedFeedbackClassifier(model=LinearModel(l2=1e-5)).fit_snapshot(snap)

# %%
# For each lead that is still open: the probability that it will still be won, and when, if at all.

is_open = snap.y == 0
chance = clf.predict_proba(snap.X[is_open], elapsed=snap.elapsed[is_open])[:, 1]
when = clf.predict_delay(snap.X[is_open], [0.5])[:, 0]
table = snap.X[is_open].assign(
    age=snap.elapsed[is_open].round(), chance=chance.round(3), typical_days=when.round()
)
print(table.sort_values("chance", ascending=False).head(8).to_string(index=False))

# %%
# The same lead as it waits: a small company that has been silent for six weeks is lost; a large one is not even late. And is that right? It is known by now what became
# of the leads that were open that day.

ages = np.linspace(0, 150, 76)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for size in ("small", "large"):
    one = pd.DataFrame({"size": [size] * len(ages), "source": "referral"})
    left.plot(
        ages, clf.predict_proba(one, elapsed=ages)[:, 1], label=f"{size} company, referral"
    )
left.set(
    xlabel="days without an answer", ylabel="chance that it will still be won", ylim=(0, None)
)
left.set_title("What silence means depends on who is silent")
left.legend()

came = leads.loc[leads["created"] <= today, "won"].notna().to_numpy()[is_open]
said = pd.DataFrame({"chance": chance, "came": came})
said = said.groupby(pd.cut(chance, [0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4])).mean()
right.plot([0, 0.4], [0, 0.4], color="grey", linestyle=":")
right.plot(said["chance"], said["came"], "o")
right.set(xlabel="chance given that day", ylabel="share won since")
right.set_title("Open leads: what was said, and what came")
plt.show()

# %%
print(
    f"{is_open.sum()} open leads, {chance.sum():.0f} expected to be won, {came.sum()} won since"
)
