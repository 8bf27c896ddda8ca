"""Cancellations of hotel bookings, a real log: every method at five dates, scored against the final labels.

    python examples/hotel.py FOLDER

FOLDER holds H1.parquet and H2.parquet (see belated.datasets.hotel for their source). For each date, train on the 180
days before it as they were known then, and test on the 14 days after it; a booking is positive if it is cancelled within
90 days. Oracle trains on the same bookings with their final labels.
"""

from __future__ import annotations

import sys
from datetime import date, timedelta
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.metrics import average_precision_score, log_loss

from belated import ConvDF, DelayedFeedbackClassifier, EventLog, LinearModel, NnDF
from belated.datasets import load_hotel_bookings
from belated.methods import METHODS, Method

LOOKBACK, HORIZON, WINDOW, L2 = 180, 90, 60, 1e-4
FIRST_TEST_DAYS = [date(2016, month, 1) for month in range(4, 9)]

console = Console()
bookings = load_hotel_bookings(sys.argv[1])
log = EventLog.from_frame(bookings, arrival="booked", outcome="cancelled")

methods: dict[str, Method | str] = {name: name for name in METHODS}
methods |= {"convdf, paper's k": ConvDF("paper"), "nndf, paper's k": NnDF("paper"), "oracle": "bl"}
scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}

with Progress(console=console) as progress:
    task = progress.add_task("Fitting", total=len(methods) * len(FIRST_TEST_DAYS))
    for first in FIRST_TEST_DAYS:
        # The log is stamped by the day: what is known at the end of a day is everything stamped on it or before.
        as_of = first - timedelta(days=1)
        horizon = f"{HORIZON}d"
        snap = log.snapshot(as_of, lookback=f"{LOOKBACK}d", horizon=horizon)
        final = log.matured(as_of - timedelta(days=LOOKBACK), first, horizon=horizon)
        test = log.matured(first, first + timedelta(days=14), horizon=horizon)
        for name, method in methods.items():
            make = partial(DelayedFeedbackClassifier, method, model=LinearModel(l2=L2))
            if name == "oracle":
                clf = make().fit(final.X, final.y)
            else:
                clf = make(window=WINDOW, horizon=HORIZON)
                clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
            p = clf.predict_proba(test.X)[:, 1]
            scores[name].append((log_loss(test.y, p), p.mean() / test.y.mean(), average_precision_score(test.y, p)))
            progress.advance(task)

table = Table(title="Mean over five dates")
table.add_column("method")
for heading in ("log loss", "calibration ratio", "PR AUC", "log loss at each date"):
    table.add_column(heading, justify="right")
for name, runs in sorted(scores.items(), key=lambda item: float(np.mean([run[0] for run in item[1]]))):
    loss, ratio, area = np.mean(runs, axis=0)
    table.add_row(name, f"{loss:.4f}", f"{ratio:.3f}", f"{area:.3f}", "  ".join(f"{run[0]:.3f}" for run in runs))
console.print(table)
