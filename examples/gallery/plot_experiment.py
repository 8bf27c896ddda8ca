"""
Can I read an experiment before its labels are in?
==================================================

A variant makes people buy **sooner**, and no more often. After two weeks, labels as they stand celebrate it. Dropping all rows in progress is right, and leaves nothing
to look at for a month. ``lift`` corrects each arm by its own delays. The data is simulated, and the true effect is nil.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import belated

rng = np.random.default_rng(6)
n = 24_000
day = np.sort(rng.uniform(0, 60, n))
variant = rng.choice(["control", "express"], n)
buys = rng.uniform(size=n) < 0.12
mean = np.where(variant == "express", 4.0, 9.0)
delay = -mean * np.log1p(
    rng.uniform(size=n) * np.expm1(-30 / mean)
)  # exponential, cut at 30 days
begin = pd.Timestamp("2024-03-01")
visits = pd.DataFrame(
    {
        "visited": begin + pd.to_timedelta(day, unit="D"),
        "bought": begin + pd.to_timedelta(np.where(buys, day + delay, np.nan), unit="D"),
        "variant": variant,
    }
)
log = belated.EventLog.from_frame(visits, arrival="visited", outcome="bought")

# %%
# Look on several days, for the picture. (To decide, fix one day in advance: looking again and again finds something by chance.)

days = [14, 21, 28, 35, 42, 56]
looks = {
    d: belated.lift(log, treatment="variant", horizon="30d", as_of=begin + pd.Timedelta(days=d))
    for d in days
}
kinds = {
    "labels as they stand": "as_they_stand",
    "rows in progress dropped": "dropped",
    "lift": "effects",
}
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
for shift, (label, kind) in zip((-0.8, 0, 0.8), kinds.items(), strict=True):
    found = {d + shift: getattr(look, kind)[0]["ratio"] for d, look in looks.items()}
    ratio = pd.DataFrame(found, index=["value", "low", "high"], dtype=float).T.dropna()
    bars = [ratio["value"] - ratio["low"], ratio["high"] - ratio["value"]]
    axes.errorbar(ratio.index, ratio["value"], bars, fmt="o", capsize=3, label=label)
early = {d + 0.8: look.effects[0]["ratio"][0] for d, look in looks.items() if d < 30}
axes.plot(
    list(early), list(early.values()), "oC2", mfc="w", zorder=5, label="lift before the horizon"
)
axes.axhline(1, color="black", linestyle=":", label="truth: no effect in the end")
axes.set(xlabel="day of the experiment", ylabel="rate of express / rate of control")
axes.set_title("An experiment whose variant is faster, not better")
axes.legend()
plt.show()

# %%
# The hollow points are from before the horizon: nobody has seen yet what comes late, so ``lift`` compares what comes within the age reached (there, faster *is* more),
# says so, and decides nothing.

print(looks[21].verdict)
print()
print(looks[35].verdict)
