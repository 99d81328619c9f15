"""Which Godot is it, and is it new enough?"""

import time
from pathlib import Path

import pytest

from estragon.godot import find
from estragon.godot.find import check_version, read_version
from estragon.support.errors import UserError
from tests.godot.staging import alive, write_fake_godot, write_program


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("4.6.3.stable.official.abc123", (4, 6, 3)),
        ("4.4.stable.mono.official.4c311cbee", (4, 4, 0)),
        ("4.6.3.stable.debian4.6.3+ds-2", (4, 6, 3)),
        ("5.0.beta2.custom_build", (5, 0, 0)),
        ("3.5.1.stable.official.6fed1ffa3", (3, 5, 1)),
    ],
)
def test_versions_are_read(tmp_path: Path, text: str, numbers: tuple[int, int, int]) -> None:
    found = read_version(write_fake_godot(tmp_path / "godot", text))
    assert (found.major, found.minor, found.patch) == numbers
    assert found.text == text


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
        assert read_version(program).patch == 1
    assert calls.read_text() == "x\n"
    write_fake_godot(program, "4.5.2.stable.x")
    assert read_version(program).patch == 2


def test_the_real_one(godot: Path) -> None:
    assert check_version(godot).major >= 4
