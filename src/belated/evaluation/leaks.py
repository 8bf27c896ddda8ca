"""Columns that know the outcome: features that no model would have when it is asked.

Four things give such a column away, each looked for on its own:

- it (nearly) determines the outcome, among rows of like age: old rows have had time to turn positive, so whatever follows the
  calendar tells something, and no secret;
- some of its values occur with an outcome only;
- whether it is missing goes with the outcome, among rows of like age;
- it changes as rows grow older. Young rows that are not yet positive have another value, or none, where old rows had theirs
  filled in since. Compared are stretches of arrivals, each with the rows that were not yet positive when it ended: a feature
  known at arrival differs between the last stretch and the one before as it does between earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from belated.features.quantiles import weighted_quantiles
from belated.tables.missing import EMPTY_TEXT, missing_words
from belated.typing import Bools, Floats, Ints

_DETERMINED = 0.5  # share of the uncertainty about the outcome that a column may take away
_MISSING_TELLS = 0.3  # the same, of whether it is missing
_MOST_VALUES = 100
_RANGES = 20  # of a number with many values
_STRETCHES = 40  # of arrivals, at most; more than a week of them, so that weekdays come again
_SURE = 0.998  # of the rows with some values have an outcome, where at most half of all do
_SURE_SHARE = 0.1  # of the rows with an outcome have such a value
_FEWEST = 100  # rows in a stretch
_LATE_SHARE = 0.2  # by how much the share of missing values must differ between young and old rows
_ALL_AT_FIRST = 0.8  # of the youngest rows have a value that at most half of the old ones still have
_TREND = 0.4  # rank correlation of a number with age among young rows, where old ones have next to none
_NO_TREND = 0.15
_ALL_ALONG = 0.9  # rank correlation with age over the whole log
_RARE = 0.01
_UNITS = {"weeks": 1 / 7, "days": 1.0, "hours": 24.0, "minutes": 1440.0, "seconds": 86400.0}  # in a day


@dataclass(frozen=True)
class Values:
    """A column as codes of its values; the last code is for missing values. Numbers as they are, where it holds numbers."""

    codes: Ints
    names: list[str]
    numbers: Floats | None

    @property
    def missing(self) -> Bools:
        return self.codes == len(self.names) - 1

    @classmethod
    def of(cls, column: pa.Array) -> Values:
        """A column of text, truth values or numbers; rare values become one."""
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
            numbers = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))
            known = ~np.isnan(numbers)
            distinct = np.unique(numbers[known])
            if len(distinct) > _MOST_VALUES:
                edges = weighted_quantiles(numbers[known], np.ones(known.sum()), _RANGES)
                codes = np.where(known, np.searchsorted(edges, numbers), len(edges) + 1)
                names = [*(f"up to {edge:g}" for edge in edges), "above", "missing"]
            else:
                codes = np.where(known, np.searchsorted(distinct, numbers), len(distinct))
                names = [*(f"{value:g}" for value in distinct), "missing"]
            return cls(codes, names, numbers)
        text = missing_words(column.cast(pa.large_string()), EMPTY_TEXT).dictionary_encode()
        counts = pc.value_counts(text.indices)
        order = np.argsort(-np.asarray(counts.field("counts")), kind="stable")
        frequent = [c for c in np.asarray(counts.field("values").fill_null(-1))[order] if c >= 0][:_MOST_VALUES]
        place = np.full(len(text.dictionary) + 1, len(frequent))  # the code of all rare values
        place[frequent] = np.arange(len(frequent))
        place[-1] = len(frequent) + 1
        words = text.dictionary.to_pylist()
        names = [*(words[c] for c in frequent), "another value", "missing"]
        return cls(place[np.asarray(text.indices.fill_null(len(words)))], names, None)


@dataclass(frozen=True)
class Seen:
    """What is known of rows at the end of a log: their age and the delay of their outcome, NaN where there is none, in days."""

    elapsed: Floats
    delay: Floats
    horizon: float | None
    _known: dict[float, list[Ints]] = field(default_factory=dict, repr=False)

    def outcomes(self) -> Iterator[tuple[Bools, Bools]]:
        """Rows and their labels: whether there is an outcome at all, and within the horizon where that is final."""
        known = ~np.isnan(self.delay)
        yield np.ones(len(known), dtype=bool), known
        if self.horizon is not None:
            mature = self.elapsed >= self.horizon
            yield mature, (known & (self.delay <= self.horizon))[mature]

    def ages(self, rows: Bools) -> Ints:
        """Groups of like age, about equally large."""
        count = int(np.clip(rows.sum() // (2 * _FEWEST), 1, _RANGES))
        order = np.argsort(np.argsort(self.elapsed[rows], kind="stable"), kind="stable")
        return order * count // max(len(order), 1)

    def stretches(self, length: float) -> list[Ints]:
        """Rows of each stretch of arrivals that were not yet positive when it ended, from the last back."""
        if length not in self._known:
            number = (self.elapsed // length).astype(np.int64)
            open_then = ~(self.delay <= self.elapsed - number * length)
            rows = np.flatnonzero(open_then & (number < _STRETCHES))
            rows = rows[np.argsort(number[rows], kind="stable")]
            parts = np.split(rows, np.searchsorted(number[rows], np.arange(1, _STRETCHES)))
            enough = [len(part) >= _FEWEST for part in parts]
            self._known[length] = parts[: enough.index(False)] if False in enough else parts
        return self._known[length]

    def lengths(self) -> list[float]:
        span = float(self.elapsed.max()) or 1.0
        longest = min(span / 4, self.horizon or span)
        return [longest / 8, longest / 4, longest / 2, longest]


def evidence(values: Values, seen: Seen) -> str | None:
    """Why a column seems to know the outcome, None where it does not."""
    return (
        _determines(values, seen)
        or _only_positives(values, seen)
        or _missing_tells(values, seen)
        or _changes_with_age(values, seen)
    )


def _determines(values: Values, seen: Seen) -> str | None:
    for rows, label in seen.outcomes():
        taken = uncertainty_taken(values.codes[rows], label, seen.ages(rows))
        if taken >= _DETERMINED:
            return f"it takes away {taken:.0%} of the uncertainty about the outcome: {_extremes(values, rows, label)}"
    return None


def _only_positives(values: Values, seen: Seen) -> str | None:
    """Values that hardly any row has without an outcome, of a good part of those with one."""
    label = ~np.isnan(seen.delay)
    count = np.bincount(values.codes, minlength=len(values.names))
    positive = np.bincount(values.codes, label, len(values.names))
    sure = (count >= _FEWEST // 10) & (positive >= _SURE * count)
    rows = int(count[sure].sum())
    if label.mean() <= 0.5 and rows >= _FEWEST // 2 and positive[sure].sum() >= _SURE_SHARE * label.sum():
        share = positive[sure].sum() / rows
        return f"{share:.1%} of the {rows:,} rows where it is {_some(values, sure)} have an outcome, of all rows {label.mean():.1%}"
    return None


def _some(values: Values, which: Bools) -> str:
    names = [values.names[k] for k in np.flatnonzero(which)]
    return " or ".join(names[:2]) + (f" (or one of {len(names) - 2} more values)" if len(names) > 2 else "")


def _missing_tells(values: Values, seen: Seen) -> str | None:
    for rows, label in seen.outcomes():
        gone = values.missing[rows]
        taken = uncertainty_taken(gone.astype(np.int64), label, seen.ages(rows))
        if taken >= _MISSING_TELLS:
            return f"it is missing in {gone[label].mean():.0%} of the rows with an outcome and in {gone[~label].mean():.0%} of those without"
    return None


def _extremes(values: Values, rows: Bools, label: Bools) -> str:
    """The values with the highest and the lowest rate, in words; of those that are not rare, if there are two."""
    codes = values.codes[rows]
    count = np.bincount(codes, minlength=len(values.names))
    rate = np.bincount(codes, label, len(values.names)) / np.maximum(count, 1)
    common = np.flatnonzero(count >= min(0.01 * len(codes), np.sort(count)[-2]))
    high, low = common[np.argmax(rate[common])], common[np.argmin(rate[common])]
    return f"where it is {values.names[high]}, {rate[high]:.1%} of the rows have one, where it is {values.names[low]}, {rate[low]:.1%}"


def uncertainty_taken(codes: Ints, label: Bools, ages: Ints) -> float:
    """How much less log loss a label has when the code is known beside the age, as a share.

    Measured on rows that were not learned from.
    """
    if len(label) < _FEWEST // 3 or label.all() or not label.any():
        return 0.0
    size, half = int(codes.max()) + 1, np.arange(len(label)) % 2 == 0
    joint, loss, base = ages * size + codes, 0.0, 0.0
    for learn in (half, ~half):
        overall = (label[learn].sum() + 0.5) / (learn.sum() + 1.0)
        by_age = _rates(ages, label, learn, overall)
        by_both = _rates(joint, label, learn, by_age[np.arange(len(by_age)).repeat(size)][: int(joint.max()) + 1])
        base += _log_loss(label[~learn], by_age[ages[~learn]])
        loss += _log_loss(label[~learn], by_both[joint[~learn]])
    return 1.0 - loss / base


def _rates(groups: Ints, label: Bools, learn: Bools, prior: float | Floats) -> Floats:
    """The rate of each group among the rows to learn from, as if there was one row more of the prior's rate."""
    size = int(groups.max()) + 1
    count = np.bincount(groups[learn], minlength=size)
    return (np.bincount(groups[learn], label[learn], size) + prior) / (count + 1.0)


