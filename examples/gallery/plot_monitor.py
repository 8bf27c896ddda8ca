"""
Is the model still right, before its labels are in?
===================================================

Scores go out every day; whether they were right is known a month later. From scores and outcomes alone (no features, no model) ``monitor`` says how good
the last weeks are, with intervals, and whether the rate has changed or only the delays. The scores are simulated: from day 70 on, 30% fewer turn positive.
"""

import matplotlib.pyplot as plt

import belated
from belated.datasets import simulate_scores

scores, outcomes = simulate_scores(50_000, rate_change=0.7)
found = belated.monitor(
    scores,
    outcomes,
    key="id",
    time="scored_at",
    score="p",
    outcome="converted_at",
    horizon="30d",
    by="segment",
    fail_on=["calibration=0.9..1.1"],
)
print(found.verdict)
print("limits broken:", found.failed)

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
belated.plot.monitor(found, ax=left)
left.set_title("Predicted over actual, by week")
belated.plot.monitor(found, metric="delay", ax=right)
right.set_title("Have delays changed?")
plt.show()

# %%
# What a plain count would say: the newest weeks look far worse than they are, always, and a real fall is lost in that.

for period in found.periods[-5:]:
    value, low, high = period["calibration"]
    so_far = period["expected"] / period["share_in"] / period["positive"]
    print(
        f"week of {period['period']}, {period['share_in']:.0%} of labels in: predicted over actual {value:.2f}"
        f" ({low:.2f} to {high:.2f}); over what is there so far {so_far:.2f}"
    )

# %%
# Its own past: what it would have said of weeks that are final now.

ax = belated.plot.monitor(found, metric="check")
ax.set_title("What was said early, and the truth")
plt.show()
