"""Tables and sentences about a comparison and a diagnosis, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from belated.cli.terminal import out, plain

if TYPE_CHECKING:
    from belated.evaluation.diagnosis import Diagnosis

_LONGER = 1.25  # times what was tested: a history from which on there is a choice


def show_comparison(summary: dict[str, Any]) -> None:
    from belated.data.durations import duration_text, in_words

    methods = summary["methods"]
    columns = {
        "log_loss": ("log loss", "{:.4f}"),
        "relative_log_loss": ("vs oracle", "{:+.1%}"),
        "gap_closed": ("gap closed", "{:.0%}"),
        "calibration_ratio": ("calibration", "{:.2f}"),
        "pr_auc": ("PR AUC", "{:.3f}"),
        "roc_auc": ("ROC AUC", "{:.3f}"),
    }
    unclear = summary["recommendation"]["gap_closed"] is None  # shares of a gap that may be none mean nothing
    if unclear:
        del columns["gap_closed"]
    count = len(summary["cutoffs"])
    table = Table(title=f"{plain(summary['name'])}: mean over {count} cut-off{'s' * (count > 1)}")
    table.add_column("method")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    if not unclear:
        table.add_column("95% of gap closed", justify="right")
    first = next(iter(methods.values()))["model"]
    for name, row in sorted(methods.items(), key=lambda item: item[1]["log_loss"]):
        style = "bold green" if name == summary["recommended"] else "dim" if row["method"] == "oracle" else ""
        cells = ["" if row[key] is None else form.format(row[key]) for key, (_, form) in columns.items()]
        interval = row["intervals"]["gap_closed"]
        band = (
            ""
            if interval is None or (row["method"] in ("bl", "oracle") and row["model"] == first)
            else f"{interval[0]:.0%} to {interval[1]:.0%}"
        )
        table.add_row(name + "*" * (name in summary["unsettled"]), *cells, *([] if unclear else [band]), style=style)
    out.print(table)
    for note in summary["notes"]:
        out.print(plain(note), soft_wrap=True)
    for name, why in summary["failed"].items():
        out.print(f"[yellow]{name} could not be fitted[/] {plain(why)}", soft_wrap=True)
    for name, why in summary["unsettled"].items():
        out.print(f"[yellow]* {name} did not converge[/] {plain(why)}", soft_wrap=True)
    out.print(f"[bold]{plain(summary['recommendation']['why'])}[/]", soft_wrap=True)
    if summary["train"]:
        out.print(f"Now: {plain(summary['train'])}", soft_wrap=True)
    advice = summary["recommendation"]
    asked = {"horizon": duration_text(summary["settings"]["horizon"]), **tested_days(summary)}
    durations = ", ".join(f"{name}={text!r}" for name, text in asked.items())
    model = "" if advice["model"] == "linear" else f" model={advice['model']!r},"
    setting = "".join(f", {name}={value:g}" for name, value in advice["setting"].items())
    out.print(
        f"In Python: belated.train(log, method={advice['method']!r},{model} {durations}{setting})",
        soft_wrap=True,
    )
    if "lookback" in asked and summary["diagnosis"]["history"] > _LONGER * summary["settings"]["lookback"]:
        out.print(
            f"That is what was tested: the last {in_words(summary['settings']['lookback'])}. Without lookback it learns from all "
            f"{in_words(summary['diagnosis']['history'])}, which is mostly better where rates and delays stay as they are.",
            soft_wrap=True,
        )


def tested_days(summary: dict[str, Any]) -> dict[str, str]:
    """The lookback and the window with which to train what a comparison recommends: as tested, but for what the method has no use for, and none where too little was known for either."""
    from belated.data.durations import duration_text, in_short
    from belated.methods import METHODS, resolve_method

    settings, advice = summary["settings"], summary["recommendation"]
    if settings["lookback"] <= settings["horizon"]:
        return {}
    found = {"lookback": in_short(settings["lookback"])}
    if advice["method"] not in METHODS or resolve_method(advice["method"]).needs_window:
        found["window"] = duration_text(advice["window"])
    return found


def show_replay(summary: dict[str, Any]) -> None:
    columns = {
        "log_loss": ("log loss", "{:.4f}"),
        "relative_improvement": ("improvement", "{:+.0%}"),
        "calibration_ratio": ("calibration", "{:.2f}"),
        "pr_auc": ("PR AUC", "{:.4f}"),
        "roc_auc": ("ROC AUC", "{:.4f}"),
        "seconds": ("seconds", "{:.1f}"),
    }
    count = len(summary["steps"]["time"])
    table = Table(title=f"{plain(summary['name'])}: mean over {count} steps, {summary['rows']:,} rows")
    table.add_column("method")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    for name, row in sorted(summary["methods"].items(), key=lambda item: item[1]["log_loss"]):
        style = "bold green" if name == summary["best"] else "dim" if name in ("oracle", "pretrained") else ""
        cells = ["" if row[key] is None else form.format(row[key]) for key, (_, form) in columns.items()]
        table.add_row(name, *cells, style=style)
    out.print(table)
    out.print(plain(summary["verdict"]), soft_wrap=True)
    for note in summary["notes"]:
        out.print(plain(note), soft_wrap=True)


def show_diagnosis(diagnosis: Diagnosis) -> None:
    from belated.data.times import in_minutes
    from belated.tables.refusal import counted

    table = Table(title=f"{counted(diagnosis.rows, 'row')} as known at {in_minutes(diagnosis.as_of)}")
    for heading in ("window, days", "positives that come later"):
        table.add_column(heading, justify="right")
    for row in diagnosis.windows:
        table.add_row(f"{row['days']:.3g}", f"{row['positives_lost']:.1%}")
    out.print(table)
    for sentence in diagnosis.findings():
        out.print(f"- {plain(sentence)}", soft_wrap=True)
