"""Tables and sentences about a comparison and a diagnosis, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from belated.cli.terminal import out, plain

if TYPE_CHECKING:
    from belated.evaluation.diagnosis import Diagnosis


def show_comparison(summary: dict[str, Any]) -> None:
    from belated.data.durations import duration_text, in_short

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
    table = Table(title=f"{plain(summary['name'])}: mean over {count} cut-off{'s' * (count > 1)}")
    table.add_column("method")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
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
        table.add_row(name + "*" * (name in summary["unsettled"]), *cells, band, style=style)
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
    asked = {**summary["settings"], "window": summary["recommendation"]["window"]}
    forms = {"horizon": duration_text, "lookback": in_short, "window": duration_text}
    durations = ", ".join(f"{name}={form(asked[name])!r}" for name, form in forms.items())
    advice = summary["recommendation"]
    model = "" if advice["model"] == "linear" else f" model={advice['model']!r},"
    setting = "".join(f", {name}={value:g}" for name, value in advice["setting"].items())
    out.print(
        f"In Python: belated.train(log, method={advice['method']!r},{model} {durations}{setting})",
        soft_wrap=True,
    )


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
    from belated.tables.refusal import counted

    table = Table(title=f"{counted(diagnosis.rows, 'row')} as known at {diagnosis.as_of}")
    for heading in ("window, days", "positives that come later"):
        table.add_column(heading, justify="right")
    for row in diagnosis.windows:
        table.add_row(f"{row['days']:.3g}", f"{row['positives_lost']:.1%}")
    out.print(table)
    for sentence in diagnosis.findings():
        out.print(f"- {plain(sentence)}", soft_wrap=True)
