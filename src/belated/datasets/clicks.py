"""A simulated click log with conversions that come late."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy.special import expit


def simulate_clicks(days: int = 64, clicks_per_day: int = 2000, drift: float = 1.0, seed: int = 0) -> pa.Table:
    """Simulate an advertiser's clicks: ``click_time``, ``conversion_time`` (missing where there is none), features.

    A new campaign starts every four days and draws as much traffic as any other; each has a conversion rate of its own,
    and later ones convert better, by ``drift`` in log odds over the whole period. Two conversions in five come within
    hours and the others within days, slower for expensive products. Nothing converts after 14 days.

    >>> log = simulate_clicks(days=3, clicks_per_day=100)
    >>> log.num_rows, log.column_names
    (300, ['click_time', 'conversion_time', 'campaign', 'device', 'country', 'price'])
    """
    rng = np.random.default_rng(seed)
    n = days * clicks_per_day
    click = np.sort(rng.uniform(0, days, n))
    starts = np.arange(-12, days, 4)
    running = np.searchsorted(starts, click, side="right")
    campaign = (rng.uniform(size=n) * running).astype(int)
    device = rng.choice(3, n, p=[0.55, 0.35, 0.10])
    country = np.minimum(rng.zipf(1.6, n) - 1, 39)
    price = rng.lognormal(3.0, 0.8, n)

    appeal = rng.normal(0.0, 0.5, len(starts)) + drift * starts / days
    margin = -2.0 + appeal[campaign] + np.array([0.0, -0.4, 0.3])[device] + rng.normal(0.0, 0.4, 40)[country]
    converts = rng.uniform(size=n) < expit(margin - 0.3 * (np.log(price) - 3.0))
    slow = rng.uniform(size=n) > 0.4
    mean = np.where(slow, 6.0 * np.exp(0.3 * (np.log(price) - 3.0)), 0.15)
    # A delay drawn from the exponential law cut at 14 days.
    delay = -mean * np.log1p(-rng.uniform(size=n) * -np.expm1(-14.0 / mean))

    def stamp(time: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
        return np.datetime64("2024-01-01", "us") + np.rint(time * 86400e6).astype("timedelta64[us]")

    return pa.table(
        {
            "click_time": pa.array(stamp(click)),
            "conversion_time": pa.array(stamp(click + delay), mask=~converts),
            "campaign": [f"campaign {i:02d}" for i in campaign],
            "device": np.array(["phone", "desktop", "tablet"])[device].tolist(),
            "country": [f"country {i:02d}" for i in country],
            "price": price.round(2),
        }
    )
