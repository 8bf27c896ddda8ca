"""Columns that know the outcome: features that no model would have when it is asked.

Three things give such a column away, each looked for on its own:

- it (nearly) determines the outcome;
- whether it is missing goes with the outcome;
- it changes as rows grow older. Young rows that are not yet positive have another value, or none, where old rows had theirs
  filled in since. Compared are stretches of arrivals, each with the rows that were not yet positive when it ended: a feature
  known at arrival differs between the last stretch and the one before as it does between earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from belated.features.quantiles import weighted_quantiles
from belated.tables.missing import EMPTY_TEXT, missing_words
from belated.typing import Bools, Floats, Ints

_DETERMINED = 0.5  # share of the uncertainty about the outcome that a column may take away
_MISSING_TELLS = 0.1  # the same, of whether it is missing
_MOST_VALUES = 100
_RANGES = 20  # of a number with many values
_STRETCHES = 8  # of arrivals
_FEWEST = 100  # rows in a stretch
_LATE_SHARE = 0.2  # by how much the share of missing values must differ between young and old rows
_ALL_AT_FIRST = 0.8  # of the youngest rows have a value that at most half of the old ones still have
_TREND = 0.4  # rank correlation of a number with age among young rows, where old ones have next to none
_NO_TREND = 0.15
_ALL_ALONG = 0.9  # rank correlation with age over the whole log


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

    def outcomes(self) -> Iterator[tuple[Bools, Bools]]:
        """Rows and their labels: whether there is an outcome at all, and within the horizon where that is final."""
        known = ~np.isnan(self.delay)
        yield np.ones(len(known), dtype=bool), known
        if self.horizon is not None:
            mature = self.elapsed >= self.horizon
            yield mature, (known & (self.delay <= self.horizon))[mature]

    def stretches(self, length: float) -> list[Bools]:
        """Rows of each stretch of arrivals that were not yet positive when it ended, from the last back."""
        found = []
        for number in range(_STRETCHES):
            age = self.elapsed - number * length
            rows = (age >= 0) & (age < length) & ~(self.delay <= age)
            if rows.sum() < _FEWEST:
                break
            found.append(rows)
        return found

    def lengths(self) -> list[float]:
        span = float(self.elapsed.max()) or 1.0
        longest = min(span / 4, self.horizon or span)
        return [longest / 8, longest / 4, longest / 2, longest]


def evidence(values: Values, seen: Seen) -> str | None:
    """Why a column seems to know the outcome, None where it does not."""
    return _determines(values, seen) or _missing_tells(values, seen) or _changes_with_age(values, seen)


def _determines(values: Values, seen: Seen) -> str | None:
    for rows, label in seen.outcomes():
        taken = uncertainty_taken(values.codes[rows], label, len(values.names))
        if taken >= _DETERMINED:
            low, high = _extremes(values, rows, label)
            return f"it takes away {taken:.0%} of the uncertainty about the outcome: {high}, {low}"
    return None


def _missing_tells(values: Values, seen: Seen) -> str | None:
    for rows, label in seen.outcomes():
        gone = values.missing[rows]
        taken = uncertainty_taken(gone.astype(np.int64), label, 2)
        if taken >= _MISSING_TELLS:
            return f"it is missing in {gone[label].mean():.0%} of the rows with an outcome and in {gone[~label].mean():.0%} of those without"
    return None


def _extremes(values: Values, rows: Bools, label: Bools) -> tuple[str, str]:
    """The values with the lowest and the highest rate, in words; of those that are not rare, if there are two."""
    codes = values.codes[rows]
    count = np.bincount(codes, minlength=len(values.names))
    rate = np.bincount(codes, label, len(values.names)) / np.maximum(count, 1)
    common = np.flatnonzero(count >= min(0.01 * len(codes), np.sort(count)[-2]))
    low, high = common[np.argmin(rate[common])], common[np.argmax(rate[common])]
    return tuple(f"{rate[k]:.1%} of the rows with {values.names[k]} have one" for k in (low, high))  # type: ignore[return-value]


def uncertainty_taken(codes: Ints, label: Bools, size: int) -> float:
    """How much less log loss a label has when the code is known, as a share; measured on rows that were not learned from."""
    if len(label) < _FEWEST or label.all() or not label.any():
        return 0.0
    half, loss, base = np.arange(len(label)) % 2 == 0, 0.0, 0.0
    for learn in (half, ~half):
        prior = (label[learn].sum() + 0.5) / (learn.sum() + 1.0)
        count = np.bincount(codes[learn], minlength=size)
        rate = (np.bincount(codes[learn], label[learn], size) + prior) / (count + 1.0)
        test = label[~learn]
        for p, total in ((rate[codes[~learn]], "loss"), (np.full(len(test), prior), "base")):
            cost = -float(np.log(np.where(test, p, 1.0 - p)).sum())
            loss, base = (loss + cost, base) if total == "loss" else (loss, base + cost)
    return 1.0 - loss / base


def _changes_with_age(values: Values, seen: Seen) -> str | None:
    if values.numbers is not None and len(values.names) > 3:
        along = _rank_correlation(values.numbers[~values.missing], seen.elapsed[~values.missing])
        if along >= _ALL_ALONG:
            return f"it grows with the age of rows all along (rank correlation {along:+.2f}): it seems to count from arrival"
        if along <= -_ALL_ALONG:  # it grows with time, as running numbers do
            return None
    for length in seen.lengths():
        stretches = seen.stretches(length)
        if len(stretches) < 4:
            continue
        found = (
            _filled_in(values, stretches, length)
            or _first_state(values, stretches, seen, length)
            or _trend(values, stretches, seen, length)
        )
        if found:
            return found
    return None


def _filled_in(values: Values, stretches: Sequence[Bools], length: float) -> str | None:
    young, *old = (float(values.missing[rows].mean()) for rows in stretches)
    spread = max(old) - min(old)
    if young - max(old) >= max(_LATE_SHARE, 2.0 * spread):
        return (
            f"it is missing in {young:.0%} of the rows of the last {length:.2g} days that are not yet positive, and in "
            f"{np.mean(old):.0%} of those that arrived earlier and were not yet positive at that age: it is filled in later"
        )
    return None


def _first_state(values: Values, stretches: Sequence[Bools], seen: Seen, length: float) -> str | None:
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
    values: Values, stretches: Sequence[Bools], age: Floats, length: float
) -> tuple[int, float, float] | None:
    """The value that nearly all of the youngest rows of the first stretch have, and few of the others; with both shares."""
    youngest = stretches[0] & (age < length / 4)
    if youngest.sum() < _FEWEST // 2:
        return None
    size = len(values.names)
    first, own, *old = (np.bincount(values.codes[rows], minlength=size) / rows.sum() for rows in (youngest, *stretches))
    value = int(np.argmax(first))
    most = max(share[value] for share in old)
    if first[value] >= _ALL_AT_FIRST and most <= 0.5 and first[value] > own[value] > most:
        return value, float(first[value]), float(np.mean([share[value] for share in old]))
    return None


def _trend(values: Values, stretches: Sequence[Bools], seen: Seen, length: float) -> str | None:
    """A number that grows, or falls, with age while rows are young."""
    if values.numbers is None or len(np.unique(values.codes)) < 5:
        return None
    known = ~values.missing
    found = []
    for rows in stretches:
        used = rows & known
        if used.sum() < _FEWEST:
            return None
        found.append(_rank_correlation(values.numbers[used], seen.elapsed[used]))
    young, *old = found
    if abs(young) >= _TREND and max(map(abs, old)) <= _NO_TREND:
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
