"""``belated predict``: probabilities for new rows."""

from __future__ import annotations

from pathlib import Path

import click

from belated.cli.outputs import may_write
from belated.cli.terminal import friendly, out, plain


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("rows", type=click.Path(path_type=Path))
@click.option(
    "--out", "file", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Parquet, CSV or TSV."
)
@friendly
def predict_command(model: Path, rows: Path, file: Path) -> None:
    """Add a column `probability` to ROWS, by a MODEL that `belated train` made.

    \b
    belated predict model.skops new.parquet --out predictions.parquet
    """
    import pyarrow as pa

    from belated.tables.files import read_table
    from belated.tables.writing import check_writable_kind, write_table
    from belated.training import TrainedModel

    may_write([model, rows], file)
    check_writable_kind(file)
    trained = TrainedModel.load(model)
    table = read_table(rows, trained.features)
    if "probability" in table.column_names:
        raise ValueError(f"{rows.name}: there is a column 'probability' already. Rename it.")
    p = trained.predict(table)
    write_table(table.append_column("probability", pa.array(p)), file)
    out.print(f"{len(p):,} rows, mean probability {p.mean():.2%}: {plain(str(file))}")
