"""A log on a Dask cluster: snapshot, fit, scores and a backtest, without bringing rows here.

python with_dask.py
"""

import tempfile
from pathlib import Path

import dask.dataframe as dd
from dask.distributed import Client

from belated import DelayedFeedbackClassifier, EventLog, LinearModel, backtest, load
from belated.datasets import simulate_campaigns


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        # Yours would be a folder of Parquet files; this one is simulated.
        simulate_campaigns(5000).to_pandas().to_parquet(f"{folder}/clicks.parquet")
        clicks = dd.read_parquet(f"{folder}/clicks.parquet").repartition(npartitions=2)

        log = EventLog.from_dask(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
        snapshot = log.snapshot(as_of="2024-02-10", horizon="14d")
        classifier = DelayedFeedbackClassifier(model=LinearModel(l2=1e-4)).fit_snapshot(snapshot)

        scored = classifier.predict_proba(clicks)  # a Dask frame with a column more
        print(scored.groupby("device")["probability"].mean().compute())

        classifier.save(Path(folder) / "model.skops")  # an ordinary model
        print(load(Path(folder) / "model.skops"))

        print(backtest(log, horizon="14d", cutoffs=2, methods=["tw"], progress=False).recommend().why)


if __name__ == "__main__":
    main()
