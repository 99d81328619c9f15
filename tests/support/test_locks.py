"""Locks: one holder at a time, none after the holder is gone, and a wait that ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from estragon.support.errors import UserError
from estragon.support.files import locked

HOLD = """
import sys, pathlib
from estragon.support.files import locked
with locked(pathlib.Path(sys.argv[1]), timeout_sec=5):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_it_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path / "new folder" / "lock", timeout_sec=1):
            pass


def test_a_wait_is_told_and_ends(tmp_path: Path) -> None:
    told: list[str] = []
    with hold(tmp_path / "lock") as holder:
        with (
            pytest.raises(UserError, match=r"timed out after 0 s .*lock"),
            locked(tmp_path / "lock", timeout_sec=0.2, waiting=lambda: told.append("waiting")),
        ):
            pass
        assert told == ["waiting"]
        holder.communicate()
    with locked(tmp_path / "lock", timeout_sec=5):
        pass


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    with hold(tmp_path / "lock") as holder:
        holder.kill()
        with locked(tmp_path / "lock", timeout_sec=5):
            pass


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match="cannot lock"),
        locked(tmp_path / "file" / "lock", timeout_sec=1),
    ):
        pass
