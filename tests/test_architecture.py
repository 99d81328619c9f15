"""The tree keeps its shape: imports point one way, and the core stays light and portable."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from estragon import paths

RANKS = {
    "errors": 0,
    "paths": 0,
    "files": 0,
    "options": 0,
    "progress": 0,
    "interrupts": 0,
    "locks": 0,
    "tag": 1,
    "nav": 1,
    "godot": 1,
    "envs": 2,
    "learn": 2,
    "show": 2,
    "export": 2,
    "check": 2,
    "live": 3,
    "jobs": 4,
    "cli": 5,
}
"""A module may import from rooms of its own rank only within itself, and from lower ranks."""
SHOW_RANKS = {"trajectories": 0, "drawing": 1, "frames": 1, "charts": 2, "film": 2}
"""The same, for the rooms within `show`."""
POSIX_ONLY = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
SOURCES = sorted(paths.PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(paths.PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[str, ast.AST]]:
    """Every module a file imports, and where."""
    found: list[tuple[str, ast.AST]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, node) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node))
            found += [(f"{node.module}.{alias.name}", node) for alias in node.names]
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(paths.PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = room(path)
    if own in ("__init__", "__main__"):
        return
    for name, _ in imports(path):
        parts = name.split(".")
        if parts[0] == "estragon" and len(parts) > 1 and parts[1] in RANKS and parts[1] != own:
            assert RANKS[parts[1]] < RANKS[own] or RANKS[own] == 0, f"{own} imports {name}"


def test_every_module_of_show_has_a_room() -> None:
    show = paths.PACKAGE / "show"
    assert [path.name for path in show.glob("*.py")] == ["__init__.py"]
    assert {path.parent.name for path in show.glob("*/*.py")} == set(SHOW_RANKS)


@pytest.mark.parametrize("own", SHOW_RANKS)
def test_imports_within_show_point_one_way(own: str) -> None:
    for path in sorted((paths.PACKAGE / "show" / own).glob("*.py")):
        for name, _ in imports(path):
            parts = name.split(".")
            if parts[:2] == ["estragon", "show"] and len(parts) > 2 and parts[2] != own:
                assert SHOW_RANKS[parts[2]] < SHOW_RANKS[own], f"{path.name} imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(paths.PACKAGE)))
def test_no_import_that_only_posix_has_at_the_top(path: Path) -> None:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
            assert not names & POSIX_ONLY, f"line {node.lineno}: guard it with a Windows branch"


def test_the_core_needs_nothing_heavy() -> None:
    """Rules, layouts, policy files and the command work with the core install alone."""
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "torch", "gymnasium", "pettingzoo", "matplotlib"}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import numpy
from estragon.cli import main
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layout
from estragon.tag.rules import load_rules
rules = load_rules()
load_layout("playground", rules)
policy = FrozenPolicy.untrained(rules, "seeker", 0)
policy.act(numpy.zeros((2, rules.observation.size), dtype=numpy.float32))
assert main(["--version"]) == 0
assert main(["layout", "playground"]) == 0
assert main(["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:random"]) == 2
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "estragon: the embedded engine needs numba: pip install 'estragon[train]'\n"
    )
