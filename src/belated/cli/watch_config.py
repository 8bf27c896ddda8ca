"""What ``belated watch`` is to run: a file of TOML whose keys are the options of the commands, checked before anything runs."""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from belated.data.durations import parse_duration

OF_LOGS = ("describe", "compare", "forecast")  # what is run for a log, unless it is set to false
_OURS = {"report", "json", "csv", "cache"}  # where a page goes is not for the file to say
_FILES = {"outcomes", "db"}
_DURATIONS = {"horizon", "window", "lookback", "period", "ahead"}
_KINDS = {"logs": "a log", "monitors": "a monitor"}


@dataclass(frozen=True)
class Job:
    """One command for one source: its words on the command line, the files that it reads, and how often it is run at most."""

    command: str
    source: str
    words: tuple[str, ...]  # the command and its options
    files: tuple[str, ...]
    inputs: tuple[Path, ...]
    every: int  # microseconds; 0: whenever an input has changed

    @property
    def name(self) -> str:
        """Of its files in the folder of the site."""
        return f"{self.source}-{self.command}"

    def state_of_inputs(self) -> list[list[Any]]:
        """What changes where an input does: names, sizes and times of files; of one that is gone, its name alone."""
        found: list[list[Any]] = []
        for file in sorted(set(_files(self.inputs))):
            try:
                about = file.stat()
            except OSError:
                found.append([str(file)])
            else:
                found.append([str(file), about.st_size, about.st_mtime_ns])
        return found

    @property
    def has_limits(self) -> bool:
        return "--fail-on" in self.words

    @property
    def endings(self) -> tuple[str, ...]:
        """Of the files that it writes."""
        return (".html", ".json", ".csv") if self.command == "forecast" else (".html", ".json")


@dataclass(frozen=True)
class Config:
    title: str
    folder: Path  # what its paths are relative to
    jobs: tuple[Job, ...]


