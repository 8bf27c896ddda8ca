"""Pages of the site: their programs run as they are and print what is shown, and the file of a watched site is the one in examples/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from belated.cli.watch_config import read_config

ROOT = Path(__file__).parents[1]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "page", ["start.md", "large-logs.md", "evaluate.md", "extend.md", "monitoring.md", "streaming.md", "experiments.md"]
)
def test_a_page_can_be_typed_from_top_to_bottom_in_an_empty_folder(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    words = [sys.executable, "-W", "error", ROOT / "packaging" / "run_page.py", ROOT / "docs" / page]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": ""})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_programs_of_a_page_run(capsys):
    names = {}
    for code in blocks("forecasting.md", "python"):
        exec(compile(code, "forecasting.md", "exec"), names)
    assert "rows" in capsys.readouterr().out and names["found"].verdict


def test_the_file_of_the_site_is_the_example_and_can_be_read():
    file = ROOT / "examples" / "watch" / "watch.toml"
    assert blocks("monitoring.md", "toml") == [file.read_text()]
    names = [job.name for job in read_config(file).jobs]
    assert names == ["clicks-describe", "clicks-compare", "clicks-forecast", "model-monitor"]
