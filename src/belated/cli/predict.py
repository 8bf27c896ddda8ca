"""``belated predict``: probabilities for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from belated.cli.options import text_options, with_options
from belated.cli.outputs import may_write
from belated.cli.terminal import err, friendly, out, plain


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rows", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Parquet, Arrow, CSV, TSV or JSON lines, by its name; - is standard output.",
)
@click.option(
    "--column", default="probability", show_default=True, metavar="NAME", help="The name of the column to add."
)
@click.option(
    "--elapsed",
    metavar="COLUMN",
    help="Of rows that have waited: their ages in days. Gives the probability that they will still turn positive.",
)
@with_options(*text_options)
@friendly
def predict_command(
    model: Path, rows: tuple[Path, ...], file: Path, column: str, elapsed: str | None, **options: Any
) -> None:
    """Add a column of probabilities to ROWS, by a MODEL that `belated train` made.

    All other columns come out as they went in, also those that the model does not know.

    \b
    belated predict model.skops new.parquet --out predictions.parquet
    belated predict model.skops new.csv --out -
    belated predict model.skops open.csv --elapsed age_days --out still_to_come.csv
    """
    from belated.cli.open_log import text_format
    from belated.data.labels import read_ages
    from belated.tables.frames import as_categories, open_table
    from belated.tables.passing_through import STANDARD_OUTPUT, kind_of_output, write_with_column
    from belated.tables.refusal import counted
    from belated.tables.sources import open_files
    from belated.training import TrainedModel

    if not column:
        raise ValueError("--column '': give the new column a name.")
    to_screen = str(file) == STANDARD_OUTPUT
    may_write([model, *rows], None if to_screen else file)
    trained = TrainedModel.load(model)
    source = open_files(rows, text_format({**options, "na": trained.na}))
    kind_of_output(source, file)
    may_write([found.path for found in source.files], None if to_screen else file)
    trained.require(source.columns)
    if column in source.columns:
        raise ValueError(f"{source.name}: there is a column {column!r} already. Name the new one with --column.")
    if elapsed is not None and elapsed not in source.columns:
        raise ValueError(
            f"--elapsed {elapsed}: no such column; those of {source.name} are {', '.join(source.columns)}."
        )
    table = source.read(list(trained.features), trained.features)
    ages = None
    if elapsed is not None:
        waited = open_table(source.read([elapsed]), source.name)[elapsed].to_numpy()
        ages = read_ages(waited, len(waited), elapsed)
    codes = [name for name, kind in trained.features.items() if kind == "category"]
    p = trained.predict(as_categories(table, codes), ages)
    write_with_column(source, column, p, file)
    screen = err if to_screen else out
    screen.print(f"{counted(len(p), 'row')}, mean probability {p.mean():.2%}: {plain(str(file))}")
