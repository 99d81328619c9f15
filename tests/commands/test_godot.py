"""`estragon godot …`: one line for scripts, findings for people, exit codes for both."""

from pathlib import Path

import pytest

from estragon.cli import main
from estragon.godot.display import find_xvfb
from tests.godot.staging import write_fake_godot, write_program


def test_path_prints_one_line(godot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["godot", "path"]) == 0
    assert capsys.readouterr().out == f"{godot}\n"


def test_path_without_a_godot(empty_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["godot", "path"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "estragon: no usable Godot 4 here: run estragon godot install\n"


@pytest.mark.usefixtures("drawing")
def test_install_where_there_is_one(
    godot: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("estragon.commands.godot_install.has_display", lambda: False)
    assert main(["godot", "install"]) == 0
    captured = capsys.readouterr()
    first, second = captured.out.splitlines()
    assert first.startswith("Godot 4.")
    assert first.endswith(f"is ready: {godot}")
    assert second == f"Xvfb is ready: {find_xvfb()}"
    assert captured.err == ""


@pytest.mark.usefixtures("drawing")
def test_a_healthy_machine(godot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["godot", "doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ok    Godot 4.") and str(godot) in line for line in lines)
    assert "ok    headless start" in lines
    assert not any(line.startswith("BAD") for line in lines)
    assert any(line.startswith("ok    GL renderer: ") for line in lines)


def test_a_machine_without_godot(empty_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["godot", "doctor"]) == 1
    assert "BAD   no usable Godot 4: run estragon godot install" in capsys.readouterr().out


def test_a_godot_3_is_among_the_findings(
    empty_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_fake_godot(tmp_path / "bin" / "godot", "3.5.1.stable.official")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert main(["godot", "doctor"]) == 1
    assert "note  skipped godot on PATH: " in (text := capsys.readouterr().out)
    assert "3.5.1.stable.official" in text


def test_a_godot_that_does_not_start(
    empty_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = "[ $1 = --version ] && echo 4.6.3.stable.x && exit; echo out of order; exit 9"
    program = write_program(tmp_path / "godot", body)
    monkeypatch.setenv("GODOT_BIN", str(program))
    assert main(["godot", "doctor"]) == 1
    text = capsys.readouterr().out
    assert "BAD   headless start: godot: an empty project ended with status 9" in text
    assert "out of order" in text


def test_a_wrong_godot_bin(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GODOT_BIN", "/nowhere/godot")
    assert main(["godot", "doctor"]) == 1
    assert main(["godot", "install"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("BAD   GODOT_BIN=/nowhere/godot cannot be used")
    assert captured.err.startswith("estragon: GODOT_BIN=/nowhere/godot cannot be used")
    assert captured.err.count("\n") == 1
