"""The final rate of each arm of an experiment, from rows whose labels are not all in, and how much each row moves it.

With F_k the share of positives of arm k that is seen by an age, y / F_k(age) has the mean of the final label. Arms are compared on equal terms: rows are put into
stretches of arrival time, and row i of arm k counts with weight w_i = K / sum over arms j of 1 / F_j(age_i), and stretch s with W_s = 1 / sum over arms j of 1 / B_js. So
    rate_k = sum over s of W_s A_ks / B_ks / sum of W_s,  A_ks = sum of w_i y_i / F_k(age_i),  B_ks = sum of w_i, both over the rows of arm k in stretch s.
The weights are those of least variance where rates are low and the same at all times: of arms with equal delays that is sum y / sum F, and in general it is Mantel and
Haenszel's, with rows counted by how much of their labels is in. No arm has a weight of its own, so rates that drift, days that differ and shares of traffic that change do not
get into the comparison, and w_i / F_k is at most K, so the youngest rows do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.data.stretches import stretch_of_rows
from belated.evaluation.seen_shares import SeenShares, seen_shares
from belated.monitoring.arms import ArmRows
from belated.typing import Bools, Floats

_IN_STRETCH = 100  # rows of the smallest arm, so that few have nobody to be compared with
_MOST_STRETCHES = 100


@dataclass(frozen=True)
class FinalRates:
    """Of K arms and n rows.

    ``influence`` (n,) is the derivative of the logarithm of the rate of a row's arm by how often the row is counted. Its sum over the rows of a cluster is what the cluster
    contributes to the error; the sum of their squares is the variance (the infinitesimal jackknife: what the bootstrap over clusters comes to, without draws).
    """

    rate: Floats  # (K,)
    influence: Floats
    seen: Floats  # (n,) the share of the positives of a row's arm that is seen by its age
    compared: Bools  # (n,) whether its stretch has rows of all arms
    shares: list[SeenShares]


def final_rates(rows: ArmRows) -> FinalRates:
    shares = [seen_shares(rows.delay[mine], rows.elapsed[mine]) for mine in rows.positive]
    arms = len(shares)
    seen_in = np.array([one.at(rows.elapsed) for one in shares])
    seen = seen_in[rows.arm, np.arange(len(rows.arm))]
    stretches = int(np.clip(rows.count.min() // _IN_STRETCH, 1, _MOST_STRETCHES))
    cell = rows.arm * stretches + stretch_of_rows(rows.elapsed, stretches)
    shape = (arms, stretches)
    together: Bools = np.all(np.bincount(cell, minlength=arms * stretches).reshape(shape) > 0, axis=0)
    with np.errstate(divide="ignore"):
        weight = arms / (1.0 / seen_in).sum(axis=0)
        held = np.bincount(cell, weight, arms * stretches).reshape(shape)
        of_stretch = 1.0 / (1.0 / held).sum(axis=0)
    # A row counts by the weight of its stretch, shared among the rows of its arm there.
    total = max(of_stretch.sum(), 1e-300)
    per_row = np.where(held > 0, of_stretch / np.maximum(held, 1e-300), 0.0).ravel()[cell] / total
    came = per_row * np.where(rows.y, weight / np.maximum(seen, 1e-300), 0.0)
    rate = np.bincount(rows.arm, came, arms).astype(np.float64)
    influence = came - per_row * weight * rate[rows.arm]
    for one, mine in zip(shares, rows.positive, strict=True):
        influence[mine] -= influence_on_shares(one, rows.delay[mine], rows.elapsed[mine], came[mine])
    influence /= np.maximum(rate, 1e-300)[rows.arm]
    return FinalRates(rate, influence, seen, together[cell % stretches], shares)


def influence_on_shares(shares: SeenShares, delay: Floats, elapsed: Floats, moved: Floats) -> Floats:
    """Of each positive, the derivative of sum_j moved_j log F(elapsed_j) by how often it is counted.

    log F(a) is the sum of log((R - d) / R) over delays after a. A positive at risk at a delay s, of R of which d came then, moves that term by 1 / (R - d) - 1 / R, which
    is its variance, and by 1 / (R - d) less if it came at s itself.
    """
    step = -np.diff(np.append(shares.variance, 0.0))
    step = np.where(shares.before > 0, step, 0.0)
    later = np.append(shares.before[1:], 1.0)
    gone = (later - shares.before) / later  # d / R
    slack = 1 + 1e-12
    first = np.searchsorted(shares.delays, delay * slack, side="right") - 1
    after = np.searchsorted(shares.delays, elapsed * slack, side="right")
    # Each term moves everything at ages before it.
    by_step = np.cumsum(np.bincount(after, moved, len(step) + 1))[:-1]
    at_risk = np.append(0.0, np.cumsum(by_step * step))
    own = by_step * step / np.maximum(gone, 1e-300)
    found: Floats = at_risk[after] - at_risk[first] - own[first]
    return found
