"""A log on Spark: snapshot, fit and scores, without bringing rows here.

python with_spark.py
"""

import os
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from belated import DelayedFeedbackClassifier, EventLog, LinearModel
from belated.datasets import simulate_campaigns


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors need a Python that has belated
    spark = SparkSession.builder.master("local[2]").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        # Yours would be a table of the lakehouse; this one is simulated.
        simulate_campaigns(5000).to_pandas().to_parquet(f"{folder}/clicks.parquet")
        clicks = spark.read.parquet(f"{folder}/clicks.parquet").repartition(2)

        log = EventLog.from_spark(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
        snapshot = log.snapshot(as_of="2024-02-10", horizon="14d")
        classifier = DelayedFeedbackClassifier("hazard", model=LinearModel(l2=1e-4)).fit_snapshot(snapshot)

        scored = classifier.predict_proba(clicks)  # a Spark frame with a column more
        scored.groupBy("device").agg(f.mean("probability")).show()
        log.close()
    spark.stop()


if __name__ == "__main__":
    main()
