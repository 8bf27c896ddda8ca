"""Rows a second from a file of Criteo's format, as text and as Parquet, to hashed fields and times on disk.

    python benchmarks/reading.py            # 2 M simulated rows, 250 bytes each

The peak memory of reading the first half and of reading all says whether it grows with the file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from wide import peak


def simulate(n: int, folder: Path) -> None:
    """``rows.txt`` and ``rows.parquet``: two times, eight integers and nine categories of eight to 32 characters."""
    import polars as pl

    rng = np.random.default_rng(0)
    click = np.sort(rng.integers(0, 5_184_000, n))
    wait = np.where(rng.random(n) < 0.2, rng.exponential(300_000, n), np.nan)
    outcome = pl.Series([None if np.isnan(w) else int(c + w) for c, w in zip(click, wait, strict=True)])
    columns: dict[str, object] = {"click": click, "conversion": outcome}
    for i in range(8):
        values = np.floor(rng.exponential(10.0 ** (i / 2), n)).astype(np.int64)
        columns[f"int{i + 1}"] = pl.Series(values).set(pl.Series(rng.random(n) < 0.2), None)
    for i in range(9):
        size = int(10 ** (1 + i * 0.6))
        names = pl.Series([f"{(j * 2654435761 + i) % 2**64:0{8 if i % 2 else 32}x}" for j in range(size)])
        columns[f"cat{i + 1}"] = names[np.floor(size ** rng.random(n)).astype(np.int64) - 1]
    folder.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(columns)
    for name, part in (("rows", frame), ("half", frame[: n // 2])):
        part.write_csv(folder / f"{name}.txt", separator="\t", include_header=False)
        part.write_parquet(folder / f"{name}.parquet")


def read(file: Path) -> None:
    from belated.data.criteo_format import ingest_criteo
    from belated.data.ingest import ingest_parquet

    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        if file.suffix == ".txt":
            ingest_criteo(file, file.with_suffix(".fields"), progress=False)
        else:
            ingest_parquet(file, file.with_suffix(".fields"), arrival="click", outcome="conversion", progress=False)
        seconds.append(time.perf_counter() - start)
    gib = peak()
    rows = len(np.load(file.with_suffix(".fields") / "arrival.npy", mmap_mode="r"))
    rates = " ".join(f"{rows / s / 1e6:.2f}" for s in seconds[1:])
    print(
        f"{file.name}: {rates} M rows/s (the first call, which compiles or loads: {seconds[0]:.1f} s), peak {gib:.2f} GiB"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--worker", type=Path)
    options = parser.parse_args()
    if options.worker:
        read(options.worker)
        return
    folder = options.folder / f"criteo-format-{options.rows}"
    if not folder.exists():
        simulate(options.rows, folder)
    for name in ("half.txt", "rows.txt", "half.parquet", "rows.parquet"):
        subprocess.run([sys.executable, __file__, "--worker", str(folder / name)], check=True)


if __name__ == "__main__":
    main()
