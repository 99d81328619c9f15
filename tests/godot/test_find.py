"""Which Godot is used, and is it new enough?"""

import os
import time
from pathlib import Path

import pytest

from estragon.godot import find
from estragon.godot.find import (
    Manifest,
    check_version,
    engine_folder,
    find_godot,
    read_version,
    require_godot,
    search_godot,
    write_manifest,
)
from estragon.support.errors import UserError
from tests.godot.staging import alive, write_fake_godot, write_program

GODOT_3, GODOT_4 = "3.5.1.stable.official.6fed1ffa3", "4.6.3.stable.official.abc"


@pytest.fixture
def folder(empty_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on the PATH of a machine without Godot."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    return place


def install_fake(version: str) -> Path:
    """A private copy of that version."""
    program = write_fake_godot(engine_folder() / "godot", version)
    write_manifest(engine_folder(), Manifest("godot", "a test"))
    return program


def test_none_at_all(empty_home: Path) -> None:
    with pytest.raises(UserError, match="no usable Godot 4 here: run estragon godot install"):
        find_godot()


def test_godot4_comes_before_godot(folder: Path) -> None:
    write_fake_godot(folder / "godot", GODOT_4)
    second = write_fake_godot(folder / "godot4", GODOT_4)
    assert find_godot() == second


def test_a_godot_3_on_the_path_is_reported(folder: Path) -> None:
    program = write_fake_godot(folder / "godot", GODOT_3)
    with pytest.raises(UserError) as caught:
        find_godot()
    for part in ("estragon godot install", "godot on PATH", str(program), GODOT_3, "4.4 or newer"):
        assert part in str(caught.value)


def test_a_godot_3_is_skipped_for_the_private_copy(folder: Path) -> None:
    write_fake_godot(folder / "godot", GODOT_3)
    private = install_fake(GODOT_4)
    search = search_godot()
    assert search.found is not None
    assert (search.found.path, search.found.origin) == (private, "private copy")
    assert len(search.skipped) == 1
    assert GODOT_3 in search.skipped[0]


def test_the_path_comes_before_the_private_copy(folder: Path) -> None:
    install_fake(GODOT_4)
    program = write_fake_godot(folder / "godot", GODOT_4)
    assert find_godot() == program


def test_an_incomplete_private_copy_is_not_used(empty_home: Path) -> None:
    write_fake_godot(engine_folder() / "godot", GODOT_4)
    assert search_godot().found is None


def test_godot_bin_comes_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fake_godot(folder / "godot4", GODOT_4)
    mine = write_fake_godot(tmp_path / "my godot", GODOT_4)
    monkeypatch.setenv("GODOT_BIN", str(mine))
    assert find_godot() == mine
    monkeypatch.setenv("GODOT_BIN", "godot4")
    assert find_godot() == folder / "godot4"


@pytest.mark.parametrize("what", ["missing", "a folder", "not executable", "not a Godot", GODOT_3])
def test_a_wrong_godot_bin_is_never_skipped(
    what: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fake_godot(folder / "godot", GODOT_4)
    chosen = tmp_path / "chosen"
    if what == "a folder":
        chosen.mkdir()
    elif what == "not executable":
        chosen.write_text("text")
    elif what == "not a Godot":
        write_program(chosen, "echo hello")
    elif what == GODOT_3:
        write_fake_godot(chosen, GODOT_3)
    monkeypatch.setenv("GODOT_BIN", str(chosen))
    with pytest.raises(UserError, match=f"GODOT_BIN={chosen} cannot be used: .*{what}.*unset it"):
        require_godot()


@pytest.mark.parametrize(
    "text",
    [
        "4.6.3.stable.official.abc123",
        "4.4.stable.mono.official.4c311cbee",
        "4.6.3.stable.debian4.6.3+ds-2",
        "5.0.beta2.custom_build",
        "4.10.stable.official",
    ],
)
def test_versions_are_read(tmp_path: Path, text: str) -> None:
    assert check_version(write_fake_godot(tmp_path / "godot", text)) == text


def test_old_versions_are_read(tmp_path: Path) -> None:
    assert read_version(write_fake_godot(tmp_path / "godot", GODOT_3)) == GODOT_3


@pytest.mark.parametrize("text", ["3.5.1.stable.official.6fed1ffa3", "4.3.stable.official.77dcf97"])
def test_old_ones_are_refused_by_name(tmp_path: Path, text: str) -> None:
    program = write_fake_godot(tmp_path / "godot", text)
    with pytest.raises(UserError) as caught:
        check_version(program)
    for part in (str(program), text, "4.4 or newer", "estragon godot install"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [("echo hello", "is not a Godot: .*hello"), ("exit 1", "is not a Godot: .*nothing")],
)
def test_other_programs_are_told_from_it(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_version(write_program(tmp_path / "godot", body))


def test_a_program_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "VERSION_TIMEOUT_SEC", 0.5)
    sleeper = tmp_path / "sleeper"
    program = write_program(tmp_path / "godot", f"sleep 600 & echo $! > {sleeper}; wait")
    with pytest.raises(UserError, match=r"does not work as a Godot: .*timed out after 0\.5 s"):
        read_version(program)
    deadline = time.monotonic() + 10.0  # it was killed; a busy machine may take its time with it
    while alive(int(sleeper.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_is_asked_once_until_it_changes(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    program = write_program(tmp_path / "godot", f"echo x >> {calls}; echo 4.4.1.stable.x")
    for _ in range(3):
        assert read_version(program) == "4.4.1.stable.x"
    assert calls.read_text() == "x\n"
    write_fake_godot(program, "4.5.2.stable.x")
    assert read_version(program) == "4.5.2.stable.x"


def test_the_real_one(godot: Path) -> None:
    assert int(check_version(godot).partition(".")[0]) >= 4
