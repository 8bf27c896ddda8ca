"""``belated train``: a model on a log as it stands, or stood."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from belated.cli.options import horizon_option, log_options, typed_again
from belated.cli.outputs import may_write
from belated.cli.terminal import friendly, out, plain
from belated.methods import METHODS
from belated.models import MODELS, require_installed


@click.command("train")
@log_options
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", help=f"auto, or one of {', '.join(METHODS)}."
)
@click.option(
    "--model",
    default="linear",
    show_default=True,
    metavar="NAME",
    help=f"One of {', '.join(MODELS)}; auto chooses among those installed.",
)
@horizon_option
@click.option("--window", metavar="DURATION", help="The age from which labels count as final. By default a suggestion.")
@click.option("--lookback", metavar="DURATION", help="How far back training rows go. By default all.")
@click.option("--as-of", metavar="TIME", help="Use only what was known then. By default all that is known.")
@click.option(
    "--l2",
    type=float,
    metavar="NUMBER",
    help="Strength of regularisation of a linear model. By default chosen by cross-validation.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    metavar="N",
    help="Of boosted trees. By default chosen by cross-validation.",
)
@click.option(
    "--epochs", type=click.IntRange(1), metavar="N", help="Of a network. By default chosen by cross-validation."
)
@click.option(
    "--out",
    "model_file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="MODEL",
    help="Where to write the model.",
)
@friendly
def train_command(log: tuple[Path, ...], **options: Any) -> None:
    """Train a model on LOG as it stands at its end, or stood at --as-of.

    \b
    belated train clicks.parquet --method dfm-piecewise --horizon 30d --lookback 21d --out model.skops
    """
    from belated.cli.open_log import open_log
    from belated.training import train

    may_write([*log, options["outcomes"], options["db"]], options["model_file"])
    method = options["method"]
    if method != "auto" and method not in METHODS:
        raise ValueError(f"--method {method} is not known; choose auto or one of {', '.join(METHODS)}.")
    if options["model"] != "auto":
        require_installed(options["model"])
    events = open_log(log, options).events
    asked = {
        name: options[name]
        for name in ("horizon", "method", "model", "window", "lookback", "l2", "rounds", "epochs", "keep", "as_of")
    }
    with out.status(f"Training on up to {len(events):,} rows"):
        trained = train(events, **asked)
    about = {"command": typed_again("train", log, options), **trained.about}
    features = trained.features | dict.fromkeys(options["category"], "category")
    replace(trained, features=features, about=about).save(options["model_file"])
    setting = ", ".join(f"{name} {about[name]:g}" for name in ("l2", "rounds", "epochs") if name in about)
    window = f"window {about['window']:.3g} days, " if trained.classifier.method_.needs_window else ""
    out.print(
        f"{about['method']} under {about['model']} on {about['rows']:,} rows known at {about['as_of']}, "
        f"{window}{setting}: {about['positive_so_far'] / about['rows']:.2%} are positive so far, the model "
        f"expects {about['mean_prediction']:.2%} in the end."
    )
    out.print(f"Model: {plain(str(options['model_file']))}")
