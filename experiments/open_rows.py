"""What was predicted for rows that had waited, against what came: past snapshots of the hotel bookings, by age.

python experiments/open_rows.py FOLDER    with H1.parquet and H2.parquet
"""

from __future__ import annotations

import sys

import numpy as np

from belated import DelayedFeedbackClassifier, EventLog, LinearModel
from belated.datasets import load_hotel_bookings

HORIZON, LOOKBACK = 90, "180d"
DATES = [f"2016-{month:02d}-28" for month in range(2, 9)]
METHODS = ["dfm-piecewise", "hazard", "fsiw", "soft-labels", "tw", "bl"]
EDGES = [0, 7, 30, 60, HORIZON]

log = EventLog.from_frame(load_hotel_bookings(sys.argv[1]), arrival="booked", outcome="cancelled")
arrival, outcome = log.times
said = {name: np.zeros((len(DATES), len(EDGES) - 1)) for name in METHODS}
came, rows = np.zeros((len(DATES), len(EDGES) - 1)), np.zeros(len(EDGES) - 1)
for k, date in enumerate(DATES):
    snap = log.snapshot(date, lookback=LOOKBACK, horizon=f"{HORIZON}d")
    final = log.hindsight_at(snap.as_of_micros, round(180 * 86400e6), round(HORIZON * 86400e6)).y
    still_open = (snap.y == 0) & (snap.elapsed < HORIZON)
    code = np.digitize(snap.elapsed[still_open], EDGES) - 1
    came[k], rows = (
        np.bincount(code, final[still_open], len(EDGES) - 1),
        rows + np.bincount(code, minlength=len(EDGES) - 1),
    )
    for name in METHODS:
        clf = DelayedFeedbackClassifier(name, window=62.0, horizon=90.0, model=LinearModel(l2=1e-4)).fit_snapshot(snap)
        p = clf.predict_proba(snap.X, elapsed=snap.elapsed)[:, 1]
        said[name][k] = np.bincount(code, p[still_open], len(EDGES) - 1)

print(
    f"{len(DATES)} dates; rows open at ages up to {EDGES[1:]} days: {rows.astype(int).tolist()}; came {came.sum(axis=0).astype(int).tolist()}"
)
for name, sums in said.items():
    ratio = sums.sum(axis=0) / came.sum(axis=0)
    off = np.abs(sums.sum(axis=1) / came.sum(axis=1) - 1).mean()
    print(
        f"{name}: said / came by age {ratio.round(2).tolist()}, all {sums.sum() / came.sum():.2f}; a date is off by {off:.0%} on average"
    )
