"""Scores and outcomes from the files that the command line names; columns that were not named are guessed, and shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from belated.cli.open_log import guess_time, listed, text_format
from belated.data.times import TimeFormat
from belated.tables.conditions import Condition
from belated.tables.sources import Source, open_files


@dataclass(frozen=True)
class OpenedScores:
    scores: Any
    outcomes: Any
    columns: dict[str, str]  # of time and outcome
    name: str


def open_scores(files: tuple[Path, ...], options: dict[str, Any]) -> OpenedScores:
    how, times = text_format({"na": None, **options}), TimeFormat(options["time_format"], options["time_unit"])
    scores = open_files(files, how)
    outcomes = None if options["outcomes"] is None else open_files([options["outcomes"]], how)
    if (outcomes is None) == (options["key"] is not None):
        raise ValueError(
            "--outcomes and --key go together: a file of outcomes, and the column by which they find their scores."
        )
    second = outcomes or scores
    for option, source in (
        ("time", scores),
        ("score", scores),
        ("by", scores),
        ("version", scores),
        ("outcome", second),
    ):
        _require(option, options[option], source)
    for source in (scores, second):
        _require("key", options["key"], source)
    looked_at = [] if options["outcome_where"] is None else Condition(options["outcome_where"]).columns
    for name in looked_at:
        _require("outcome-where", name, second)
    columns = {
        "time": options["time"] or guess_time(scores, "scoring", "--time"),
        "outcome": options["outcome"] or guess_time(second, "outcome", "--outcome"),
    }
    keys = [] if options["key"] is None else [options["key"]]
    kinds = dict.fromkeys([*(columns.values() if times.format else ()), *keys], "text")
    others = [options[name] for name in ("score", "by", "version") if options[name] is not None]
    mine = [columns["time"], *keys, *others, *([columns["outcome"], *looked_at] if outcomes is None else [])]
    read = scores.read(list(dict.fromkeys(mine)), kinds)
    theirs = (
        None if outcomes is None else outcomes.read(list(dict.fromkeys([*keys, columns["outcome"], *looked_at])), kinds)
    )
    return OpenedScores(read, theirs, columns, scores.name)


def _require(option: str, name: str | None, source: Source) -> None:
    if name is not None and name not in source.columns:
        raise ValueError(
            f"--{option} {name}: no such column; the columns of {source.name} are {listed(source.columns, 40)}."
        )
