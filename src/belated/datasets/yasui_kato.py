"""The synthetic data of Yasui and Kato (KDD 2022, section 6.1): eight days of clicks, a new campaign every day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.typing import Bools, Floats

TRAINING_DAYS = 7
FEATURES, CAMPAIGNS = 20, 7


@dataclass(frozen=True)
class SyntheticClicks:
    """Rows of n clicks: features X (n, 27), day of arrival, delay in days (of all rows) and whether they convert.

    A click turns positive at ``arrival + delay`` if ``converts``.
    """

    X: Floats
    arrival: Floats
    delay: Floats
    converts: Bools
    probability: Floats  # the true p(C = 1 | x)

    def known(self, now: float) -> tuple[Bools, Bools, Floats, Floats]:
        """Rows that had arrived by ``now``, and of these the label, the elapsed time and the delay (NaN: none seen)."""
        rows = self.arrival <= now
        elapsed = now - self.arrival[rows]
        y = self.converts[rows] & (self.delay[rows] <= elapsed)
        return rows, y, elapsed, np.where(y, self.delay[rows], np.nan)


def simulate_paper(
    eta: float, seed: int = 0, *, per_day: int = 4800, delay_unit: float = 1 / 24, traffic: str | float = "equal"
) -> SyntheticClicks:
    """Draw one data set.

    Twenty binary features, of which five have a mean from U(0.1, 0.3) and fifteen from U(0.3, 0.7), and one of seven
    campaigns, of which campaign d enters on day d. p(C = 1 | x) = sigmoid(x alpha + (d/7) eta) with alpha ~ U(-0.5, 0.5); the
    delay is |N(0, x beta)| with beta ~ U(0, 10), in units of ``delay_unit`` days, whatever the campaign. The eighth day is for
    testing, with the campaigns of the seventh.

    Parameters
    ----------
    eta : float
        How much later campaigns differ: 0 is stationary.
    seed : int
        Of alpha, beta and everything drawn.
    per_day : int
    delay_unit : float
        The paper does not give it; hours fit its description.
    traffic : {"equal"} or float
        How campaigns share clicks, which the paper leaves open: all those that have entered equally, or the newest with this
        share and the older ones equally with the rest.
    """
    rng = np.random.default_rng([seed, 7])
    mean = np.concatenate([rng.uniform(0.1, 0.3, 5), rng.uniform(0.3, 0.7, FEATURES - 5)])
    alpha, beta = rng.uniform(-0.5, 0.5, FEATURES), rng.uniform(0.0, 10.0, FEATURES)
    n = per_day * (TRAINING_DAYS + 1)
    arrival = np.sort(rng.uniform(0.0, TRAINING_DAYS + 1, n))
    entered = np.minimum(np.floor(arrival).astype(int) + 1, CAMPAIGNS)
    if traffic == "equal":
        campaign = rng.integers(0, entered)
    else:
        older = rng.integers(0, np.maximum(entered - 1, 1))
        campaign = np.where((rng.uniform(size=n) < float(traffic)) | (entered == 1), entered - 1, older)
    binary = (rng.uniform(size=(n, FEATURES)) < mean).astype(np.float64)
    probability = 1.0 / (1.0 + np.exp(-(binary @ alpha + (campaign + 1) / CAMPAIGNS * eta)))
    delay = np.abs(rng.normal(size=n)) * (binary @ beta) * delay_unit
    X = np.column_stack([binary, np.eye(CAMPAIGNS)[campaign]])
    return SyntheticClicks(X, arrival, delay, rng.uniform(size=n) < probability, probability)
