"""Learn from a query of Spark Structured Streaming. Kill it at any moment and start it again: it loses and repeats nothing.

python spark_stream.py FOLDER

The first run makes FOLDER with files of simulated events, which the query reads one at a time.
"""

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from belated import OnlineClassifier, OnlineLinearModel
from belated.datasets import simulate_campaigns
from belated.streaming.spark_feed import SparkFeed

FILES = 12


def make_events(folder: Path) -> None:
    """Clicks and conversions as one table of events, in files by time."""
    clicks = simulate_campaigns(4000)
    clicks = clicks.append_column("click_id", pa.array(range(len(clicks))))
    arrivals = clicks.select(["click_id", "campaign", "device"])
    arrivals = arrivals.append_column("time", clicks["click_time"].cast(pa.timestamp("us")))
    arrivals = arrivals.append_column("kind", pa.array(["arrival"] * len(clicks)))
    converted = clicks.filter(pc.is_valid(clicks["conversion_time"]))
    outcomes = pa.table(
        {"click_id": converted["click_id"], "time": converted["conversion_time"].cast(pa.timestamp("us"))}
    )
    outcomes = outcomes.append_column("kind", pa.array(["outcome"] * len(converted)))
    events = pa.concat_tables([arrivals, outcomes], promote_options="permissive").sort_by("time")
    folder.mkdir(parents=True)
    for k in range(FILES):
        low, high = (len(events) * end // FILES for end in (k, k + 1))
        name = folder / f"{k:03d}.parquet"
        pq.write_table(events.slice(low, high - low), name)
        os.utime(name, (1_700_000_000 + k, 1_700_000_000 + k))  # Spark reads files in the order of these


def main(folder: Path) -> None:
    if not (folder / "events").exists():
        make_events(folder / "events")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    schema = "click_id long, campaign string, device string, time timestamp_ntz, kind string"
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))

    classifier = OnlineClassifier("hazard-heads", OnlineLinearModel(learning_rate=0.2), horizon="14d")
    feed = SparkFeed(
        classifier, folder / "model.npz", key="click_id", time="time", kind="kind", features=["campaign", "device"]
    )
    print(f"going on after batch {feed.batch}", flush=True)
    query = (
        events.writeStream.foreachBatch(feed)
        .option("checkpointLocation", str(folder / "spark"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(f"{feed.stream.counts}")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python spark_stream.py FOLDER")
    main(Path(sys.argv[1]))
