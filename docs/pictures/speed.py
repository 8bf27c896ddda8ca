"""The README's second picture: time to a given precision, from the numbers that benchmarks/wide.py saved."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

NAMES = {
    "belated": "belated",
    "saga": "scikit-learn saga",
    "lbfgs": "scikit-learn lbfgs",
    "sgd": "scikit-learn SGD",
    "liblinear -s 7": "LIBLINEAR dual",
    "liblinear -s 0": "LIBLINEAR primal",
}
here = Path(__file__).parent
saved = json.loads((here.parent / "benchmarks" / "wide.json").read_text())

plt.rcParams |= {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), constrained_layout=True)
rows = [r for r in saved["fits"] if r["C"] == 0.1 and r["name"] in NAMES and r["seconds"]]
rows.sort(key=lambda r: -r["seconds"])
colours = ["#1d63c9" if r["name"] == "belated" else "#a9b0ba" for r in rows]
bars = left.barh([NAMES[r["name"]] for r in rows], [r["seconds"] for r in rows], color=colours)
left.bar_label(bars, [f"{r['seconds']:.1f} s" for r in rows], padding=3)
left.set(xlabel="seconds to within 1e-4 of the minimum", title="1 M rows, 17 fields in 2^24 columns, C = 0.1")
left.margins(x=0.15)
for name in ("saga", "liblinear -s 7", "belated"):
    points = [r for r in saved["growth"] if r["name"] == name]
    colour = "#1d63c9" if name == "belated" else "#a9b0ba"
    right.plot([r["rows"] / 1e6 for r in points], [r["seconds"] for r in points], marker="o", color=colour)
    last = points[-1]
    place = {"saga": (-8, 2), "liblinear -s 7": (6, -66), "belated": (-8, 6)}[name]
    at = (last["rows"] / 1e6, last["seconds"])
    right.annotate(NAMES[name], at, xytext=place, textcoords="offset points", ha="right")
right.set(xlabel="million rows", ylabel="seconds", title="and how that grows (simulated, 2 cores)")
figure.savefig(here / "speed.png", dpi=150)
