"""Runs what a page shows: `python run_page.py PAGE.md` in an empty folder.

Blocks of python run in order, with the same names. Lines that begin with `$ ` in blocks of console are typed into a shell, where
`belated` is the one installed beside this Python; lines below them are among what is printed, in that order, `...` for what is left out.
An indented block that follows a block of python is what it prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

BLOCKS = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n((?:    [^\n]*\n)+))?", re.DOTALL | re.MULTILINE)


def run_page(page: Path) -> None:
    """Raises what a block raises, and an AssertionError where something else is printed than the page shows."""
    names: dict[str, object] = {}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for kind, code, shown in BLOCKS.findall(page.read_text()):
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, page.name, "exec"), names)
            expected = [line[4:].rstrip() for line in shown.splitlines()]
            found = [line.rstrip() for line in printed.getvalue().splitlines()]
            assert not shown or found == expected, f"{page.name} shows {expected}, and what is printed is {found}"
        else:
            assert code.startswith("$ "), f"{page.name}: a block of console begins with what is typed: {code}"
            for typed in code.removeprefix("$ ").split("\n$ "):
                line, *shown_lines = typed.splitlines()
                print("$", line, flush=True)
                env = {**os.environ, "PATH": path}
                done = subprocess.run(line, shell=True, env=env, stdout=subprocess.PIPE, text=True)
                assert done.returncode == 0, f"{line} ended with {done.returncode}: {done.stdout}"
                printed_lines = iter([one.strip() for one in done.stdout.splitlines()])
                for one in shown_lines:
                    if one not in ("", "..."):
                        assert one.strip() in printed_lines, (
                            f"{page.name} shows {one!r}, and this is printed: {done.stdout}"
                        )


if __name__ == "__main__":
    run_page(Path(sys.argv[1]))
