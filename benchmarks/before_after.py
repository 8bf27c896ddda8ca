"""Two versions of belated side by side: is anything slower than it was?

    git worktree add ../before <commit>
    python benchmarks/before_after.py ../before/src src
    python benchmarks/before_after.py ../before/src src --device cuda --rows 6000000 --only wide

Every task runs in processes of its own, one version after the other in turn, and its least time over rounds counts. Tasks use
public names only, so that versions with other insides can be compared. All data is simulated.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

METHODS = ("bl", "convdf", "nndf", "fsiw", "dfm", "dfm-weibull", "dfm-piecewise", "hazard", "stc")


def clock(work: Callable[[], Any], repeats: int = 1) -> float:
    """The least time of a few calls, after one that compiles or loads."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def wide(rows: int, device: str) -> Iterator[tuple[str, float]]:
    """Fields hashed into 2^24 columns."""
    from simulated_rows import simulate

    from belated import DelayedFeedbackClassifier, LinearModel

    X, y, elapsed, delay = simulate(rows)
    yield "compaction", clock(lambda: LinearModel(device=device).encode(X, None))
    encoded = LinearModel(device=device).encode(X, None)

    class Prepared(LinearModel):
        """With rows that are encoded already, so that fits are timed alone."""

        def encode(self, X: Any, weight: Any) -> Any:
            self.encoder_ = None
            return encoded

    def fit(name: str, tol: float = 1e-4) -> Any:
        model = Prepared(l2=1 / (2 * rows * 0.3), tol=tol, device=device)
        clf = DelayedFeedbackClassifier(name, window=7.0, horizon=21.0, model=model)
        return clf.fit(X, y, elapsed=elapsed, delay=delay)

    for name in METHODS:
        yield f"wide {name}", clock(lambda name=name: fit(name), 2)  # type: ignore[misc]
    yield "wide bl, tol 1e-8", clock(lambda: fit("bl", 1e-8))
    clf = fit("bl")
    yield "predict all rows", clock(lambda: clf.predict_proba(X), 3)
    one = X[:1]
    yield "predict one row", clock(lambda: [clf.predict_proba(one) for _ in range(20)], 3) / 20
    yield "margins of one row", clock(lambda: [clf.model_.margins(one) for _ in range(20)], 3) / 20


def narrow(rows: int, device: str) -> Iterator[tuple[str, float]]:
    """A table of categories and numbers."""
    from belated import DelayedFeedbackClassifier, EventLog, backtest
    from belated.datasets import simulate_campaigns, simulate_clicks

    log = EventLog.from_frame(simulate_clicks(), arrival="click_time", outcome="conversion_time")
    snap = log.snapshot(as_of="2024-02-12", lookback="30d", horizon="14d")
    for name in METHODS:
        clf = DelayedFeedbackClassifier(name, window=7.0, horizon=14.0)
        work = lambda clf=clf: clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)  # noqa: E731
        yield f"narrow {name}", clock(work, 3)
    small = EventLog.from_frame(
        simulate_campaigns(20_000), arrival="click_time", outcome="conversion_time", until="2024-03-01"
    )
    ask = {"horizon": "14d", "methods": ["tw", "fsiw", "nndf", "dfm-piecewise"], "cutoffs": 3, "n_jobs": 1}
    yield "backtest", clock(lambda: backtest(small, progress=False, **ask).summary())


def reading(rows: int, device: str) -> Iterator[tuple[str, float]]:
    """A Parquet file to hashed fields."""
    import pyarrow.parquet as pq

    from belated.datasets import simulate_campaigns

    try:
        from belated import ingest_parquet
    except ImportError:
        from belated.ingest import ingest_parquet

    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(simulate_campaigns(rows), f"{folder}/rows.parquet")
        ask = {"arrival": "click_time", "outcome": "conversion_time", "progress": False}
        yield "reading", clock(lambda: ingest_parquet(f"{folder}/rows.parquet", f"{folder}/log", **ask), 3)


GROUPS = {"wide": wide, "narrow": narrow, "reading": reading}


def run(source: str, group: str, options: argparse.Namespace) -> dict[str, float]:
    """The times of one version, in a new process."""
    command = [sys.executable, __file__, source, source, "--worker", group]
    command += ["--device", options.device, "--rows", str(options.rows)]
    paths = [str(Path(source).resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        warnings.simplefilter("ignore")
        print(json.dumps(dict(GROUPS[options.worker](options.rows, options.device))))
        return
    print("| task | before | after | after / before |\n|---|---|---|---|")
    for group in [options.only] if options.only else GROUPS:
        times: dict[str, list[dict[str, float]]] = {options.before: [], options.after: []}
        for _ in range(options.rounds):
            for source in times:
                times[source].append(run(source, group, options))
        for task in times[options.before][0]:
            before, after = (min(found[task] for found in times[source]) for source in (options.before, options.after))
            unit = "ms" if before < 0.1 else "s"
            factor = 1e3 if unit == "ms" else 1.0
            print(
                f"| {task} | {before * factor:.3g} {unit} | {after * factor:.3g} {unit} | {after / before:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