def _log_loss(label: Bools, p: Floats) -> float:
    return -float(np.log(np.where(label, p, 1.0 - p)).sum())


def _changes_with_age(values: Values, seen: Seen) -> str | None:
    if values.numbers is not None and len(values.names) > 3:
        counted_from_arrival = _counts_from_arrival(values.numbers[~values.missing], seen.elapsed[~values.missing])
        if counted_from_arrival:
            return counted_from_arrival
        along = _rank_correlation(values.numbers[~values.missing], seen.elapsed[~values.missing])
        if abs(along) >= _ALL_ALONG:  # it follows the calendar, as running numbers do
            return None
    for length in seen.lengths():
        stretches = seen.stretches(length)
        if len(stretches) < 4:
            continue
        found = (
            _filled_in(values, stretches, seen, length)
            or _first_state(values, stretches, seen, length)
            or _trend(values, stretches, seen, length)
        )
        if found:
            return found
    return None


def _counts_from_arrival(numbers: Floats, elapsed: Floats) -> str | None:
    """A number that is the age of the row itself, in some unit."""
    for unit, length in _UNITS.items():
        off = np.abs(numbers - elapsed * length)
        if (
            len(off) >= _FEWEST
            and np.median(off) <= max(1.0, 0.02 * length * np.median(elapsed)) < length * np.ptp(elapsed) / 4
        ):
            return f"it is the age of the row at the end of the log, in {unit}"
    return None


