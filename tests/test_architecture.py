"""The tree keeps its shape: imports point one way, and the core stays light and portable."""

import ast
import subprocess
import sys
from pathlib import Path

from estragon.support import paths

RANKS = {
    "support": 0,
    "godot": 1,
    "envs": 2,
    "tag": 2,
    "spacetime": 2,
    "selfplay": 3,
    "onnx": 4,
    "live": 5,
    "show": 5,
    "trainers": 5,
    "controller": 6,
    "judge": 6,
    "commands": 7,
    "cli": 8,
}
"""A room imports only from rooms of lower rank and from itself."""
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


def test_imports_point_one_way() -> None:
    wrong = []
    for path in SOURCES:
        own = room(path)
        if own in ("__init__", "__main__"):
            continue
        for name, _ in imports(path):
            parts = name.split(".")
            if parts[0] != "estragon" or len(parts) < 2 or parts[1] not in RANKS:
                continue
            if parts[1] != own and RANKS[parts[1]] >= RANKS[own]:
                wrong.append(f"{path.relative_to(paths.PACKAGE)} imports {name}")
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_the_package_does_not_need_the_games_tests() -> None:
    """A wheel may be built without `godot/tests`."""
    files = [*SOURCES, *paths.PACKAGE.rglob("*.gd")]
    assert not [path.name for path in files if "res://tests" in path.read_text()]


def test_no_import_that_only_posix_has_at_the_top() -> None:
    wrong = []
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                if names & POSIX_ONLY:
                    wrong.append(f"{path.relative_to(paths.PACKAGE)}:{node.lineno}")
    assert not wrong, f"guard with a Windows branch: {wrong}"


def test_the_core_needs_nothing_heavy() -> None:
    """Rules, layouts, policy files and the command work with the core install alone."""
    script = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "torch", "gymnasium", "pettingzoo", "matplotlib"}:
            raise ModuleNotFoundError(name, name=name)
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
        "estragon: 'estragon eval tag' needs numba; run: pip install 'estragon[train]'\n"
    )
