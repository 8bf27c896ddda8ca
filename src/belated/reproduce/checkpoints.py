"""Results of an experiment, one row of JSON for each part that is done, so that an interrupted run goes on."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from rich.progress import track


def run_parts(
    file: str | Path,
    parts: Sequence[dict[str, Any]],
    work: Callable[..., list[dict[str, Any]]],
    what: str,
    jobs: int | None = None,
    progress: bool = True,
    settings: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """``work(**part)`` for each part that ``file`` does not hold yet, saved as it comes; rows of all, in the order of parts.

    A row is what ``work`` gave with the part's own values beside it. What the file holds counts where it was found under the
    same ``settings``.
    """

    def key(part: dict[str, Any]) -> str:
        return json.dumps({**(settings or {}), **part})

    file = Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, list[dict[str, Any]]] = {}
    if file.exists():
        # The last line may have been cut short by an interrupt.
        whole = [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        done = {json.dumps(saved["part"]): saved["rows"] for saved in map(json.loads, whole)}
        file.write_text("".join(whole))
    missing = [part for part in parts if key(part) not in done]
    run = Parallel(n_jobs=jobs or -1, return_as="generator_unordered")
    results = run(delayed(_keep)(work, part) for part in missing)
    with file.open("a") as out:
        for part, rows in track(results, what, total=len(missing), disable=not progress, transient=True):
            done[key(part)] = rows
            out.write(json.dumps({"part": {**(settings or {}), **part}, "rows": rows}) + "\n")
            out.flush()
    return [{**part, **row} for part in parts for row in done[key(part)]]


def _keep(work: Callable[..., Any], part: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    return part, work(**part)


def write_csv(file: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    with Path(file).open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
