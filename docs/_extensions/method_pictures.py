"""The picture of each method's page, and the table of all of them, drawn from what experiments/when_methods_fail.py wrote."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sphinx.application import Sphinx

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "experiments" / "results" / "when_methods_fail.json"
OUT = HERE.parent / "methods" / "generated"
BLUE, RED, GREY = "#2b6cb0", "#c53030", "#b8c0cc"
MINUS = "\N{MINUS SIGN}"
LEAST = 0.03  # percent: what is smaller is drawn here
NAMES = {
    "plain": "nothing special",
    "long-delays": "long delays",
    "segments": "delays differ by segment",
    "after-a-trial": "all come around day 6",
    "new-segment": "a new segment",
    "rising-rate": "rising rate",
    "falling-rate": "falling rate",
    "slower-lately": "slower lately",
    "few-rows": "few rows",
}


def worst(results: dict[str, Any], name: str) -> str:
    """Where a method does worst beside what the typical method does there."""
    scores = results["methods"]

    def regret(scenario: str) -> float:
        typical = np.median([score["excess"] for score in scores[scenario].values() if "excess" in score])
        return float(scores[scenario][name]["excess"] - typical)

    return max((s for s in scores if "excess" in scores[s][name]), key=regret)


def draw_profile(axes: Any, results: dict[str, Any], name: str, failing: str) -> None:
    for place, (scenario, scores) in enumerate(results["methods"].items()):
        others = [max(score["excess"], LEAST) for other, score in scores.items() if other not in ("oracle", name)]
        axes.scatter(others, [place] * len(others), s=22, color=GREY, zorder=2)
        mine = scores[name]["excess"]
        axes.scatter(max(mine, LEAST), place, s=75, color=RED if scenario == failing else BLUE, zorder=4, ec="white")
        axes.annotate(
            f"{mine:.2f}".replace("-", MINUS) + "%",
            (1.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            color=RED if scenario == failing else "black",
        )
    axes.set_xscale("log")
    axes.set_xticks([0.03, 0.1, 1, 10, 100], ["≤ .03", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_yticks(range(len(NAMES)), [NAMES[scenario] for scenario in results["methods"]])
    axes.invert_yaxis()
    axes.grid(axis="x", color="#e8ebef", zorder=0)
    axes.set_xlabel("log loss above the oracle, %  (grey: the other methods)")
    axes.set_title(f"{name} on nine simulated logs", loc="left", fontweight="bold")


def draw_failure(axes: Any, results: dict[str, Any], name: str, failing: str) -> None:
    mine, true = np.array(results["methods"][failing][name]["groups"]).T * 100
    places = np.arange(len(mine))
    axes.bar(places - 0.2, true, 0.38, color=GREY, label="true rate")
    axes.bar(places + 0.2, mine, 0.38, color=RED, label=f"{name} predicts")
    axes.set_xticks(places, [f"s{k}" for k in places])
    axes.set_xlabel("segment")
    axes.set_ylabel("%")
    axes.set_ylim(0, 1.35 * max(mine.max(), true.max()))
    axes.legend(frameon=False, loc="upper left", borderaxespad=0)
    axes.set_title(f"Where it does worst:\n{NAMES[failing]}", loc="left", fontweight="bold")


def draw_method(results: dict[str, Any], name: str, file: Path) -> None:
    failing = worst(results, name)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.9), constrained_layout=True, width_ratios=[1.35, 1])
    draw_profile(left, results, name, failing)
    draw_failure(right, results, name, failing)
    figure.savefig(file, bbox_inches="tight")
    plt.close(figure)


def draw_table(results: dict[str, Any], file: Path) -> None:
    """All methods on all logs, the best mean rank first."""
    scores = results["methods"]
    names = [name for name in scores["plain"] if name != "oracle"]
    table = np.array([[scores[scenario][name]["excess"] for scenario in scores] for name in names])
    order = np.argsort(np.argsort(np.argsort(table, axis=0), axis=0).mean(axis=1))
    figure, axes = plt.subplots(figsize=(11, 7.6), constrained_layout=True)
    shade = np.log10(np.clip(table[order], 0.1, 10))
    axes.imshow(shade, aspect="auto", cmap="Blues", vmin=-1, vmax=1.6)
    for row, k in enumerate(order):
        for column, value in enumerate(table[k]):
            text = f"{value:.0f}" if abs(value) >= 10 else f"{value:.2f}"
            color = "white" if shade[row, column] > 0.5 else "black"
            axes.text(column, row, text.replace("-", MINUS), ha="center", va="center", color=color)
    axes.set_xticks(range(len(scores)), [fill(NAMES[s], 11) for s in scores])
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(names)), [names[k] for k in order])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    figure.savefig(file, bbox_inches="tight")
    plt.close(figure)


def draw_all(app: Sphinx) -> None:
    results = json.loads(RESULTS.read_text())
    OUT.mkdir(exist_ok=True)
    look = {"font.size": 10.5, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "belated"}
    with plt.rc_context(look):
        for name in results["methods"]["plain"]:
            if name != "oracle":
                draw_method(results, name, OUT / f"{name}.svg")
        draw_table(results, OUT / "all.svg")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
