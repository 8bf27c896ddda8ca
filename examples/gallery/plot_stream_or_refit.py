"""
A stream, or a refit every night?
=================================

A model that learns from every hour's events is never older than an hour. It also sees each record once, where a nightly refit goes over all of them until it converges.
Which is better depends on how many rows a day there are and how fast they change, so replay your own log. Here: simulated clicks in campaigns.
"""

import matplotlib.pyplot as plt
import numpy as np

from belated import EventLog, replay
from belated.datasets import simulate_campaigns

log = EventLog.from_frame(
    simulate_campaigns(30_000),
    arrival="click_time",
    outcome="conversion_time",
    until="2024-03-01",
)
found = replay(
    log,
    horizon="7d",
    warmup="20d",
    step="6h",
    wait="6h",
    methods=["vanilla", "fnw", "hazard-heads", "pretrained", "dfm-piecewise"],
    refit="1d",
    n_jobs=1,
    progress=False,
)
plain = found.summary()
for name, scores in sorted(plain["methods"].items(), key=lambda item: item[1]["log_loss"]):
    print(
        f"{name:14} log loss {scores['log_loss']:.4f}   calibration {scores['calibration_ratio']:.2f}"
    )

# %%
# The same week by week, relative to the oracle, which learns from final labels at once.

rows = np.array(plain["steps"]["rows"], dtype=float)
week = (np.arange(len(rows)) // 28).astype(int)
figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
losses = {
    name: np.array(scores["log_losses"], dtype=float)
    for name, scores in plain["methods"].items()
}
for name in ("pretrained", "fnw", "hazard-heads", "dfm-piecewise"):
    gap = [
        np.nansum((losses[name] - losses["oracle"])[week == w] * rows[week == w])
        / rows[week == w].sum()
        for w in np.unique(week)
    ]
    axes.plot(
        np.unique(week) + 1,
        gap,
        "o-",
        label=name + (" (refit each night)" if name == "dfm-piecewise" else ""),
    )
axes.set(
    xlabel="week after the warm-up",
    ylabel="log loss above the oracle",
    xticks=np.unique(week) + 1,
)
axes.set_title("What learning at once is worth")
axes.legend()
plt.show()

# %%
print(plain["verdict"])

# %%
# ``vanilla`` takes the first label for final and learns that hardly anybody converts. With a few hundred clicks a day, as here, a nightly refit of a batch method is hard
# to beat; with millions a day it is the refit that lags. The verdict is of this log alone.
