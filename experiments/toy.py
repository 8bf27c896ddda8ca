"""Chapelle's toy example. Results go to experiments/results/; run again, it goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from belated.reproduce.toy_campaign import reproduce_toy

OUT = Path(__file__).parent / "results"
RUNS = 100

if __name__ == "__main__":
    rows = reproduce_toy(OUT, RUNS)
    days = [1, 2, 3, 5, 7, 10, 14]
    table = Table(title="Median predicted rate (quartiles) at the end of day ...; the true rate is 0.1")
    for heading in ("method", *map(str, days)):
        table.add_column(heading)
    for method in dict.fromkeys(r["method"] for r in rows):
        found = {r["day"]: r for r in rows if r["method"] == method}
        cells = [found[d] for d in days]
        table.add_row(
            method, *(f"{c['median']:.3f} ({c['lower_quartile']:.3f}, {c['upper_quartile']:.3f})" for c in cells)
        )
    Console(width=160).print(table)
