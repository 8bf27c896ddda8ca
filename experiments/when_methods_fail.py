"""When does each method fail? Nine simulated logs, each of which breaks one assumption, and every method on all of them.

    python experiments/when_methods_fail.py             # about six minutes on two cores
    python experiments/when_methods_fail.py --draws 2   # a quick look

Features are four numbers and a segment; 28 days of training rows, a horizon of 14 days, a window of 7, and a linear model with one small penalty
for all (where there are few rows it is chosen by cross-validation, as `belated train` does). Scores are exact: the mean log loss over the true probabilities of the rows of the next day, relative to the same model
trained on final labels (the oracle). The pictures of the pages on methods are drawn from the file that this writes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed

from belated import DelayedFeedbackClassifier, LinearModel
from belated.methods import METHODS

DAYS, HORIZON, WINDOW = 28.0, 14.0, 7.0
ROWS_A_DAY, TEST_ROWS = 500, 10_000
SEGMENTS = 6
L2 = 1e-4  # of 1e-5, 1e-4 and 1e-3 the largest that costs the oracle nothing

# Each log differs from the first in the one way that its name says.
SCENARIOS = {
    "plain": "exponential delays, nothing changes",
    "long-delays": "delays four times as long",
    "segments": "half of the segments have delays sixteen times as long as the others",
    "after-a-trial": "nearly all positives come around day 6",
    "new-segment": "a segment began four days ago and converts far more often",
    "rising-rate": "the rate of all nearly doubles within the four weeks",
    "falling-rate": "the rate of all nearly halves within the four weeks",
    "slower-lately": "for rows of the last ten days delays are three times as long",
    "few-rows": "40 rows a day",
}


def simulate(scenario: str, rng: np.random.Generator) -> dict[str, tuple]:
    """Training rows as known today, with their final labels, and the rows of the next day with their true probabilities."""
    n = int(DAYS * (40 if scenario == "few-rows" else ROWS_A_DAY))
    age = np.concatenate([rng.uniform(0, DAYS, n), np.zeros(TEST_ROWS)])  # test rows arrive now
    numbers = rng.normal(size=(len(age), 4))
    segment = rng.integers(0, SEGMENTS, len(age))
    if scenario == "new-segment":
        segment = np.where((segment == 5) & (age > 4), rng.integers(0, 5, len(age)), segment)
    margin = -1.4 + numbers @ [0.8, -0.5, 0.3, 0.0] + np.linspace(-0.6, 0.6, SEGMENTS)[segment]
    if scenario == "new-segment":
        margin += np.where(segment == 5, 1.1, 0.0)
    if scenario in ("rising-rate", "falling-rate"):
        margin += (0.8 if scenario == "rising-rate" else -0.8) * (1 - age / DAYS)
    probability = 1 / (1 + np.exp(-margin))

    mean = np.full(len(age), 3.0)  # days, before the cut at the horizon
    if scenario == "long-delays":
        mean[:] = 12.0
    if scenario == "segments":
        mean = np.where(segment % 2 == 0, 0.5, 8.0)
    if scenario == "slower-lately":
        mean = np.where(age < 10, 9.0, 3.0)
    share = -np.expm1(-HORIZON / mean)
    delay = -mean * np.log1p(-rng.uniform(size=len(age)) * share)  # exponential, cut at the horizon
    if scenario == "after-a-trial":
        delay = np.where(rng.uniform(size=len(age)) < 0.1, delay, np.clip(rng.normal(6, 0.7, len(age)), 0, HORIZON))

    positive = rng.uniform(size=len(age)) < probability
    table = pa.table({f"x{k}": numbers[:, k] for k in range(4)} | {"segment": pa.array([f"s{s}" for s in segment])})
    seen = positive & (delay <= age)
    train, test = slice(0, n), slice(n, None)
    return {
        "train": (
            table.slice(0, n),
            seen[train].astype(int),
            age[train],
            np.where(seen, delay, np.nan)[train],
            positive[train],
        ),
        "test": (table.slice(n), probability[test], segment[test]),
    }


def one_draw(scenario: str, draw: int) -> list[dict]:
    rng = np.random.default_rng([draw, list(SCENARIOS).index(scenario)])
    data = simulate(scenario, rng)
    table, seen, age, delay, final = data["train"]
    rows, truth, segment = data["test"]

    def score(name: str, classifier: DelayedFeedbackClassifier) -> dict:
        p = np.clip(classifier.predict_proba(rows)[:, 1], 1e-6, 1 - 1e-6)
        groups = [[float(p[segment == s].mean()), float(truth[segment == s].mean())] for s in range(SEGMENTS)]
        loss = float(-(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean())
        return {
            "scenario": scenario,
            "draw": draw,
            "method": name,
            "log_loss": loss,
            "ratio": float(p.mean() / truth.mean()),
            "groups": groups,
        }

    model = LinearModel(l2=None if scenario == "few-rows" else L2)
    found = [score("oracle", DelayedFeedbackClassifier("bl", model=model).fit(table, final.astype(int)))]
    for name in METHODS:
        classifier = DelayedFeedbackClassifier(name, window=WINDOW, horizon=HORIZON, model=model)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(score(name, classifier.fit(table, seen, elapsed=age, delay=delay)))
        except ValueError as error:
            found.append({"scenario": scenario, "draw": draw, "method": name, "error": str(error)})
    return found


def summarise(rows: list[dict]) -> dict:
    """By scenario and method: excess log loss in percent of the oracle's (mean and its error), predicted over true rate, and by segment."""
    oracle = {(r["scenario"], r["draw"]): r["log_loss"] for r in rows if r["method"] == "oracle"}
    table: dict = {scenario: {} for scenario in SCENARIOS}
    for scenario in SCENARIOS:
        for name in ["oracle", *METHODS]:
            mine = [r for r in rows if r["scenario"] == scenario and r["method"] == name]
            fitted = [r for r in mine if "log_loss" in r]
            if not fitted:
                table[scenario][name] = {"error": mine[0]["error"]}
                continue
            excess = np.array([100 * (r["log_loss"] / oracle[scenario, r["draw"]] - 1) for r in fitted])
            table[scenario][name] = {
                "excess": round(float(excess.mean()), 3),
                "error_of_excess": round(float(excess.std(ddof=1) / len(excess) ** 0.5), 3)
                if len(excess) > 1
                else None,
                "ratio": round(float(np.mean([r["ratio"] for r in fitted])), 3),
                "groups": np.round(np.mean([r["groups"] for r in fitted], axis=0), 4).tolist(),
                "failed_draws": len(mine) - len(fitted),
            }
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "when_methods_fail.json")
    arguments = parser.parse_args()
    tasks = [delayed(one_draw)(scenario, draw) for draw in range(arguments.draws) for scenario in SCENARIOS]
    rows = [row for found in Parallel(n_jobs=2, verbose=5)(tasks) for row in found]
    result = {"draws": arguments.draws, "scenarios": SCENARIOS, "methods": summarise(rows)}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    for scenario, scores in result["methods"].items():
        print(f"\n{scenario}: {SCENARIOS[scenario]}")
        for name, score in sorted(scores.items(), key=lambda item: item[1].get("excess", 1e9)):
            print(
                f"  {name:14} {score.get('excess', float('nan')):8.2f}%  {score.get('ratio', float('nan')):.2f}  {score.get('error', '')}"
            )


if __name__ == "__main__":
    main()
