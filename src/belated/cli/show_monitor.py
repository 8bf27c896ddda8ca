"""What a monitor found, on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from belated.cli.terminal import out, plain

_WIDE = 110  # characters, for all columns of a table
_MOST = 12  # periods and segments that are shown


def _share(number: float) -> str:
    """A percentage with three digits that say something, however small it is."""
    return f"{100 * number:.3g}%"


_RATIO = "{:.2f}".format
_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "rate": ("rate expected", _share),
    "calibration": ("predicted / actual", _RATIO),
    "log_loss": ("log loss", "{:.3g}".format),
    "auc": ("ROC AUC", _RATIO),
}


def show_monitor(summary: dict[str, Any]) -> None:
    out.print(f"[bold]{plain(summary['verdict'])}[/]", style="red" if summary["failed"] else "", soft_wrap=True)
    out.print(_periods(summary))
    if summary["segments"]:
        out.print(_segments(summary))
    if summary["check"]:
        out.print(_check(summary))
    for note in summary["notes"]:
        out.print(plain(note), soft_wrap=True)


def _figure(value: list[float | None], form: Callable[[float], str]) -> str:
    middle, low, high = ("" if number is None else form(number) for number in value)
    if low and not middle and not high:
        return f"over {low}"
    return f"{middle}\n{low.rstrip('%')} to {high}" if low and high else middle


def _column(table: Table, heading: str, **how: Any) -> None:
    """One whose heading has a line for each word."""
    table.add_column(heading.replace(" ", "\n"), **how)


def _periods(summary: dict[str, Any]) -> Table:
    periods = summary["periods"][-_MOST:]
    versions = summary["settings"]["version"] is not None
    table = Table(title="By when rows were scored", box=SIMPLE, padding=(0, 0, 0, 1))
    _column(table, "from", no_wrap=True)
    if versions:
        _column(table, "version", overflow="fold")
    for heading in ("rows", "labels in", "rate so far"):
        _column(table, heading, justify="right", no_wrap=True)
    # On a narrow terminal whole numbers of the two that matter most; the page and --json have all.
    wide = out.width >= _WIDE
    shown = _COLUMNS if wide else {name: _COLUMNS[name] for name in ("rate", "calibration")}
    for heading, _ in shown.values():
        _column(table, heading, justify="right")
    for heading in ("delays", "final on") if wide else ():
        _column(table, heading, justify="right", no_wrap=True)
    for row in periods:
        named = [row["period"], *([plain(str(row["version"]))] if versions else [])]
        figures = [_figure(row[key], form) for key, (_, form) in shown.items()]
        style = "bold" if row is summary["judged"] else "dim" if row["final"] else ""
        about = (f"{row['rows']:,}", f"{row['share_in']:.0%}", _share(row["rate_so_far"]))
        table.add_row(*named, *about, *figures, *((row["delays"], row["final_on"][:10]) if wide else ()), style=style)
    return table


def _segments(summary: dict[str, Any]) -> Table:
    table = Table(title=f"By {plain(summary['settings']['by'])}, rows that are not final", box=SIMPLE)
    versions = summary["settings"]["version"] is not None
    for heading in (plain(summary["settings"]["by"]), *(["version"] if versions else [])):
        table.add_column(heading)
    for heading in ("rows", "labels in", *(name for name, _ in _COLUMNS.values()), "p, for their number"):
        table.add_column(heading, justify="right")
    for row in summary["segments"][:_MOST]:
        figures = [_figure(row[key], form) for key, (_, form) in _COLUMNS.items()]
        style = "bold red" if row["adjusted_p"] < 0.05 else ""
        about = (f"{row['rows']:,}", f"{row['share_in']:.0%}")
        named = (plain(row["segment"]), *([plain(str(row["version"]))] if versions else []))
        table.add_row(*named, *about, *figures, f"{row['adjusted_p']:.2g}", style=style)
    return table


def _check(summary: dict[str, Any]) -> Table:
    table = Table(title="What would have been said of final periods: actual over predicted")
    for heading in ("from", "days after its end", "labels in", "said", "truth"):
        table.add_column(heading, justify="right")
    for row in summary["check"]:
        found, truth = row["oe"], row["oe"]["truth"]
        style = "yellow" if found["inside"] is False else ""
        said = _figure(found["said"], _RATIO).replace("\n", ", ")
        known = "" if truth is None else f"{truth:.2f}"
        table.add_row(row["period"], f"{row['lag']:g}", f"{row['share_in']:.0%}", said, known, style=style)
    return table
