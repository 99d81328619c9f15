"""Games to learn in, and a folder to learn from."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.envs.conftest import program
from tests.selfplay.conftest import one_torch_thread

__all__ = ["one_torch_thread"]

Game = Callable[..., Path]

if sys.platform == "win32":
    collect_ignore_glob = [
        "rllib/test_*.py",
        "sb3/test_*.py",
    ]  # they stage shell scripts and signals


@pytest.fixture
def game(tmp_path: Path) -> Game:
    """The counter game as a program, with any of its options: `game(kind="discrete")`."""

    def make(**options: object) -> Path:
        inner = program(tmp_path, "new_game")
        words = " ".join(f"--{key}={value}" for key, value in options.items())
        path = inner.with_name("game_" + "_".join(map(str, options.values())))
        path.write_text(f'#!/bin/sh\nexec "{inner}" {words} "$@"\n')
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the current one."""
    path = tmp_path / "a project"
    path.mkdir()
    monkeypatch.chdir(path)
    monkeypatch.delenv("CONTROLLER_METRICS", raising=False)
    return path
