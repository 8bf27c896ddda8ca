"""Learn from two files of events as if from two topics. Kill it at any moment and start it again: it goes on where it was.

    python two_topics.py FOLDER [CLICKS AT A TIME]

The first run makes FOLDER with two files of simulated events. At its end a run prints what the model expects of each campaign.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from belated import FieldMatrix, OnlineClassifier, OnlineLinearModel
from belated.datasets import simulate_campaigns


def make_topics(folder: Path) -> None:
    """Clicks and conversions, each in order of their own times."""
    table = simulate_campaigns(20_000)
    table = table.append_column("click_id", pa.array(range(len(table))))
    converted = table.filter(pc.is_valid(table["conversion_time"])).select(["click_id", "conversion_time"])
    folder.mkdir(parents=True, exist_ok=True)
    csv.write_csv(table.drop(["conversion_time"]).sort_by("click_time"), folder / "clicks.csv")
    csv.write_csv(converted.sort_by("conversion_time"), folder / "conversions.csv")


def main(folder: Path, many: int = 500) -> None:
    if not (folder / "conversions.csv").exists():
        make_topics(folder)
    clicks, conversions = csv.read_csv(folder / "clicks.csv"), csv.read_csv(folder / "conversions.csv")

    clf = OnlineClassifier("hazard-heads", OnlineLinearModel(learning_rate=0.2), horizon="14d")
    stream = clf.stream(tolerance="1s")  # clicks of one second may be in two batches
    position = clf.restore(folder / "state.npz", stream) or {"clicks": 0, "conversions": 0}
    print(f"going on from {position}", flush=True)

    while position["clicks"] < len(clicks):
        some = clicks.slice(position["clicks"], many)
        now = some["click_time"][-1].as_py()
        behind = conversions.slice(position["conversions"])
        due = behind.filter(pc.less_equal(behind["conversion_time"], pa.scalar(now)))
        stream.arrive(
            some["click_id"], FieldMatrix.from_frame(some.select(["campaign", "device"]), 2**16), some["click_time"]
        )
        stream.outcome(due["click_id"], due["conversion_time"])
        stream.advance(now)
        clf.learn(stream)
        position = {"clicks": position["clicks"] + len(some), "conversions": position["conversions"] + len(due)}
        clf.checkpoint(folder / "state.npz", stream, position)

    campaigns = (
        clicks.group_by(["campaign", "device"])
        .aggregate([])
        .sort_by([("campaign", "ascending"), ("device", "ascending")])
    )
    p = clf.predict_proba(campaigns.select(["campaign", "device"]))[:, 1]
    for campaign, device, rate in zip(
        campaigns["campaign"].to_pylist(), campaigns["device"].to_pylist(), p, strict=True
    ):
        print(f"{campaign} {device}: {rate:.17g}")
    print(f"{stream}, {stream.counts['outcomes']} conversions of {stream.counts['arrivals']} clicks so far")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("Usage: python two_topics.py FOLDER [CLICKS AT A TIME]")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
