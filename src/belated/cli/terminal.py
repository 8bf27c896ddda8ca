"""What the command line shows: tables, sentences, warnings and errors."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape as _plain
from rich.table import Table

from belated.evaluation.diagnosis import Diagnosis

_width = None if sys.stdout.isatty() else 120
out, err = Console(highlight=False, width=_width), Console(stderr=True, highlight=False, width=_width)


def friendly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors as one paragraph and exit code 2; an interrupt as 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                command(*args, **kwargs)
            told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
            for text in dict.fromkeys(told):
                err.print(f"[yellow]Warning:[/] {_plain(text)}", soft_wrap=True)
        except (ValueError, OSError, pa.ArrowException) as error:
            err.print(f"[bold red]Error:[/] {_plain(str(error))}", soft_wrap=True)
            sys.exit(2)
        except KeyboardInterrupt:
            err.print("Interrupted; nothing was written.")
            sys.exit(130)

    return run


def show_comparison(summary: dict[str, Any]) -> None:
    methods = summary["methods"]
    columns = {
        "log_loss": ("log loss", "{:.4f}"),
        "relative_log_loss": ("vs oracle", "{:+.1%}"),
        "gap_closed": ("gap closed", "{:.0%}"),
        "calibration_ratio": ("calibration", "{:.2f}"),
        "pr_auc": ("PR AUC", "{:.3f}"),
        "roc_auc": ("ROC AUC", "{:.3f}"),
    }
    count = len(summary["cutoffs"])
    table = Table(title=f"{_plain(summary['name'])}: mean over {count} cut-off{'s' * (count > 1)}")
    table.add_column("method")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    table.add_column("95% of gap closed", justify="right")
    for name, row in sorted(methods.items(), key=lambda item: item[1]["log_loss"]):
        style = "bold green" if name == summary["recommended"] else "dim" if name == "oracle" else ""
        cells = ["" if row[key] is None else form.format(row[key]) for key, (_, form) in columns.items()]
        interval = row["intervals"]["gap_closed"]
        band = "" if interval is None or name in ("bl", "oracle") else f"{interval[0]:.0%} to {interval[1]:.0%}"
        table.add_row(name, *cells, band, style=style)
    out.print(table)
    for name, why in summary["failed"].items():
        out.print(f"[yellow]{name} could not be fitted[/] {_plain(why)}", soft_wrap=True)
    out.print(f"[bold]{_plain(summary['recommendation']['why'])}[/]", soft_wrap=True)
    l2 = summary["recommendation"]["l2"]
    if summary["train"]:
        out.print(f"Now: {_plain(summary['train'])}", soft_wrap=True)
    out.print(
        f"In Python: DelayedFeedbackClassifier(method={summary['recommended']!r}, window={summary['settings']['window']:.4g}, "
        f"horizon={summary['settings']['horizon']:.4g}, model=LinearModel(l2={l2:g}))",
        soft_wrap=True,
    )


def show_diagnosis(diagnosis: Diagnosis) -> None:
    table = Table(title=f"{diagnosis.rows:,} rows as known at {diagnosis.as_of}")
    for heading in ("window, days", "positives that come later"):
        table.add_column(heading, justify="right")
    for row in diagnosis.windows:
        table.add_row(f"{row['days']:.3g}", f"{row['positives_lost']:.1%}")
    out.print(table)
    for sentence in diagnosis.findings():
        out.print(f"- {_plain(sentence)}", soft_wrap=True)