def _filled_in(values: Values, stretches: Sequence[Ints], seen: Seen, length: float) -> str | None:
    """Missing values that become fewer from the first hours on, where a column that ends does so on one day."""
    young, *old = (float(values.missing[rows].mean()) for rows in stretches)
    if young - max(old) < max(_LATE_SHARE, 2.0 * (max(old) - min(old))):
        return None
    eighth = (8.0 * seen.elapsed[stretches[0]] / length).astype(np.int64)
    count = np.bincount(eighth, minlength=8)
    share = np.bincount(eighth, values.missing[stretches[0]], 8) / np.maximum(count, 1)
    first, second = share[:2]
    error = np.sqrt((first * (1.0 - first) + second * (1.0 - second)) / max(count[:2].min(), 1))
    if count.min() < _FEWEST // 10 or first - second < max(0.15 * (first - np.mean(old)), 3.0 * error):
        return None
    return (
        f"it is missing in {young:.0%} of the rows of the last {length:.2g} days that are not yet positive, and in {np.mean(old):.0%} of "
        f"those that arrived earlier and were not yet positive at that age: it is filled in later"
    )


def _first_state(values: Values, stretches: Sequence[Ints], seen: Seen, length: float) -> str | None:
    """A value that nearly all rows begin with, and most lose. What follows the calendar does so in earlier stretches too."""
    found, *earlier = (
        _begins_with(values, stretches[k:], seen.elapsed - k * length, length) for k in range(len(stretches) - 2)
    )
    if found is None or any(one is not None for one in earlier):
        return None
    value, first, old = found
    name = "no value" if value == len(values.names) - 1 else f"the value {values.names[value]}"
    return (
        f"{first:.0%} of the rows younger than {length / 4:.2g} days that are not yet positive have {name}, and {old:.0%} of those that "
        f"arrived earlier and were not yet positive at that age: it changes later"
    )


