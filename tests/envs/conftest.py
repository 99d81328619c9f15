"""Games that are programs of their own, to be given as `env_path`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.godot.addon.peer import staged

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]  # they stage shell scripts and signals

PEERS = Path(__file__).with_name("peers")


@pytest.fixture
def old_game(tmp_path: Path) -> Path:
    """A game of version 0.7, in a folder with a space in its name."""
    return program(tmp_path, "old_game")


@pytest.fixture
def new_game(tmp_path: Path) -> Path:
    """A game that speaks binary1, in a folder with a space in its name."""
    return program(tmp_path, "new_game")


def program(folder: Path, name: str) -> Path:
    """A peer as an executable."""
    path = folder / "my games" / name
    path.parent.mkdir(exist_ok=True)
    root, python = PEERS.parents[2], sys.executable
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{python}" "{PEERS / name}.py" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def counter(godot: Path) -> Path:
    """The counter game of the addon's tests with the addon in it, in a folder with a space."""
    return staged("counter")


@pytest.fixture(scope="session")
def dials(godot: Path) -> Path:
    """The game of the addon's tests that has parameters, with the addon in it."""
    return staged("dials")


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Threads of torch only wait for each other where layers are small."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
