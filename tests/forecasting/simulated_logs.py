"""Small simulated logs whose future is known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from belated import EventLog

START = pd.Timestamp("2024-01-01")


def simulated_log(seed=0, after=14.0, until=None, days=60.0, **how):
    """A log of the frame below, known up to ``after`` days after its last arrival, or ``until`` an instant."""
    end = START + pd.to_timedelta(days + after, "D")
    frame = simulated_frame(seed, days=days, **how)
    return EventLog.from_frame(frame, arrival="arrived", outcome="turned", until=end if until is None else until)


def simulated_frame(seed=0, n=3000, days=60.0, mean=4.0, rate=0.3, uneven=0.0):
    """Arrivals over ``days``; delays exponential, longer for kind b, none above 13 days. ``uneven`` is how much the log odds of days differ."""
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.uniform(0, days, n))
    kind, value = rng.uniform(size=n) < 0.4, np.round(rng.gamma(2.0, 10.0, n), 2)
    odds = np.log(rate / (1 - rate)) + 0.8 * kind + uneven * rng.normal(size=int(days) + 1)[arrival.astype(int)]
    positive = rng.uniform(size=n) < 1 / (1 + np.exp(-odds))
    mean = mean * (1 + kind)
    delay = -mean * np.log1p(-rng.uniform(size=n) * -np.expm1(-13.0 / mean))  # exponential, cut at 13 days
    frame = pd.DataFrame(
        {"kind": np.where(kind, "b", "a"), "revenue": value, "arrived": START + pd.to_timedelta(arrival, "D")}
    )
    frame["turned"] = (frame["arrived"] + pd.to_timedelta(delay, "D")).where(positive)
    return frame
