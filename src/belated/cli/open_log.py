"""A log from what the command line names, files or a query: guesses that are shown, and complaints before anything large is read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import pyarrow as pa

from belated.cli.engines import check_engine, log_on_engine
from belated.cli.options import LOG_OPTIONS
from belated.cli.outputs import may_write
from belated.cli.terminal import out, plain
from belated.data.column_guesses import guess_columns, time_like_names
from belated.data.durations import parse_duration
from belated.data.event_log import EventLog
from belated.data.repeated_exports import date_in_name
from belated.data.times import TimeFormat
from belated.notices import overheard
from belated.tables.conditions import Condition
from belated.tables.frames import as_categories
from belated.tables.refusal import counted
from belated.tables.sources import FileSource, Source, open_files
from belated.tables.text_files import TextFormat

_MOST_COLUMNS = 1000
_HOW_TO_READ = ("outcome_where", "time_format", "time_unit")


@dataclass(frozen=True)
class OpenedLog:
    """A log, what it is called, and what there is to say of how it was read: rows left out, times that could be read in two ways."""

    events: EventLog
    name: str
    reading: list[str]


def open_log(logs: tuple[Path, ...], options: dict[str, Any], to_fit: bool = True, bare: bool = False) -> OpenedLog:
    """Read the files that options name, guess what they do not, and show the guess; ``to_fit``, with features that can be; ``bare``, or without any."""
    with overheard(UserWarning) as told:
        events, name = _open(logs, options, to_fit, bare)
    return OpenedLog(events, name, [*told, *events.notes])


def _open(logs: tuple[Path, ...], options: dict[str, Any], to_fit: bool, bare: bool) -> tuple[EventLog, str]:
    _check_durations(options)
    if options.get("engine"):
        check_engine(options["engine"], options)
    ingested = _ingested(logs, options)
    if ingested is not None:
        return ingested
    how, times = text_format(options), TimeFormat(options["time_format"], options["time_unit"])
    source = _source(logs, options, how)
    if isinstance(source, FileSource):
        may_write(
            [file.path for file in source.files], *(options.get(key) for key in ("report", "json_file", "model_file"))
        )
    outcomes = None if options["outcomes"] is None else open_files([options["outcomes"]], how)
    if (outcomes is None) == (options["key"] is not None) and not _from_snapshots(options):
        raise ValueError(
            "--outcomes and --key go together: a file of outcomes, and the column by which its rows find theirs. (With --snapshots, "
            "--key tells rows apart.)"
        )
    condition = None if options["outcome_where"] is None else Condition(options["outcome_where"])
    looked_at = [] if condition is None else condition.columns
    _require("--outcome-where", looked_at, outcomes or source, " Text stands in quotes.")
    for table in (source, outcomes or source):
        _require("--key", [] if options["key"] is None else [options["key"]], table)
    _require("--snapshot-time", [] if options["snapshot_time"] is None else [options["snapshot_time"]], source)
    _require("--keep", list(options["keep"]), source)
    roles = _time_columns(source, outcomes or source, options)
    taken = {*roles.values(), options["key"], options["snapshot_time"], *(looked_at if outcomes is None else [])}
    features = _feature_columns(source, taken, options, bare)
    columns = [name for name in source.columns if name in {*taken, *features}]
    codes = list(options["category"])
    _require("--category", codes, source)
    # Keys are text: in a text file 007 and 7 are two.
    keys = [] if options["key"] is None else [options["key"]]
    kinds = dict.fromkeys([*(roles.values() if times.format else ()), *codes, *keys], "text")
    arguments: dict[str, Any] = {"features": features, "na": how.na, **{key: options[key] for key in _HOW_TO_READ}}
    if _from_snapshots(options):
        events = _read_snapshots(source, columns, kinds, roles, options, arguments)
    elif options.get("engine"):
        arguments |= {**roles, "until": options["until"]}
        events = log_on_engine(options["engine"], source, outcomes, columns, options["key"], arguments)
    else:
        table = as_categories(source.read(columns, kinds), codes)
        arguments |= {**roles, "until": options["until"]}
        if outcomes is None:
            events = EventLog.from_frame(table, **arguments)
        else:
            wanted = dict.fromkeys([options["key"], roles["outcome"], *looked_at])
            second = outcomes.read(list(wanted), kinds)
            events = EventLog.from_frames(table, second, key=options["key"], **arguments)
    events.refuse_future(roles["arrival"], roles.get("outcome", "outcome"))
    if to_fit and not events.on_cluster:
        _refuse_dates(events.frame, features, source.name)
    _check_outcomes(events, "--outcome" if condition is None else f"--outcome-where {condition.text}")
    for note in events.notes:
        out.print(plain(note), soft_wrap=True)
    out.print(
        plain(
            f"{counted(len(events), 'row')}, {events.positives:,} with an outcome; features: {listed(features) or 'none'}."
        )
    )
    return events, source.name


def _check_durations(options: dict[str, Any]) -> None:
    """Refuse durations that no log could have, before a log is read; what has no unit may be seconds."""
    for name in ("horizon", "window", "lookback", "period"):
        text = options.get(name)
        if text is not None:
            parse_duration(text, name, "seconds")


def _ingested(logs: tuple[Path, ...], options: dict[str, Any]) -> tuple[EventLog, str] | None:
    """A log that was ingested before; its columns have been chosen."""
    if len(logs) != 1 or not (logs[0] / "log.json").exists():
        return None
    chosen = [name for name in LOG_OPTIONS if name != "keep" and options[name]]
    if chosen:
        flag = chosen[0].replace("_", "-")
        raise ValueError(f"{logs[0]}: an ingested log has its columns already. Leave out --{flag}.")
    events = EventLog.open(logs[0])
    _check_outcomes(events, "it")
    hashed = counted(len(events.features), "hashed feature")
    out.print(f"{counted(len(events), 'row')}, {events.positives:,} with an outcome; {hashed}.")
    return events, logs[0].name


def text_format(options: dict[str, Any]) -> TextFormat:
    """How text files are written, as options say."""
    names = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
    given = {key: options[key] for key in ("sep", "decimal", "encoding") if options[key] is not None}
    if "sep" in given:
        given["sep"] = names.get(given["sep"], given["sep"])
    return TextFormat(**given, na=tuple(options["na"] or ()))


def _source(logs: tuple[Path, ...], options: dict[str, Any], how: TextFormat) -> Source:
    if (options["sql"] is None) == (not logs):
        raise ValueError(
            "name a LOG: a file, several, a folder or a pattern; or give a query with --sql, and not both."
        )
    if options["sql"] is None:
        if options["db"] is not None:
            raise ValueError("--db wants a query: add --sql 'SELECT ...'.")
        return open_files(logs, how)
    ignored = [name for name in ("sep", "decimal", "encoding", "snapshots") if options[name]]
    if ignored:
        raise ValueError(f"--{ignored[0]} is about files, and --sql takes the place of one. Leave it out.")
    from belated.tables.sql import SqlSource

    return SqlSource(options["sql"], options["db"], how.na)


def _from_snapshots(options: dict[str, Any]) -> bool:
    return bool(options["snapshots"] or options["snapshot_time"])


def _read_snapshots(
    source: Source,
    columns: list[str],
    kinds: dict[str, str],
    roles: dict[str, str],
    options: dict[str, Any],
    arguments: dict[str, Any],
) -> EventLog:
    ignored = [name for name in ("outcomes", "until") if options[name]]
    if ignored:
        raise ValueError(
            f"--{ignored[0]} does not go with snapshots, which say themselves who is positive when. Leave it out."
        )
    if options["key"] is None:
        raise ValueError("snapshots are joined by a key: say which column tells the rows apart with --key COLUMN.")
    copies: Any
    if options["snapshot_time"]:
        copies = as_categories(source.read(columns, kinds), options["category"])
    elif isinstance(source, FileSource):
        dates = [date_in_name(file.path) for file in source.files]
        copies = []
        for date in dict.fromkeys(dates):  # a copy may be in several files
            files = [file for file, its_date in zip(source.files, dates, strict=True) if its_date == date]
            table = FileSource(files[0].name, files, source.how).read(columns, kinds)
            copies.append((date, as_categories(table, options["category"])))
    else:
        raise ValueError(
            "--snapshots reads dates from names of files; of a query, name their column with --snapshot-time."
        )
    return EventLog.from_snapshots(copies, key=options["key"], taken=options["snapshot_time"], **roles, **arguments)


def _require(option: str, names: list[str], source: Source, hint: str = "") -> None:
    unknown = [name for name in names if name not in source.columns]
    if unknown:
        columns = f"the columns of {source.name} are {listed(source.columns)}"
        raise ValueError(f"{option} {','.join(unknown)}: no such column; {columns}.{hint}")


def _time_columns(arrivals: Source, outcomes: Source, options: dict[str, Any]) -> dict[str, str]:
    """The columns of arrivals and outcomes, as named or as guessed; both sources are the same where there is one."""
    roles: dict[str, str] = {}
    for role, source in (("arrival", arrivals), ("outcome", outcomes)):
        name = options[role]
        if name is not None:
            _require(f"--{role}", [name], source)
        elif role == "outcome" and _from_snapshots(options):
            if options["outcome_where"] is None:
                raise ValueError(
                    "which rows of a snapshot are positive? Say --outcome COLUMN (of 0 and 1), or --outcome-where 'status == \"won\"'."
                )
            continue
        else:
            name = guess_time(source, role, f"--{role}")
        roles[role] = name
    if roles["arrival"] == roles.get("outcome"):
        raise ValueError(f"--arrival and --outcome name the same column, {roles['arrival']}.")
    return roles


def guess_time(source: Source, role: str, option: str) -> str:
    """The column of arrivals or outcomes whose name is obvious, which is shown; ``option`` names another."""
    likely = time_like_names(source.columns)
    found = guess_columns(source.read(likely)) if likely else {}
    if role not in found:
        raise ValueError(
            f"which column holds the times of {role}? Say {option} COLUMN; the columns are {listed(source.columns, 40)}."
        )
    out.print(f"Taking [bold]{plain(found[role])}[/] as the time of {role} ({option} to choose another).")
    return found[role]


def _feature_columns(source: Source, taken: set[str | None], options: dict[str, Any], bare: bool) -> list[str]:
    """The feature columns that were named, or all that are left; those to drop are never among them."""
    drop = _names(options["drop"], source)
    for name in ("value", "group"):
        if options.get(name) in drop:
            raise ValueError(f"--{name} {options[name]}: --drop leaves that column out. Take it out of --drop.")
    _require("--drop", drop, source)
    named = [*_names(options["features"], source), *(options["feature"] or ())]
    if named:
        _require("--features", named, source)
        used = [name for name in named if name in taken]
        if used:
            raise ValueError(f"{', '.join(used)} cannot be a feature: it is the arrival, the outcome or the key.")
        features = [name for name in dict.fromkeys(named) if name not in drop]
    else:
        features = _remaining_columns(source, {*taken, *drop})
    if not features and not bare:
        raise ValueError(f"{source.name}: no columns are left as features.")
    return features


def _names(given: str | None, source: Source) -> list[str]:
    """A list separated by commas, or a single name that holds commas itself."""
    if given is None:
        return []
    found = [given] if given in source.columns else [name.strip() for name in given.split(",") if name.strip()]
    if not found:
        raise ValueError("--features and --drop name columns, separated by commas; leave them out to name none.")
    return found


def _remaining_columns(source: Source, taken: set[str | None]) -> list[str]:
    index = [name for name in source.columns if re.fullmatch(r"__index_level_\d+__|Unnamed: \d+|", name)]
    if index:
        named = ", ".join(name or "the column without a name" for name in index)
        out.print(f"Leaving out {named}, the index of the table that was saved.")
    features = [name for name in source.columns if name not in {*taken, *index}]
    if len(features) > _MOST_COLUMNS:
        raise ValueError(
            f"{source.name}: has {len(features)} columns beside the times, more than {_MOST_COLUMNS}. Choose some with --features."
        )
    return features


def _refuse_dates(table: pa.Table, features: list[str], file: str) -> None:
    dated = [name for name in features if pa.types.is_temporal(table.schema.field(name).type)]
    if dated:
        raise ValueError(
            f"{file}: {listed(dated)} {'holds' if len(dated) == 1 else 'hold'} times, which are no features. Leave them out with --drop "
            f"{quote(','.join(dated))}, or derive numbers or categories from them."
        )


def _check_outcomes(events: EventLog, option: str) -> None:
    count = len(events)
    if events.positives == 0:
        raise ValueError(
            f"{'the one row has no' if count == 1 else f'none of the {count} rows has an'} outcome: there is nothing to learn. Is "
            f"{option} right?"
        )
    if events.positives == count:
        each = "the one row has" if count == 1 else f"each of the {count} rows has"
        raise ValueError(f"{each} an outcome: there are no negatives to tell them from.")


def listed(names: list[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
