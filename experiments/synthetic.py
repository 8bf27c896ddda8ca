"""The paper's synthetic experiment. Results go to experiments/results/; run again, it goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from belated.reproduce.drift_figure import ETAS, READINGS, reproduce_synthetic

OUT = Path(__file__).parent / "results"
TRIALS = 20  # of the main reading
MORE_TRIALS = 3  # of other readings, and with lambda tuned by true labels

if __name__ == "__main__":
    table = reproduce_synthetic(OUT, TRIALS, ETAS, MORE_TRIALS)
    for reading in READINGS:
        for tuning in ("corrected", "truth"):
            rows = [r for r in table if r["reading"] == reading and r["tuning"] == tuning]
            if not rows:
                continue
            etas = sorted({r["eta"] for r in rows})
            shown = Table(title=f"{reading}; lambda tuned by {tuning}; {rows[0]['trials']} trials")
            for heading in ("relative log loss at eta =", *(f"{eta:g}" for eta in etas)):
                shown.add_column(heading, justify="left" if "log" in heading else "right")
            for method in dict.fromkeys(r["method"] for r in rows):
                values = {r["eta"]: r["relative_log_loss"] for r in rows if r["method"] == method}
                shown.add_row(method, *(f"{values[eta]:+.3f}" for eta in etas))
            Console(width=120).print(shown)
