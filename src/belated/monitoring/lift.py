"""lift: the effect of a treatment on the final rate, read before labels are final."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from belated.data.durations import in_words, is_number
from belated.data.event_log import EventLog, require_log
from belated.monitoring.arms import FEWEST, ArmRows
from belated.monitoring.delay_test import later_than
from belated.monitoring.final_rates import FinalRates, final_rates
from belated.notices import logger
from belated.tables.refusal import counted
from belated.typing import Floats, Ints


@dataclass(frozen=True)
class Lift:
    """What an experiment has shown so far, as plain data.

    Attributes
    ----------
    arms : list of dict
        The control first: rows, positives so far, the final ``rate`` (value, low, high), ``share_in`` (of its final positives, how many are in) and the ``median`` delay in days.
    effects : list of dict
        For each other arm: ``difference`` of the final rates and their ``ratio``, each (value, low, high), ``p`` of no effect, ``decided`` ("higher", "lower" or "open"),
        and whether positives come "sooner" or "later" than in the control or ``delays`` are "unchanged", with ``delays_p``.
    dropped, as_they_stand : list of dict
        The same from rows older than the horizon alone, and from labels as they stand, with the intervals of two plain shares.
    settings : dict
        ``horizon`` is what was asked for and ``reached`` the age up to which rates are given: less, where too few rows are as old as the horizon.

    Examples
    --------
    >>> from belated import lift
    >>> from belated.datasets import example_log
    >>> found = lift(example_log(), treatment="device", control="phone", horizon="7d")
    >>> [(arm["arm"], round(arm["rate"][0], 3)) for arm in found.arms]
    [('phone', 0.165), ('desktop', 0.134), ('tablet', 0.172)]
    """

    arms: list[dict[str, Any]]
    effects: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    as_they_stand: list[dict[str, Any]]
    settings: dict[str, Any]
    notes: list[str]

    @property
    def verdict(self) -> str:
        """What it says, in a few sentences."""
        s = self.settings
        found = [_said(*each, s) for each in zip(self.effects, self.dropped, self.as_they_stand, strict=True)]
        if s["reached"] < s["horizon"]:
            found.append(
                f"Too few rows are as old as the horizon of {in_words(s['horizon'])}, so nothing is decided about the final rate."
            )
        return " ".join(found)

    def summary(self) -> dict[str, Any]:
        """Everything as plain data, for JSON and reports."""
        names = ("verdict", "arms", "effects", "dropped", "as_they_stand", "settings", "notes")
        return {name: getattr(self, name) for name in names}


def lift(
    log: EventLog,
    *,
    treatment: str,
    horizon: Any,
    control: Any = None,
    cluster: str | None = None,
    as_of: Any = None,
    level: float = 0.95,
) -> Lift:
    """The effect of a treatment on the final rate, from all rows of a randomised experiment, young ones included.

    The final rate of an arm is the mean of y / F(age), with y = 1 where a row is positive yet and F the share of the arm's own positives that is seen by an age: labels
    count for more in young rows, and in an arm that is slow. Both arms are weighted to the same ages and times of arrival, so that rates may drift. F is learned from positives
    alone, by the reverse-time product limit. Logarithms of rates get the errors that a bootstrap over clusters comes to (the infinitesimal jackknife), and intervals
    the quantiles of Student's t for as many degrees of freedom as the clusters' contributions allow.

    What it assumes: rows were put into arms at random; within an arm, delays are the same for all times of arrival (rates need not be).
    Intervals and p-values are for a single look at a time fixed in advance. Looking every day and stopping at the first "higher" finds effects where there are none.

    An experiment younger than the horizon says nothing about what comes later than its oldest rows, so rates are then those within the oldest age that enough rows have
    ``reached``. The effect on the final rate is the same only if what comes later is in proportion, which nobody has seen; ``decided`` stays open until the horizon is reached.

    Parameters
    ----------
    log : EventLog
        A row for each thing that was put into an arm.
    treatment : str
        The feature that says which arm. More than two arms are each compared with the control; intervals then hold for all of them at once, and p-values are
        multiplied by their number (Bonferroni).
    horizon : duration
        A row is positive if its outcome comes within this long.
    control : value, optional
        The arm to compare with; by default the one named control, baseline, A, 0, false or off.
    cluster : str, optional
        The feature that says which rows belong together: what was drawn into an arm, such as the user. By default days of arrival where there are at least 15, and
        otherwise each row by itself.
    as_of : instant, optional
        Only what was known then; by default all that the log knows.
    level : float
        Of the intervals.

    Examples
    --------
    Of 10% that convert in either arm, b's do so in half the time. As labels stand, b seems clearly better:

    >>> import numpy as np, pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> start, in_b, converts = rng.uniform(0, 18 * 86400, 40_000), rng.random(40_000) < 0.5, rng.random(40_000) < 0.1
    >>> delay = np.minimum(rng.exponential(np.where(in_b, 2, 4) * 86400), 14 * 86400)
    >>> visits = pa.table({"time": start, "arm": np.where(in_b, "b", "a"), "converted": pa.array(start + delay, mask=~converts)})
    >>> log = EventLog.from_frame(visits, arrival="time", outcome="converted")
    >>> found = lift(log, treatment="arm", horizon="14d", as_of=18 * 86400)
    >>> [round(value, 2) for value in found.effects[0]["ratio"]], found.effects[0]["decided"]
    ([0.98, 0.91, 1.05], 'open')
    >>> [round(value, 2) for value in found.as_they_stand[0]["ratio"]], found.as_they_stand[0]["decided"]
    ([1.13, 1.06, 1.21], 'higher')
    """
    if not (is_number(level) and 0 < level < 1):
        raise ValueError(f"level={level!r} must be a number between 0 and 1.")
    require_log(log, "lift")
    if not isinstance(treatment, str):
        raise ValueError(f"treatment={treatment!r} must be the name of the column that says who was in which arm.")
    if not log.features:
        raise ValueError(f"the log has no column {treatment!r}: its features are what lift can see, and it has none.")
    if not log.on_cluster:
        log.refuse_future("arrival", "outcome")
    asked = ArmRows.of(log, treatment, control, cluster, horizon, as_of)
    reached = asked.reached()
    rows = asked if reached == asked.horizon else asked.within(reached)
    rates = final_rates(rows)
    _check_compared(rows, rates, treatment)
    others = range(1, len(rows.names))
    alpha = (1.0 - level) / len(others)
    effects = [_effect(rows, rates, k, alpha) for k in others]
    for effect in effects:
        if reached < asked.horizon:
            effect["decided"] = "open"
    old = asked.elapsed >= asked.horizon * (1 - 1e-12)
    settings = {
        "treatment": treatment,
        "control": rows.names[0],
        "horizon": asked.horizon,
        "reached": rows.horizon,
        "as_of": rows.as_of,
        "rows": len(rows.arm),
        "share_in": float(rates.seen.mean()),
        "level": level,
        "cluster": cluster,
        "clusters": rows.clusters,
    }
    logger.info("lift: %s", settings)
    return Lift(
        [_arm(rows, rates, k, 1.0 - level) for k in range(len(rows.names))],
        effects,
        [_plain_shares(asked, k, old, alpha) for k in others],
        [_plain_shares(asked, k, np.ones_like(old), alpha) for k in others],
        settings,
        _notes(rows, rates, effects, settings),
    )


def _check_compared(rows: ArmRows, rates: FinalRates, treatment: str) -> None:
    for name, mine in zip(rows.names, rows.positive, strict=True):
        if rates.compared[mine].sum() < FEWEST:
            raise ValueError(
                f"column {treatment!r}: arm {name!r} has {counted(len(mine), 'positive')}, and fewer than {FEWEST} of them arrived while all arms were in use. Arms that were in use at "
                f"different times cannot be compared; leave this arm out, or wait for more."
            )


def _arm(rows: ArmRows, rates: FinalRates, k: int, alpha: float) -> dict[str, Any]:
    mine = rows.arm == k
    error, freedom = _spread(np.where(mine, rates.influence, 0.0), rows.cluster, mine)
    return {
        "arm": rows.names[k],
        "rows": int(rows.count[k]),
        "positive": len(rows.positive[k]),
        "rate": _on_log_scale(float(rates.rate[k]), error, freedom, alpha),
        "share_in": float(rates.seen[mine].mean()),
        "median": rates.shares[k].age_of(0.5),
    }


_ROUNDING = 1e-9  # the least error of a ratio: where all rows are positive, what is left is that of adding up


def _effect(rows: ArmRows, rates: FinalRates, k: int, alpha: float) -> dict[str, Any]:
    """Of arm k against the control."""
    sign = np.where(rows.arm == k, 1.0, np.where(rows.arm == 0, -1.0, 0.0))
    contributed = sign * rates.influence
    ratio, difference = float(rates.rate[k] / rates.rate[0]), float(rates.rate[k] - rates.rate[0])
    error, freedom = _spread(contributed, rows.cluster, sign != 0)
    in_points, freedom_in_points = _spread(contributed * rates.rate[rows.arm], rows.cluster, sign != 0)
    wide = float(stats.t.ppf(1 - alpha / 2, freedom_in_points)) * in_points
    p = 2 * float(stats.t.sf(abs(np.log(ratio)) / max(error, _ROUNDING), freedom))
    pair = {
        "difference": [difference, difference - wide, difference + wide],
        "ratio": _on_log_scale(ratio, error, freedom, alpha),
    }
    return _decided(rows, k, pair, p, alpha) | _delays(rows, k)


def _decided(rows: ArmRows, k: int, pair: dict[str, Any], p: float, alpha: float) -> dict[str, Any]:
    clear = p < alpha
    return {
        "arm": rows.names[k],
        "control": rows.names[0],
        **pair,
        "p": min(1.0, p * (len(rows.names) - 1)),
        "decided": ("higher" if pair["difference"][0] > 0 else "lower") if clear else "open",
    }


def _spread(contributed: Floats, cluster: Ints, counts: Any) -> tuple[float, float]:
    """The standard error of a sum over clusters, and its degrees of freedom."""
    sums = np.bincount(cluster, contributed)
    sums = sums[np.bincount(cluster, counts) > 0]
    total, count = float(sums @ sums), len(sums)
    # Satterthwaite's, for contributions of any law: twice the squared mean of the variance over its own variance.
    freedom = 2.0 * total**2 / max(float((sums**4).sum()), 1e-300)
    return float(np.sqrt(total * count / max(count - 1, 1))), max(freedom, 1.0)


def _on_log_scale(value: float, error: float, freedom: float, alpha: float) -> list[float]:
    wide = float(stats.t.ppf(1 - alpha / 2, freedom)) * error
    return [value, value * float(np.exp(-wide)), value * float(np.exp(wide))]


def _delays(rows: ArmRows, k: int) -> dict[str, Any]:
    """Whether positives of arm k come sooner or later than those of the control."""
    mine, theirs = rows.positive[k], rows.positive[0]
    z = later_than(rows.delay[mine], rows.elapsed[mine], rows.delay[theirs], rows.elapsed[theirs])
    p = 2 * float(stats.norm.sf(abs(z)))
    changed = "unchanged" if p >= 0.05 else "later" if z > 0 else "sooner"
    return {"delays": changed, "delays_p": p}


def _plain_shares(rows: ArmRows, k: int, which: Any, alpha: float) -> dict[str, Any]:
    """Of some rows, the effect as two shares of independent rows would show it."""
    of = [int((which & (rows.arm == j)).sum()) for j in (k, 0)]
    positive = [int((which & (rows.arm == j) & rows.y).sum()) for j in (k, 0)]
    about = {"rows": of, "positive": positive}
    if not all(positive):
        return _decided(rows, k, {"difference": [None] * 3, "ratio": [None] * 3}, 1.0, alpha) | about
    a, b = (some / all_of for some, all_of in zip(positive, of, strict=True))
    z = float(stats.norm.ppf(1 - alpha / 2))
    wide = z * float(np.sqrt(a * (1 - a) / of[0] + b * (1 - b) / of[1]))
    error = float(np.sqrt((1 - a) / positive[0] + (1 - b) / positive[1]))
    pair = {"difference": [a - b, a - b - wide, a - b + wide], "ratio": _on_log_scale(a / b, error, np.inf, alpha)}
    p = 2 * float(stats.norm.sf(abs(np.log(a / b)) / max(error, _ROUNDING)))
    return _decided(rows, k, pair, p, alpha) | about


def _said(effect: dict[str, Any], dropped: dict[str, Any], stands: dict[str, Any], settings: dict[str, Any]) -> str:
    value, low, high = effect["ratio"]
    short = settings["reached"] < settings["horizon"]
    what = f"rate within {in_words(settings['reached'])}" if short else "final rate"
    # Where all rows of both arms are positive, the interval is a point, and there is no test.
    clear = "" if (low > 1 or high < 1) and effect["p"] < 1.0 else "no clear difference of the "
    said = f"{clear}{what}{',' if clear else ''} {_change(value)} {_between(low, high)}"
    found = f"{effect['arm']} against {effect['control']}: {said}, with {settings['share_in']:.0%} of labels in."
    naive = f"labels as they stand say {_change(stands['ratio'][0])}"
    if effect["delays"] == "unchanged":
        found += f" {naive[0].upper()}{naive[1:]}"
    else:
        found += f" Its positives come {effect['delays']}, so {naive}"
    value, low, high = dropped["ratio"]
    if value is None:
        return f"{found}; no label is final."
    return f"{found}; final labels alone, {_change(value)} {_between(low, high)}."


def _change(ratio: float) -> str:
    return f"{_size(ratio)} {'higher' if ratio >= 1 else 'lower'}"


def _size(ratio: float) -> str:
    size = abs(ratio - 1.0)
    return f"{size:{'.0%' if size >= 0.095 else '.1%'}}"


def _between(low: float, high: float) -> str:
    """An interval, beside a change whose direction has been said."""
    if low > 1:
        return f"({_size(low)} to {_size(high)})"
    return f"({_size(high)} to {_size(low)})" if high < 1 else f"({_change(low)} to {_change(high)})"


def _notes(rows: ArmRows, rates: FinalRates, effects: list[dict[str, Any]], settings: dict[str, Any]) -> list[str]:
    found = ["Intervals and p-values are for one look at a time fixed in advance."]
    if settings["reached"] < settings["horizon"]:
        found.append(
            f"The horizon is {in_words(settings['horizon'])}, and only up to {in_words(settings['reached'])} are there {FEWEST} positives in rows as old as that in every arm: rates "
            f"are those within {in_words(settings['reached'])}. The effect on the final rate is the same only if what comes later is in proportion."
        )
        changed = [effect["arm"] for effect in effects if effect["delays"] != "unchanged"]
        if changed:
            found.append(
                f"Delays differ between {' and '.join([settings['control'], *changed])}, so what comes later may well not be in proportion."
            )
    alone = int((~rates.compared).sum())
    if alone:
        found.append(
            f"{counted(alone, 'row')} arrived while not all arms were in use: used for delays, and not for the comparison."
        )
    if len(effects) > 1:
        found.append(
            f"{len(effects)} arms are compared with the control: intervals of effects hold for all at once, and p-values are multiplied by {len(effects)} (Bonferroni)."
        )
    return found
