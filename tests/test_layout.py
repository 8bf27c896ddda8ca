"""The house: which room may import which, names that mean one thing, and what an import costs.

Everything here is read from the source, so nothing can go out of date.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import belated

ROOT = Path(belated.__file__).parent
ROOMS = {folder.name for folder in ROOT.iterdir() if (folder / "__init__.py").exists()}
FILES = sorted(ROOT.rglob("*.py"))
OPEN_TO_ALL = {"typing", "arrays", "compiling", "extras", "notices", "threads", "belated"}


def imported_modules(file):
    """Modules of belated that a file imports when it runs, inside functions too, but not for the type checker alone."""
    found = []

    def visit(node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            found.append(node.module)
            # "from belated.solvers import row_kernels as kernels" names a module too
            found.extend(f"{node.module}.{alias.name}" for alias in node.names if is_module(node.module, alias.name))
            if node.module == "belated":  # "from belated import X" means the home of X
                found.extend(f"belated.{belated._HOMES.get(a.name, a.name)}" for a in node.names if a.name[0] != "_")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(file.read_text()))
    return [name for name in found if name and name.split(".")[0] == "belated"]


def is_module(parent, name):
    path = ROOT.parent / Path(*parent.split("."), name)
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def room_of(module):
    return module.split(".")[1] if "." in module else "belated"


def room_of_file(file):
    inside = file.relative_to(ROOT)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


@pytest.fixture(scope="module")
def graph():
    """For each room, or file at the top, the others that it imports."""
    edges = {}
    for file in FILES:
        if file == ROOT / "__init__.py":
            continue
        mine = edges.setdefault(room_of_file(file), set())
        mine |= {room_of(module) for module in imported_modules(file)} - {room_of_file(file)} - OPEN_TO_ALL
    return edges


def test_imports_go_one_way(graph):
    order = list(TopologicalSorter(graph).static_order())  # a CycleError names the cycle
    assert order.index("tables") < order.index("data") < order.index("methods") < order.index("evaluation")
    assert order.index("evaluation") < order.index("classifier") < order.index("cli")


def test_each_room_imports_what_it_says(graph):
    """An ``__init__`` says "May import A and B"; what those may import is included."""

    def reachable(rooms):
        return set(rooms).union(*(reachable(graph[room]) for room in rooms))

    for room in sorted(ROOMS):
        text = " ".join(ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text())).split())
        if "May import everything" in text:
            continue
        rule = re.search(r"May import (.*?)[.;]( |$)|[Ii]mports nothing from other rooms", text)
        assert rule, f"{room}/__init__.py does not say what it may import"
        named = set(graph) & set(re.findall(r"\w+", rule[1] or ""))
        assert graph[room] <= reachable(named), f"{room} imports {graph[room] - reachable(named)} and does not say so"


def test_methods_and_models_do_not_know_each_other(graph):
    assert "models" not in graph["methods"] and "methods" not in graph["models"]
    assert graph["report"] == set() and graph["tables"] == set() and graph["risks"] == set()


def test_solvers_know_of_risks_only_the_interface():
    for file in (ROOT / "solvers").glob("*.py"):
        known = {module for module in imported_modules(file) if room_of(module) == "risks"}
        assert known <= {"belated.risks.base"}, file


def test_the_graph_sees_imports_inside_functions_and_of_modules(tmp_path):
    file = tmp_path / "sample.py"
    code = "def f():\n    from belated.solvers import row_kernels\n    from belated import LinearModel, __version__\n"
    file.write_text(code)
    found = {"belated", "belated.solvers", "belated.solvers.row_kernels", "belated.models.linear"}
    assert set(imported_modules(file)) == found


def test_one_meaning_a_name():
    stems = Counter(file.stem for file in FILES if file.stem not in ("__init__", "__main__", "base"))
    commands = {file.stem for file in (ROOT / "cli").glob("*.py")} | {"reproduce"}
    assert [name for name, count in stems.items() if count > 1 and name not in commands] == []
    public = Counter(
        node.name if isinstance(node, ast.ClassDef) else node.targets[0].id
        for file in FILES
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef)
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper())
        if not (node.name if isinstance(node, ast.ClassDef) else node.targets[0].id).startswith("_")
    )
    assert [name for name, count in public.items() if count > 1] == []


def test_public_names_are_there_and_have_documentation():
    assert sorted(belated._HOMES) == sorted(belated.__all__)
    for name in belated.__all__:
        assert getattr(belated, name).__doc__, name
    assert set(belated.__all__) <= set(dir(belated))
    with pytest.raises(AttributeError, match="module 'belated' has no attribute 'verdict'"):
        belated.verdict  # noqa: B018


def modules_after(code):
    command = [sys.executable, "-c", f"import sys; {code}; print(*sorted(sys.modules))"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_belated_loads_nothing_else():
    loaded = modules_after("import belated")
    assert {name for name in loaded if name.startswith("belated")} == {"belated"}
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", "pyarrow", "rich", "click"}


def test_help_loads_no_numerical_library():
    code = "from click.testing import CliRunner; from belated.cli import main; assert not CliRunner().invoke(main, ['--help']).exit_code"
    loaded = modules_after(code)
    heavy = {"numpy", "scipy", "sklearn", "numba", "pyarrow", "pandas", "narwhals", "joblib", "matplotlib", "torch"}
    assert not loaded & heavy
    assert "belated.cli.compare" in loaded and len(loaded) < 450


def test_a_fit_needs_no_optional_library():
    code = (
        "import numpy as np; from belated import DelayedFeedbackClassifier as C; "
        "C().fit(np.arange(6.0)[:, None], [0, 1, 0, 1, 0, 1])"
    )
    assert not modules_after(code) & {"torch", "matplotlib", "polars", "optuna", "lightgbm", "skops"}
