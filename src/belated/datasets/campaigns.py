"""Simulated clicks in campaigns that come, go and change: the log of ``belated demo``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_START, _DAYS = np.datetime64("2024-01-01"), 60.0


def simulate_campaigns(n: int = 60_000, seed: int = 0) -> pa.Table:
    """Simulate two months of clicks, with the time of each conversion as known on 2024-03-01.

    40 campaigns run for part of the two months; a third begin in the second half. Rates differ by campaign, device, hour
    and how much the user has browsed, and drift within a campaign. Delays are a mixture of minutes and days, longer in some
    campaigns: half of the conversions come within 4 days or so, nine in ten within 16. Conversions after the end of the
    log are not known.

    >>> simulate_campaigns(100).column_names
    ['click_time', 'conversion_time', 'campaign', 'device', 'country', 'hour', 'pages_viewed']
    """
    rng = np.random.default_rng(seed)
    campaigns = 40
    begin = np.where(np.arange(campaigns) % 3 == 2, rng.uniform(25, 52, campaigns), rng.uniform(-20, 15, campaigns))
    end = begin + rng.uniform(20, 60, campaigns)
    level, drift = rng.normal(-1.6, 0.8, campaigns), rng.normal(0.0, 0.02, campaigns)
    size, pace = rng.lognormal(0, 0.8, campaigns), rng.lognormal(1.9, 0.5, campaigns)

    day = np.sort(rng.uniform(0, _DAYS, n))
    running = (begin <= day[:, None]) & (day[:, None] < end)
    share = np.cumsum(running * size, axis=1)
    campaign = (share < rng.uniform(size=(n, 1)) * share[:, -1:]).sum(axis=1)
    hour = np.floor(day % 1 * 24).astype(np.int64)
    device, country = rng.integers(0, 3, n), rng.choice(6, n, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    pages = rng.geometric(0.25, n)
    margin = level[campaign] + drift[campaign] * (day - 30) + np.array([0.4, 0.0, -0.5])[device]
    margin += np.linspace(0.3, -0.3, 6)[country] + 0.25 * np.log(pages) - 0.4 * (hour < 6)
    converts = rng.uniform(size=n) < 1 / (1 + np.exp(-margin))
    wait = np.where(rng.uniform(size=n) < 0.25, rng.exponential(0.05, n), rng.exponential(pace[campaign], n))
    known = converts & (day + wait <= _DAYS)

    def stamps(days: np.ndarray) -> np.ndarray:
        return _START + np.rint(days * 86400).astype("timedelta64[s]")

    return pa.table(
        {
            "click_time": pa.array(stamps(day)),
            "conversion_time": pa.array(stamps(np.where(known, day + wait, 0.0)), mask=~known),
            "campaign": pa.array([f"campaign {c:02d}" for c in campaign]),
            "device": pa.array(np.array(["desktop", "tablet", "phone"])[device]),
            "country": pa.array(np.array(["US", "DE", "FR", "UK", "BR", "JP"])[country]),
            "hour": pa.array(hour.astype(str)),
            "pages_viewed": pa.array(pages),
        }
    )