def read_config(path: Path) -> Config:
    """Read and check the file; a mistake is told with its section and key."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: is not TOML: {error}.") from None
    unknown = sorted(set(given) - {"title", *_KINDS})
    if unknown:
        raise ValueError(f"{path}: {unknown[0]!r} is not known; there may be title, [logs.NAME] and [monitors.NAME].")
    folder, jobs = path.resolve().parent, []
    for kind, a_source in _KINDS.items():
        for name, section in _tables(given, kind, path):
            if not re.fullmatch(r"[\w-]+", name):
                raise ValueError(
                    f"{path}: {kind}.{name}: a name may have letters, digits, _ and -; it becomes that of a file."
                )
            commands = OF_LOGS if kind == "logs" else ("monitor",)
            if all(section.get(command) is False for command in commands):
                raise ValueError(f"{path}: nothing is to be run for {a_source}, {name!r}.")
            jobs += _jobs(_Section(f"{path}, [{kind}.{name}]", folder, name, section), commands)
    if not jobs:
        raise ValueError(f"{path}: names no source; add [logs.NAME] or [monitors.NAME] with files = ...")
    twice = {job.name for job in jobs if sum(other.name == job.name for other in jobs) > 1}
    if twice:
        raise ValueError(f"{path}: two sources want the files {sorted(twice)[0]}.*; give one another name.")
    return Config(str(given.get("title", path.stem)), folder, tuple(jobs))


def _tables(given: dict[str, Any], kind: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    sections = given.get(kind, {})
    if not isinstance(sections, dict) or not all(isinstance(section, dict) for section in sections.values()):
        raise ValueError(f"{path}: write [{kind}.NAME], a section for each.")
    yield from sections.items()


@dataclass(frozen=True)
class _Section:
    where: str
    folder: Path
    name: str
    given: dict[str, Any]


def _jobs(section: _Section, commands: tuple[str, ...]) -> list[Job]:
    common = {key: value for key, value in section.given.items() if key not in commands}
    own = {command: section.given.get(command, {}) for command in commands}
    for command, options in own.items():
        if not isinstance(options, dict | bool):
            raise ValueError(f"{section.where}: {command} must be a section of options, or false.")
    wanted = [command for command in commands if own[command] is not False]
    known = {command: _options(command) for command in wanted}
    for key in common:
        if key not in ("files", "every") and not any(_flag(key) in options for options in known.values()):
            raise ValueError(f"{section.where}: {key!r} is no option of {', '.join(wanted)}.")
    found = []
    for command in wanted:
        mine = own[command] if isinstance(own[command], dict) else {}
        shared = {
            key: value for key, value in common.items() if key in ("files", "every") or _flag(key) in known[command]
        }
        found.append(_job(section, command, {**shared, **mine}, known[command]))
    return found


def _options(command: str) -> dict[str, click.Option]:
    """The options of a command by their flags without dashes."""
    params = _function(command).params
    return {flag.lstrip("-"): one for one in params if isinstance(one, click.Option) for flag in one.opts}


def _function(command: str) -> click.Command:
    found: click.Command = getattr(import_module(f"belated.cli.{command}"), f"{command}_command")
    return found


def _flag(key: str) -> str:
    return key.replace("_", "-")


def _job(section: _Section, command: str, options: dict[str, Any], known: dict[str, click.Option]) -> Job:
    where = f"{section.where} {command}"
    files = options.pop("files", None)
    every = options.pop("every", None)
    paths = [files] if isinstance(files, str) else files
    if paths is not None and not (isinstance(paths, list) and paths and all(isinstance(one, str) for one in paths)):
        raise ValueError(f"{where}: files must be the name of a file, or a list of names.")
    if paths is None and "sql" not in options:
        raise ValueError(f'{where}: say what to read: files = "log.parquet".')
    words: list[str] = []
    inputs = [section.folder / one for one in paths or []]
    for key, value in options.items():
        flag = _flag(key)
        if flag in _OURS:
            raise ValueError(f"{where}: {key!r} cannot be set; belated watch says where files go.")
        if flag not in known:
            raise ValueError(f"{where}: {key!r} is no option of belated {command}; there are {', '.join(known)}.")
        words += _words(f"--{flag}", value, known[flag], where, key)
        if flag in _FILES:
            inputs.append(section.folder / str(value))
    twice = {flag for flag in map(_flag, options) if sum(_flag(key) == flag for key in options) > 1}
    if twice:
        raise ValueError(f"{where}: {sorted(twice)[0]!r} is given twice.")
    missing = [f"--{flag}" for flag, one in known.items() if one.required and f"--{flag}" not in words]
    if missing:
        raise ValueError(f"{where}: {missing[0].lstrip('-')!r} is missing.")
    span = 0 if every is None else parse_duration(every, f"{where}: every", "seconds")
    _check_values(where, command, [*words, "--", *(paths or [])], options)
    return Job(command, section.name, (command, *words), tuple(paths or ()), tuple(inputs), span)


def _check_values(where: str, command: str, words: list[str], options: dict[str, Any]) -> None:
    """Refuse values that the command would refuse before it reads anything."""
    try:
        _function(command).make_context(command, words)
        for key, value in options.items():
            if _flag(key) in _DURATIONS:
                parse_duration(value, key, "seconds")
        if command == "monitor":
            from belated.monitoring.limits import parse_limits

            parse_limits(options.get("fail-on", options.get("fail_on")))
    except click.ClickException as error:
        raise ValueError(f"{where}: {error.format_message()}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _words(flag: str, value: Any, option: click.Option, where: str, key: str) -> list[str]:
    if option.is_flag:
        if not isinstance(value, bool):
            raise ValueError(f"{where}: {key!r} must be true or false.")
        return [flag] if value else []
    if isinstance(value, list):
        each = [str(one) for one in value]
        return [word for one in each for word in (flag, one)] if option.multiple else [flag, ",".join(each)]
    if isinstance(value, bool | dict):
        raise ValueError(f"{where}: {key!r} must be text or a number.")
    return [flag, str(value)]


def _files(paths: tuple[Path, ...]) -> Iterator[Path]:
    """The files behind paths: those of folders, and those that a pattern fits."""
    for path in paths:
        named = [path] if path.exists() else [Path(one) for one in glob.glob(str(path), recursive=True)]
        for one in named:
            yield from (file for file in one.rglob("*") if file.is_file()) if one.is_dir() else [one]
