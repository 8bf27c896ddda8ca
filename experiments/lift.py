"""How much sooner does `belated.lift` decide an experiment than dropping in-progress rows does, at equal error rates?

    python experiments/lift.py                 all of it: about an hour on one core
    python experiments/lift.py --draws 100     a quick look

Simulated experiments of two arms, looked at once, on a day fixed in advance. Prints tables, and writes experiments/results/lift.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from belated import EventLog, lift

OUT = Path(__file__).parent / "results" / "lift.json"
DAY = 86400.0  # seconds
HORIZON = 30  # days
RATE, EFFECT = 0.10, 1.15
MEAN, SOONER, LATER = 7.0, 4.0, 10.0  # of delays, days, before they are cut at the horizon
A_DAY = 400  # rows, half of them in each arm
DRAWS = 2000
SCENARIOS = {
    "no effect, equal delays": {},
    "no effect, b sooner": {"means": (MEAN, SOONER)},
    "effect, equal delays": {"effect": EFFECT},
    "effect, b sooner": {"effect": EFFECT, "means": (MEAN, SOONER)},
    "effect, b later": {"effect": EFFECT, "means": (MEAN, LATER)},
}
LOOKS = (10, 20, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76)
WAYS = ("lift", "lift, early", "dropped", "as they stand")
TRAFFIC = (200, 800, 1600)  # rows a day, to see how much sooner there
HARD = {  # for coverage: of 80% and 95% intervals of the ratio
    "b sooner": {},
    "days differ": {"uneven": 0.3},
    "days differ by arm": {"uneven": 0.2, "by_arm": True},
    "rates drift to e times": {"drift": 1.0},
    "rates drift, b grows from 20% to 80%": {"drift": 1.0, "grows": True},
    "rate of 40%": {"rate": 0.4, "effect": 1.1},
    "few rows": {"a_day": 100},
    "users of about 10 rows, cluster='user'": {"rows_each": 10},
    "users of about 10 rows, without cluster": {"rows_each": 10, "cluster": None},
    "all delays halve midway": {"hurry": 0.5},
}
COVERAGE_LOOKS = (25, 32, 40, 60)


def simulate(
    rng: np.random.Generator,
    days: float,
    a_day: int = A_DAY,
    rate: float = RATE,
    effect: float = 1.0,
    means: tuple[float, float] = (MEAN, MEAN),
    uneven: float = 0.0,
    by_arm: bool = False,
    drift: float = 0.0,
    grows: bool = False,
    rows_each: int = 0,
    hurry: float = 1.0,
    horizon: float = HORIZON,
) -> EventLog:
    """Rows arrive evenly; delays are exponential, cut at the horizon. ``uneven``: the standard deviation of the logarithm of each day's rate; ``drift``: its trend.

    ``hurry``: what delays are multiplied by in the second half. With ``rows_each``, rows are those of users, who are in one arm and whose rates differ; the standard deviation of their logarithms is 0.7.
    """
    count = rng.poisson(a_day * days)
    time = np.sort(rng.uniform(0, days, count))
    in_b = rng.uniform(size=count) < (np.where(time < days / 2, 0.2, 0.8) if grows else 0.5)
    user = np.arange(count)
    if rows_each:
        user = rng.integers(0, count // rows_each, count)
        in_b = in_b[user]
    daily = uneven * rng.normal(size=(2, int(days) + 1)) - uneven**2 / 2
    log_rate = daily[in_b * int(by_arm), time.astype(int)] + drift * (time / days - 0.5)
    if rows_each:
        log_rate += 0.7 * rng.normal(size=count)[user] - 0.7**2 / 2
    converts = rng.uniform(size=count) < rate * np.where(in_b, effect, 1.0) * np.exp(log_rate)
    mean = np.where(in_b, means[1], means[0]) * np.where(time < days / 2, 1.0, hurry)
    delay = -mean * np.log1p(rng.uniform(size=count) * np.expm1(-horizon / mean))
    outcome = pa.array((time + delay) * DAY, mask=~converts)
    table = pa.table({"time": time * DAY, "arm": np.where(in_b, "b", "a"), "user": user, "converted": outcome})
    until = (days + horizon) * DAY
    return EventLog.from_frame(table, arrival="time", outcome="converted", time_unit="s", until=until)


def clear(log: EventLog, day: float) -> list[bool]:
    """Which ways see an effect in a look on this day."""
    try:
        found = lift(log, treatment="arm", horizon=HORIZON * DAY, as_of=day * DAY)
    except ValueError:  # too few positives
        return [False] * len(WAYS)
    (effect,), (dropped,), (stands,) = found.effects, found.dropped, found.as_they_stand
    return [effect["decided"] != "open", effect["p"] < 0.05, dropped["decided"] != "open", stands["decided"] != "open"]


def shares_clear(seed: int, draws: int, looks: tuple[float, ...], how: dict) -> np.ndarray:
    """Of each way and look, in which share of the draws it sees an effect; the last row: in any look."""
    rng = np.random.default_rng(seed)
    seen = np.zeros((len(looks) + 1, len(WAYS)))
    for _ in range(draws):
        log = simulate(rng, max(looks), **how)
        found = np.array([clear(log, day) for day in looks])
        seen += np.vstack([found, found.any(axis=0)])
    return seen / draws


def day_of_power(looks: tuple[float, ...], shares: np.ndarray, power: float = 0.8) -> float | None:
    """The first day from which on a share of the draws is clear, between looks along straight lines."""
    below = np.flatnonzero(shares < power)
    if not len(below):
        return float(looks[0])
    last = below[-1]
    if last == len(looks) - 1:
        return None
    return float(np.interp(power, shares[last : last + 2], looks[last : last + 2]))


def coverage(seed: int, draws: int, look: float, how: dict) -> list[float]:
    """Of 80% and 95% intervals of the ratio within the age reached, how many hold the truth."""
    how = {"effect": EFFECT, "means": (MEAN, SOONER), "a_day": 200, **how}
    cluster = how.pop("cluster", "user" if "rows_each" in how else None)
    rng = np.random.default_rng(seed)
    held = []
    for _ in range(draws):
        log = simulate(rng, look, **how)
        asked = {"treatment": "arm", "horizon": HORIZON * DAY, "cluster": cluster, "as_of": look * DAY}
        try:
            found = [lift(log, level=level, **asked) for level in (0.8, 0.95)]
        except ValueError:  # too few positives: nothing is said
            continue
        seen = [np.expm1(-found[0].settings["reached"] / mean) / np.expm1(-HORIZON / mean) for mean in how["means"]]
        truth = how["effect"] * seen[1] / seen[0]
        held.append([one.effects[0]["ratio"][1] <= truth <= one.effects[0]["ratio"][2] for one in found])
    return np.mean(held, axis=0).tolist()


def show(title: str, headings: list[str], rows: list[list]) -> None:
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(
            *("" if cell is None else f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row)
        )
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--out", type=Path, default=OUT)
    asked = parser.parse_args()
    found: dict = {"draws": asked.draws, "looks": LOOKS, "clear": {}, "day_of_80_percent": {}, "coverage": {}}

    for seed, (name, how) in enumerate(SCENARIOS.items()):
        shares = shares_clear(seed, asked.draws, LOOKS, how)
        found["clear"][name] = {way: shares[:, k].tolist() for k, way in enumerate(WAYS)}
        rows = [[day, *row] for day, row in zip((*LOOKS, "any"), shares.tolist(), strict=True)]
        show(f"{name}: share of draws in which an effect is seen", ["day", *WAYS], rows)
        if "effect" in how:
            found["day_of_80_percent"][f"{name}, {A_DAY} a day"] = {
                way: day_of_power(LOOKS, shares[:-1, k]) for k, way in enumerate(WAYS)
            }

    for seed, a_day in enumerate(TRAFFIC):
        # Dropping rows needs about 8,000 rows an arm that are older than the horizon.
        looks = (8.0, 14.0, 20.0, 26.0, *np.linspace(HORIZON + 1, HORIZON + 22_000 / a_day, 10).tolist())
        shares = shares_clear(100 + seed, asked.draws // 4, looks, {"effect": EFFECT, "a_day": a_day})
        found["day_of_80_percent"][f"effect, equal delays, {a_day} a day"] = {
            way: day_of_power(looks, shares[:-1, k]) for k, way in enumerate(WAYS)
        }
    rows = [[name, *days.values()] for name, days in found["day_of_80_percent"].items()]
    show("The day of 80% power at 5% size", ["experiment", *WAYS], rows)

    for seed, (name, how) in enumerate(HARD.items()):
        found["coverage"][name] = {day: coverage(200 + seed, asked.draws, day, how) for day in COVERAGE_LOOKS}
    rows = [
        [name, *(" ".join(f"{x:.3f}" for x in pair) for pair in by_day.values())]
        for name, by_day in found["coverage"].items()
    ]
    show("Share of 80% and 95% intervals that hold the truth", ["", *(f"day {day}" for day in COVERAGE_LOOKS)], rows)

    asked.out.parent.mkdir(exist_ok=True)
    asked.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
