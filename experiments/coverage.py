"""Do bands of forecasts and intervals of monitors hold what came? In simulations, and for forecasts at past dates of the hotel bookings.

python experiments/coverage.py                simulations, about ten minutes
python experiments/coverage.py data/          and the hotel bookings in that folder, another five
"""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from belated import EventLog, LinearModel, forecast, monitor
from belated.datasets import load_hotel_bookings, simulate_clicks, simulate_scores

DRAWS = 100
DRAWS_OF_SCORES = 200
LEVELS = (0.5, 0.8, 0.95)
NOW = datetime(2024, 3, 31)
CHANGES = [
    {},
    {"rows": 12_000},
    {"rows": 2_000},
    {"rate_change": 0.7},
    {"uneven": 0.15},
    {"delay_change": 1.5},
    {"delay_change": 2.0},
    {"delay_change": 2.0, "rows": 12_000},
    {"delay_change": 0.5},
    {"rate_change": 1.3, "delay_change": 1.5},
]


def show(what: str, inside: dict[str, list[bool]], off: list[float]) -> None:
    shares = ", ".join(f"{level} holds {np.mean(hits):.0%}" for level, hits in inside.items())
    error = np.std(off, ddof=1) / np.sqrt(len(off))
    print(
        f"{what}: {shares}; mean error {np.mean(off):+.1%} (standard error {error:.1%}), mean absolute {np.mean(np.abs(off)):.1%}",
        flush=True,
    )


def of_forecasts(what: str, found: list[dict]) -> None:
    inside, off = defaultdict(list), []
    for total in found:
        off.append(total["to_come"] / total["came"] - 1)
        for level, (low, high) in total["bands"].items():
            inside[level].append(low <= total["came"] <= high)
    show(what, inside, off)


# Simulated clicks: 500 a day, horizon 14 days, forecast on day 44 of 60.
for drift in (0.0, 1.0):
    ladder, ours = [], []
    for seed in range(DRAWS):
        log = EventLog.from_frame(
            simulate_clicks(60, 500, drift=drift, seed=seed), arrival="click_time", outcome="conversion_time"
        )
        ask = {"horizon": "14d", "as_of": "2024-02-14", "cutoffs": 4, "levels": LEVELS}
        ours.append(forecast(log, model=LinearModel(l2=1e-4, tol=1e-5), **ask).total)
        ladder.append(forecast(log, method="chain-ladder", **ask).total)
    of_forecasts(f"simulated clicks, drift {drift:g}, forecast", ours)
    of_forecasts(f"simulated clicks, drift {drift:g}, chain ladder", ladder)

# The hotel bookings: every 16 days, a horizon of 90.
if len(sys.argv) > 1:
    table = load_hotel_bookings(Path(sys.argv[1]))
    log = EventLog.from_frame(table, arrival="booked", outcome="cancelled")
    ladder, ours = [], []
    for day in pd.date_range("2016-05-01", "2016-11-15", freq="16D"):
        ask = {"horizon": "90d", "as_of": day, "levels": LEVELS}
        ours.append(forecast(log, **ask).total)
        ladder.append(forecast(log, method="chain-ladder", **ask).total)
        print(
            f"  {day.date()}: {ours[-1]['to_come']:.0f} {ours[-1]['bands']['80%']}, came {ours[-1]['came']:.0f}, ladder {ladder[-1]['to_come']:.0f}",
            flush=True,
        )
    of_forecasts("hotel bookings, forecast", ours)
    of_forecasts("hotel bookings, chain ladder", ladder)

# Simulated scores: 40,000 over 120 days unless said otherwise, looked at on day 90, horizon 30; from day 70 on the rate, the delays or both have changed.
for changes in CHANGES:
    inside, off, told = defaultdict(list), defaultdict(list), []
    for seed in range(DRAWS_OF_SCORES):
        scores, outcomes = simulate_scores(**{"rows": 40_000, **changes, "days": 120, "seed": seed})
        found = monitor(
            scores.filter(pc.less_equal(scores["scored_at"], NOW)),
            outcomes.filter(pc.less_equal(outcomes["converted_at"], NOW)),
            key="id", time="scored_at", score="p", outcome="converted_at", horizon="30d", until=NOW, lags=(),
        )  # fmt: skip
        q, final = scores["p"].to_numpy(), np.zeros(len(scores), dtype=bool)
        final[outcomes["id"].to_numpy()] = True
        when, now = scores["scored_at"].to_numpy(), np.datetime64(NOW, "us")
        told.append(found.periods[-1]["delays"] != "unchanged")
        for weeks, row in zip(itertools.count(1), reversed(found.periods[-3:]), strict=False):
            start, end = (np.datetime64(row[name], "us") for name in ("period", "end"))
            mine = (when >= start) & (when < end) & (when <= now)
            loss = -np.where(final, np.log(q), np.log1p(-q))[mine].mean()
            for name, truth in (("oe", changes.get("rate_change", 1.0)), ("log_loss", loss)):
                value, low, high = row[name]
                inside[f"{name}, {weeks} weeks"].append(
                    low is not None and low <= truth <= (np.inf if high is None else high)
                )
                if value is not None:
                    off[name, weeks].append(value / truth - 1)
    show(f"monitor, {changes or 'no change'}", inside, off["oe", 1])
    print(f"  delays of the newest week said to have changed: {np.mean(told):.0%}", flush=True)
