"""``--engine``: a log read by Dask or Spark, which keep its rows."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

from belated.data.event_log import EventLog
from belated.extras import how_to_install
from belated.tables.sources import FileSource, Source

_ENGINES = re.compile(r"(dask|spark)(://.+)?")
_NOT_THERE = ("sql", "snapshots", "snapshot_time", "category", "sep", "decimal", "encoding")


def check_engine(text: str, options: dict[str, Any]) -> None:
    """Refuse what no engine is, or cannot do, before anything is read."""
    if not _ENGINES.fullmatch(text):
        raise ValueError(
            f"--engine {text}: name dask or spark, for workers on this machine, or say where they are: dask://host:8786, spark://host:7077."
        )
    for name in _NOT_THERE:
        if options.get(name):
            raise ValueError(f"--{name.replace('_', '-')} does not go with --engine: write Parquet files first.")


def log_on_engine(
    text: str, source: Source, outcomes: Source | None, columns: list[str], key: str | None, arguments: dict[str, Any]
) -> EventLog:
    """A log of Parquet files, read by an engine."""
    kind, _, where = text.partition("://")
    files = [_files(one) for one in (source, outcomes) if one is not None]
    read = _dask(where) if kind == "dask" else _spark(where)
    frames = [read(paths) for paths in files]
    frames[0] = frames[0][columns] if kind == "dask" else frames[0].select(columns)
    make = EventLog.from_dask if kind == "dask" else EventLog.from_spark
    return make(*frames, key=key, **arguments)


def _files(source: Source) -> list[str]:
    if not isinstance(source, FileSource) or any(file.kind != ".parquet" for file in source.files):
        raise ValueError(f"{source.name}: --engine reads Parquet files, and nothing else.")
    return [str(file.path.resolve()) for file in source.files]


def _dask(where: str) -> Any:
    try:
        import dask.dataframe as dd
        from distributed import Client
    except ImportError:
        raise ValueError(f"--engine dask needs Dask: {how_to_install('dask')}.") from None
    # What workers say of their coming and going is not for the reader of a table.
    logging.getLogger("distributed").setLevel(logging.ERROR)
    quiet = {"dashboard_address": None, "threads_per_worker": 1, "silence_logs": logging.ERROR}
    client = Client(f"tcp://{where}") if where else Client(**quiet)
    atexit.register(client.close)
    return dd.read_parquet


def _spark(where: str) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ValueError(f"--engine spark needs Spark: {how_to_install('spark')}.") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("belated").config("spark.sql.session.timeZone", "UTC")
    for name in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(name, "false")
    session = builder.master(f"spark://{where}" if where else "local[*]").getOrCreate()

    def read(paths: list[str]) -> Any:
        base = _above_keys(paths[0])
        return (session.read if base is None else session.read.option("basePath", base)).parquet(*paths)

    return read


def _above_keys(path: str) -> str | None:
    """The folder above those that are called ``month=2024-01`` and hold the values of a column; None where there are none."""
    parts = Path(path).parts
    keyed = next((k for k, part in enumerate(parts[:-1]) if re.fullmatch(r"[^=]+=[^=]*", part)), None)
    return None if keyed is None else str(Path(*parts[:keyed]))
