"""A simulated file of the format, size and published statistics of Criteo's conversion logs.

The public file (Chapelle, KDD 2014) may not be redistributed, so this one stands in for it. Every category in it begins with
``sim``: no line can be taken for a real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from rich.progress import track
from scipy.optimize import brentq
from scipy.special import expit

from belated.data.criteo_format import open_text
from belated.tables.writing import write_beside
from belated.typing import Floats, Ints

ROWS, DAYS = 15_898_883, 60
RATE = 0.228
MARK = "sim"

# The share of conversions that has come by each delay: 35% within an hour, half within a day, all within 30 days.
_DELAY_SECONDS = np.array([1, 60, 600, 3600, 6 * 3600, *(86400 * np.array([1, 3, 7, 14, 21, 30]))], dtype=np.float64)
_DELAY_SHARE = np.array([0.0, 0.04, 0.17, 0.35, 0.42, 0.50, 0.63, 0.76, 0.87, 0.94, 1.0])

# Integers: mean and spread of the logarithm, share missing, and what a unit of the logarithm adds to the log odds.
_COUNTS = [
    (1.0, 1.0, 0.00, 0.50),
    (2.5, 1.5, 0.10, -0.45),
    (0.7, 0.8, 0.30, 0.60),
    (4.0, 2.0, 0.05, -0.20),
    (6.0, 2.0, 0.20, 0.15),
    (1.5, 1.2, 0.00, 0.35),
    (3.0, 1.0, 0.50, -0.30),
    (8.0, 2.5, 0.10, 0.08),
]
# Categories other than campaign and advertiser: how many values, and the spread of their effects.
_CATEGORIES = [(12, 0.4), (60, 0.4), (400, 0.4), (3_000, 0.4), (20_000, 0.4), (150_000, 0.4), (1_000_000, 0.4)]
_AT_START, _PER_DAY, _LIFE = (
    400,
    12,
    35.0,
)  # campaigns running at first, entering each day, and days they run on average
_ADVERTISERS = 150


@dataclass(frozen=True)
class _World:
    """What stays the same over the days: campaigns, effects, and the texts of categories."""

    begin: Floats
    end: Floats
    size: Floats
    level: Floats
    drift: Floats
    pace: Floats
    advertiser: Ints
    effects: list[Floats]
    texts: list[pa.Array]


def simulate_criteo(
    path: str | Path, rows: int = ROWS, seed: int = 0, jump: float = 2.0, jump_day: int = 58, progress: bool = True
) -> None:
    """Write ``rows`` simulated clicks of 60 days to ``path``: 19 columns separated by tabs, without a header, by time.

    As published of the real file, 22.8% of the clicks convert, within 30 days: 35% of these within an hour, half within a day,
    13% after two weeks. All else is invented. Delays are shorter in some campaigns than in others. Twelve campaigns enter each day, run for five weeks on average, and drift a little;
    those that enter on day ``jump_day`` (counted from 1) or later convert more readily, by ``jump`` in log odds, as Yasui
    and Kato report. Eight integers are counts with long tails; nine categories have 12 to a million values of
    about harmonic frequencies, of which one is the campaign and one its advertiser.
    """
    if rows < DAYS:
        raise ValueError(f"rows={rows!r} must be at least {DAYS}, one a day.")
    world = _world(seed, jump, jump_day)
    # A fifth fewer clicks at weekends.
    weight = np.where(np.arange(DAYS) % 7 < 5, 1.0, 0.8)
    counts = np.diff(np.rint(np.cumsum(weight) / weight.sum() * rows).astype(int), prepend=0)
    pilot = [_draw(world, day, 3000, np.random.default_rng([seed, day, 1]))[0] for day in range(DAYS)]
    base = brentq(lambda level: expit(np.concatenate(pilot) + level).mean() - RATE, -20, 20)
    options = pc.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")

    def write(out: IO[bytes]) -> None:
        for day in track(range(DAYS), "Simulating", disable=not progress, transient=True):
            if counts[day]:
                pc.write_csv(_day(world, day, int(counts[day]), base, seed), out, options)

    write_beside(path, write)


def is_simulated(path: str | Path) -> bool:
    """Whether a file is one of these."""
    with open_text(path) as file:
        return file.readline(10_000).rstrip(b"\r\n").split(b"\t")[-1].startswith(MARK.encode())


def _world(seed: int, jump: float, jump_day: int) -> _World:
    rng = np.random.default_rng([seed, 60])
    entered = np.concatenate([np.full(_AT_START, -1), np.repeat(np.arange(DAYS), _PER_DAY)])
    n = len(entered)
    sizes = [n, _ADVERTISERS, *(size for size, _ in _CATEGORIES)]
    return _World(
        begin=entered,
        end=entered + 1 + np.ceil(rng.exponential(_LIFE, n)),
        size=rng.lognormal(0.0, 1.0, n),
        level=rng.normal(0.0, 0.7, n) + jump * (entered + 1 >= jump_day),
        drift=rng.normal(0.0, 0.01, n),
        pace=rng.lognormal(0.0, 0.3, n),
        advertiser=rng.integers(0, _ADVERTISERS, n),
        effects=[rng.normal(0.0, spread, size) for size, spread in ((_ADVERTISERS, 0.4), *_CATEGORIES)],
        texts=[_texts(size, field) for field, size in enumerate(sizes)],
    )


def _texts(size: int, field: int) -> pa.Array:
    """Different texts for different values: an odd factor and an exclusive or permute the 28-bit numbers."""
    numbers = (np.arange(size, dtype=np.uint64) * np.uint64(0x9E3779B1) ^ np.uint64(0x51ED27 * field)) % np.uint64(
        2**28
    )
    return pa.array([f"{MARK}{number:07x}" for number in numbers.tolist()])


def _draw(world: _World, day: int, n: int, rng: np.random.Generator) -> tuple[Floats, Any, list[Any], list[Any]]:
    """Log odds up to a constant, campaigns, integers (value, missing) and categories of n clicks of a day."""
    running = np.cumsum(world.size * ((world.begin <= day) & (day < world.end)))
    campaign = np.searchsorted(running, rng.uniform(0.0, running[-1], n), side="right")
    advertiser = world.advertiser[campaign]
    margin = world.level[campaign] + world.drift[campaign] * (day - world.begin[campaign])
    margin += world.effects[0][advertiser]
    counts: list[Any] = []
    for mean, spread, missing, slope in _COUNTS:
        value = np.floor(np.exp(rng.normal(mean, spread, n))).astype(np.int64)
        absent = rng.uniform(size=n) < missing
        margin += slope * np.where(absent, 0.0, np.log1p(value) - mean)
        counts.append((value, absent))
    categories = [campaign, advertiser]
    for (size, _), effect in zip(_CATEGORIES, world.effects[1:], strict=True):
        value = np.floor((size + 1) ** rng.uniform(size=n)).astype(np.int64) - 1
        margin += effect[value]
        categories.append(value)
    return margin, campaign, counts, categories


def _day(world: _World, day: int, n: int, base: float, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, day])
    click = np.sort(rng.integers(day * 86400, (day + 1) * 86400, n))
    margin, campaign, counts, categories = _draw(world, day, n, rng)
    converts = rng.uniform(size=n) < expit(base + margin)
    late = rng.uniform(size=n) ** world.pace[campaign]
    delay = np.exp(np.interp(late, _DELAY_SHARE, np.log(_DELAY_SECONDS))).astype(np.int64)
    columns = [pa.array(click), pa.array(click + delay, mask=~converts)]
    columns += [pa.array(value, mask=absent) for value, absent in counts]
    columns += [texts.take(pa.array(value)) for texts, value in zip(world.texts, categories, strict=True)]
    return pa.table(columns, names=[str(i) for i in range(len(columns))])
