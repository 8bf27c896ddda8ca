"""Conditions on columns: the same rows as Python would choose, and nothing but comparisons."""

from __future__ import annotations

import pyarrow as pa
import pytest
from effort import given_some
from hypothesis import strategies as st

from belated import EventLog
from belated.tables.conditions import Condition

NUMBERS = st.none() | st.integers(-3, 3)
WORDS = st.none() | st.sampled_from(["won", "lost", "open"])
ATOMS = [
    'word == "won"',
    'word != "won"',
    "number > 0",
    "0 >= number",
    "number in (1, 2)",
    'word not in ["won", "lost"]',
    "word is None",
]
ATOMS += ["number is not None", "number == -1"]


@given_some(
    st.lists(st.tuples(NUMBERS, WORDS), min_size=1, max_size=10),
    st.sampled_from(ATOMS),
    st.sampled_from(ATOMS),
    st.sampled_from(["and", "or"]),
)
def test_the_rows_that_python_would_choose(rows, first, second, join):
    table = pa.table(
        {"number": pa.array([n for n, _ in rows], pa.int64()), "word": pa.array([w for _, w in rows], pa.string())}
    )
    text = f"{first} {join} {second}"

    def holds(atom, number, word):
        missing = (number if "number" in atom else word) is None
        return eval(atom, {"number": number, "word": word}) if "None" in atom or not missing else False

    def both(n, w):
        parts = [holds(first, n, w), holds(second, n, w)]
        return all(parts) if join == "and" else any(parts)

    assert Condition(text).holds(table).tolist() == [both(n, w) for n, w in rows]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "word ==",
        "__import__('os').system('true')",
        "word == other()",
        "(lambda: 1)() == 1",
        "word == 'a' if 1 else 2",
        "1 < number < 3",
        "word == b'x'",
        "word = 'won'",
        "[x for x in y]",
        "number == number2 + 1",
    ],
)
def test_what_is_no_comparison_is_refused(text):
    table = pa.table({"word": ["a"], "number": [1], "number2": [1]})
    with pytest.raises(ValueError, match="--outcome-where"):
        Condition(text).holds(table)


def test_names_that_are_no_words_and_truth_values():
    table = pa.table({"is won?": [True, False, None], "amount, net": [1.0, 2.0, 3.0]})
    assert Condition("`is won?`").holds(table).tolist() == [True, False, False]
    assert Condition("not `is won?` and `amount, net` > 1").holds(table).tolist() == [False, True, False]


def test_an_outcome_that_does_not_count_is_none():
    table = pa.table(
        {
            "at": ["2024-01-01"] * 3,
            "closed": ["2024-01-02", "2024-01-03", None],
            "status": ["won", "lost", "open"],
            "x": [1, 2, 3],
        }
    )
    log = EventLog.from_frame(table, arrival="at", outcome="closed", features=["x"], outcome_where='status == "won"')
    assert log.snapshot("2024-01-03").y.tolist() == [1, 0, 0] and log.positives == 1
