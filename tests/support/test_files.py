"""Files are written completely or not at all; locks have one holder at a time."""

import subprocess
import sys
from pathlib import Path

import pytest

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, locked, write_json, write_new, write_whole


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_replaces_the_old_one_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "result.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert path.read_text() == '{\n  "a": 2\n}\n'
    assert names(path.parent) == ["result.json"]


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(path, {"a": float("nan")})
    assert path.read_text() == '{\n  "a": 1\n}\n'
    assert names(tmp_path) == ["result.json"]


def test_a_folder_in_the_way_is_one_clear_error(tmp_path: Path) -> None:
    for attempt in (ensure_writable, lambda path: write_whole(path, b"x")):
        with pytest.raises(UserError, match="is a folder"):
            attempt(tmp_path)
        with pytest.raises(UserError, match="cannot write"):
            attempt(Path("/dev/null/x"))
    assert names(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX file size limits")
def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    """A file-size limit stands in for the full disk: the write itself fails half way."""
    path = tmp_path / "big.bin"
    write_whole(path, b"old")
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from estragon.support.errors import UserError\n"
        "from estragon.support.files import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    write_whole(Path(sys.argv[1]), b'x' * 1_000_000)\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"cannot write {path}: File too large")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["big.bin"]


def test_a_new_file_takes_the_first_free_name(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "log.v1.jsonl"
    written = [write_new(path, f"{number}".encode()) for number in range(3)]
    assert [path.name for path in written] == ["log.v1.jsonl", "log.v1-2.jsonl", "log.v1-3.jsonl"]
    assert [path.read_text() for path in written] == ["0", "1", "2"]
    assert sorted(names(path.parent)) == sorted(path.name for path in written)


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
