"""What happens to a command and its workers when they are interrupted, ended or killed. Real processes, real signals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from belated.datasets import simulate_campaigns

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")


@pytest.fixture(scope="module")
def long_log(tmp_path_factory):
    """Enough to keep two workers busy for a while."""
    path = tmp_path_factory.mktemp("logs") / "clicks.parquet"
    pq.write_table(simulate_campaigns(60_000), path)
    return path


class Command:
    """``belated compare`` in a process group of its own, with a temporary folder of its own."""

    def __init__(self, log, folder, *more, **how):
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        words = [
            "compare",
            str(log),
            "--horizon",
            "10d",
            "--cutoffs",
            "6",
            "--until",
            "2024-03-01",
            "--jobs",
            "2",
            *more,
        ]
        self.mark = f"mark-{os.getpid()}-{id(self)}"
        environment = {
            **os.environ,
            "TMPDIR": str(self.scratch),
            "JOBLIB_TEMP_FOLDER": str(self.scratch),
            "MARK": self.mark,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "belated.cli", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment,
            # A shell that runs the tests in the background has them ignore interrupts, and a child inherits that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            **how,
        )

    def workers(self):
        """Processes of this command beside the command itself and those that keep track of resources."""
        found = []
        for folder in Path("/proc").iterdir():
            try:
                environment = (folder / "environ").read_bytes() if folder.name.isdigit() else b""
                if self.mark.encode() in environment and int(folder.name) != self.process.pid:
                    words = (folder / "cmdline").read_bytes()
                    if b"resource_tracker" not in words and words:
                        found.append(int(folder.name))
            except OSError:
                continue
        return found

    def wait_for_workers(self, count=2):
        until = time.monotonic() + 60
        while len(self.workers()) < count:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < until
            time.sleep(0.1)
        time.sleep(3)  # into their work

    def end(self):
        """Its output; a worker that kept the pipe open would let this wait."""
        out, errors = self.process.communicate(timeout=30)
        return self.process.returncode, out, errors

    def is_gone(self):
        until = time.monotonic() + 15
        while self.workers() and time.monotonic() < until:
            time.sleep(0.1)
        return not self.workers()


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow), pytest.param(signal.SIGKILL, id="SIGKILL")],
)
def test_workers_end_with_their_parent(number, long_log, tmp_path):
    command = Command(long_log, tmp_path, "--json", tmp_path / "r.json")
    command.wait_for_workers()
    os.kill(command.process.pid, number)
    code, _, errors = command.end()
    assert code == (128 + number if number == signal.SIGTERM else -number), errors
    assert command.is_gone()
    time.sleep(1.0)
    assert not [p for p in command.scratch.rglob("*") if p.is_file()]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["scratch"]
    assert "Traceback" not in errors


def test_an_interrupt_leaves_no_half_file(long_log, tmp_path):
    command = Command(long_log, tmp_path, "--json", tmp_path / "r.json")
    command.wait_for_workers()
    os.killpg(command.process.pid, signal.SIGINT)
    code, _, errors = command.end()
    assert code == 130, errors
    assert "Interrupted; no file was left half written." in errors and "Traceback" not in errors
    assert sorted(p.name for p in tmp_path.iterdir()) == ["scratch"]
    assert command.is_gone()


def test_a_worker_that_is_killed_is_told_in_a_sentence(long_log, tmp_path):
    command = Command(long_log, tmp_path)
    command.wait_for_workers()
    os.kill(command.workers()[0], signal.SIGKILL)  # as the kernel does when memory runs out
    code, _, errors = command.end()
    assert code == 2 and "Traceback" not in errors
    assert re.search(r"Error: one of 2 worker processes was killed.*--jobs 1", errors.replace("\n", " "))
    assert command.is_gone()


def test_an_interrupt_with_a_cache_says_that_a_rerun_goes_on(long_log, tmp_path):
    command = Command(long_log, tmp_path, "--cache", tmp_path / "cache", "--methods", "tw")
    until = time.monotonic() + 120
    while not list((tmp_path / "cache").glob("*.npz")):
        assert time.monotonic() < until and command.process.poll() is None
        time.sleep(0.05)
    os.killpg(command.process.pid, signal.SIGINT)
    code, _, errors = command.end()
    assert code == 130 and "what is finished is in" in errors and "Traceback" not in errors
    assert all(p.suffix == ".npz" and not p.name.startswith(".") for p in (tmp_path / "cache").iterdir())
    assert command.is_gone()


def test_nothing_is_left_in_the_temporary_folder_after_a_good_end(tmp_path):
    pq.write_table(simulate_campaigns(4000), tmp_path / "small.parquet")
    command = Command(tmp_path / "small.parquet", tmp_path, "--methods", "tw")
    code, _, errors = command.end()
    assert code == 0, errors
    assert command.is_gone() and not [p for p in command.scratch.rglob("*") if p.is_file()]
    assert tempfile.gettempdir() != str(command.scratch)