def _begins_with(
    values: Values, stretches: Sequence[Ints], age: Floats, length: float
) -> tuple[int, float, float] | None:
    """The value that nearly all of the youngest rows of the first stretch have, and few of the others; with both shares.

    Old rows are looked at in windows as short as that of the youngest: what returns, a weekday say, is no state that rows lose.
    """
    size, width = len(values.names), length / 4
    young = stretches[0][age[stretches[0]] < width]
    if len(young) < _FEWEST // 2:
        return None
    first, own = (np.bincount(values.codes[rows], minlength=size) / len(rows) for rows in (young, stretches[0]))
    value = int(np.argmax(first))
    if first[value] < _ALL_AT_FIRST or first[value] - 0.05 <= own[value]:
        return None
    old = np.concatenate(stretches[1:])
    window = (age[old] / width).astype(np.int64)
    count = np.maximum(np.bincount(window), 1)
    share = np.bincount(window, values.codes[old] == value) / count
    # A value that no old row has is a new one, and not one that rows lose.
    overall = float((values.codes[old] == value).mean())
    highest = max(float((values.codes[rows] == value).mean()) for rows in stretches[1:])
    if _RARE <= highest <= 0.5 and share[8:].max(initial=0.0) <= 0.6 and own[value] > highest:
        return value, float(first[value]), overall
    return None


def _trend(values: Values, stretches: Sequence[Ints], seen: Seen, length: float) -> str | None:
    """A number that grows, or falls, with age while rows are young."""
    if values.numbers is None or len(np.unique(values.codes)) < 5:
        return None
    known = ~values.missing
    found = []
    for rows in stretches:
        used = rows[known[rows]]
        if len(used) < _FEWEST:
            return None
        found.append(_rank_correlation(values.numbers[used], seen.elapsed[used]))
    young, *old = found
    chance = 3.0 / np.sqrt(min(map(len, stretches)))  # what no trend may look like in a short stretch
    if abs(young) >= _TREND and max(map(abs, old)) <= max(_NO_TREND, chance):
        return (
            f"among rows of the last {length:.2g} days that are not yet positive it {'grows' if young > 0 else 'falls'} with age (rank "
            f"correlation {young:+.2f}), and among earlier ones it does not ({min(old, key=abs):+.2f} to {max(old, key=abs):+.2f}): it "
            f"goes on changing after arrival"
        )
    return None


def _rank_correlation(a: Floats, b: Floats) -> float:
    if len(a) < _FEWEST or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(stats.spearmanr(a, b).statistic)
