"""Installs the built wheel as strangers do, and uses it: `python packaging/try_wheel.py dist/belated-*.whl`.

Four empty environments: without extras and with those that a laptop needs, each with the newest version of every dependency and with the
oldest that is supported (oldest.txt). In each, dependencies must fit together, `belated demo` and every block of the start page must run, and a
typed program must pass `mypy --strict` and run. Nothing of the checkout can be imported: all of it runs in an empty folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXTRAS = "[boost,report,sql,tune]"


def run(folder: Path, *words: str | Path) -> None:
    """Runs a command in a folder, quiet unless it fails."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "MYPYPATH": "", "PYTHONPATH": ""}
    done = subprocess.run([str(w) for w in words], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-6000:], sep="\n")
        raise SystemExit(f"{' '.join(map(str, words))} failed with status {done.returncode}")


def try_wheel(wheel: Path, extras: str, constraints: Path | None, mypy: Path) -> None:
    """One empty environment, and all that is done in it."""
    with tempfile.TemporaryDirectory() as name:
        folder, home = Path(name) / "work", Path(name) / "environment"
        folder.mkdir()
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(folder, *pip, "install", *(("-c", constraints) if constraints else ()), f"{wheel}{extras}")
        run(folder, *pip, "check")
        run(folder, home / "bin" / "belated", "demo", *(("--report", "report.html") if extras else ()))
        run(folder, python, HERE / "run_page.py", HERE.parent / "docs" / "start.md")
        run(folder, mypy, "--strict", "--python-executable", python, HERE / "typed_use.py")
        run(folder, python, HERE / "typed_use.py")
        assert not extras or (folder / "report.html").stat().st_size > 100_000


def main() -> None:
    """Every environment, with how long it took."""
    (wheel,) = (Path(word).resolve() for word in sys.argv[1:])
    mypy = Path(sys.executable).with_name("mypy")
    for age, constraints in (("newest", None), ("oldest", HERE / "oldest.txt")):
        for extras in ("", EXTRAS):
            start = time.perf_counter()
            try_wheel(wheel, extras, constraints, mypy)
            print(f"{age} versions, {wheel.name}{extras}: works ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
