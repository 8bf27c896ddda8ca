"""docs/clusters: the two programs are those in examples/, and run as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["dask", "spark"])
def test_the_page_shows_the_program(name):
    program = (ROOT / "examples" / "cluster" / f"with_{name}.py").read_text()
    page = (ROOT / "docs" / "clusters" / f"{name}.md").read_text()
    assert program.split('"""', 2)[2].strip() in page


@pytest.mark.cluster
@pytest.mark.parametrize(("name", "said"), [("dask", "DelayedFeedbackClassifier("), ("spark", "avg(probability)")])
def test_the_program_runs(name, said):
    pytest.importorskip("distributed" if name == "dask" else "pyspark")
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("there is no Java (make test-cluster)")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "cluster" / f"with_{name}.py")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert said in done.stdout and "desktop" in done.stdout
