"""A forecast on the terminal, and as one table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from belated.cli.terminal import out, plain

_MOST = 14  # days that are shown


def show_forecast(summary: dict[str, Any]) -> None:
    out.print(f"[bold]{plain(summary['verdict'])}[/]", soft_wrap=True)
    out.print(_by_day(summary))
    if summary["by_group"]:
        out.print(_by_group(summary))
    if summary["past"]:
        out.print(_past(summary))
    for note in summary["notes"]:
        out.print(plain(note), soft_wrap=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.1f}"


def _band(bands: dict[str, list[float]]) -> list[str]:
    return [f"{_number(low)} to {_number(high)}" for low, high in bands.values()]


def _by_day(summary: dict[str, Any]) -> Table:
    days, levels = summary["by_outcome"], list(summary["total"]["bands"])
    with_new = summary["settings"]["arrivals"] is not None
    shown = days if len(days) <= _MOST else days[: _MOST - 2]
    table = Table(title=f"What comes, by {summary['settings']['unit']}")
    table.add_column("until the end of" if summary["settings"]["unit"] in ("day", "hour") else "from")
    for heading in ("comes", *(["with new arrivals"] if with_new else []), "in all by then"):
        table.add_column(heading, justify="right")
    for level in levels:
        table.add_column(level, justify="right")
    for row in [*shown, *(days[-1:] if shown is not days else [])]:
        if row is days[-1] and shown is not days:
            table.add_row("...")
        comes = [_number(row["to_come"]), *([_number(row["all"])] if with_new else [])]
        key = "all_cumulated" if with_new else "cumulated"
        table.add_row(row["day"], *comes, _number(row[key]), *_band(row[f"{key}_bands"]))
    return table


def _by_group(summary: dict[str, Any]) -> Table:
    table = Table(title=f"By {plain(summary['settings']['group'])}")
    table.add_column(plain(summary["settings"]["group"]))
    for heading in ("rows", "so far", "to come", *summary["total"]["bands"], "in the end"):
        table.add_column(heading, justify="right")
    for row in summary["by_group"][:_MOST]:
        numbers = (_number(row["so_far"]), _number(row["to_come"]), *_band(row["bands"]), _number(row["final"]))
        table.add_row(plain(row["name"]), f"{row['rows']:,}", *numbers)
    return table


def _past(summary: dict[str, Any]) -> Table:
    ours = summary["settings"]["method"]
    table = Table(title="The same from dates of the past")
    for heading in ("from", "until"):
        table.add_column(heading)
    names = {"came": "came", "forecast": ours, "chain_ladder": "chain ladder"}
    if ours == "chain-ladder":
        del names["chain_ladder"]
    for heading in names.values():
        table.add_column(heading, justify="right")
    for row in summary["past"]:
        off = [f"{_number(row[key])} ({row[key] / max(row['came'], 1e-9) - 1:+.0%})" for key in names if key != "came"]
        table.add_row(row["as_of"][:16], row["until"][:16], _number(row["came"]), *off)
    return table


def forecast_table(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each day of outcome, day of arrival and group, with the ends of the bands as columns."""
    found = []
    for by, rows in (
        ("total", [summary["total"]]),
        *((k, summary[k]) for k in ("by_outcome", "by_arrival", "by_group")),
    ):
        for row in rows:
            line = {
                "by": by.removeprefix("by_"),
                "name": next(row[key] for key in ("day", "name", "as_of") if key in row),
            }
            line |= {key: row.get(key) for key in ("rows", "so_far", "to_come", "final", "cumulated")}
            for level, (low, high) in row["bands"].items():
                line |= {f"low_{level.rstrip('%')}": low, f"high_{level.rstrip('%')}": high}
            line["with_new_arrivals"] = row.get("all", row.get("all_to_come"))
            found.append({key: round(value, 6) if isinstance(value, float) else value for key, value in line.items()})
    return found
