"""The command: teaches, and answers bad input with one clear line and exit code 2."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon import __version__, paths
from estragon.cli import VERBS, main

PLAY = ["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:random"]


def test_alone_it_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    text = capsys.readouterr().out
    for name, verb in VERBS.items():
        assert " ".join(name) in text
        assert verb.summary in text
    assert "--help" in text


@pytest.mark.parametrize("name", list(VERBS))
def test_every_verb_explains_itself(
    name: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"estragon {' '.join(name)}" in text
    assert "options" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"estragon {__version__}\n"


def test_a_group_lists_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--help"]) == 0
    assert "eval tag" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["evl"], "did you mean 'eval'?"),
        (["conquer"], "estragon --help lists them"),
        (["eval", "chess"], "no command 'eval chess'"),
        (["eval", "tag"], "--seeker"),
        ([*PLAY, "--episodes", "many"], "--episodes"),
        ([*PLAY, "--episodes", "0"], "--episodes"),
        ([*PLAY, "--speed", "9"], "--speed"),
        ([*PLAY, "--engine", "unreal"], "unreal"),
        ([*PLAY, "--seed", "-1"], "seed"),
        ([*PLAY, "--layout", "moon"], "no layout 'moon'"),
        ([*PLAY, "--rules", "chess"], "no rule set 'chess'"),
        ([*PLAY, "--rules-file", "none.json"], "none.json"),
        (["eval", "tag", "--seeker", "bot:ninja", "--hider", "bot:random"], "no bot 'ninja'"),
        (["eval", "tag", "--seeker", "x.npz", "--hider", "bot:random"], "x.npz"),
        ([*PLAY, "--json", "/dev/null/x.json"], "cannot write /dev/null/x.json"),
        (["layout", "moon"], "no layout 'moon'"),
        (["bench", "warp"], "no benchmark 'warp'"),
        (["bench", "--seconds", "0"], "--seconds"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("estragon: ")
    assert captured.err.count("\n") == 1
    assert says in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("--rules-file", '"speed_mps": -8.0', "agent.speed_mps"),
        ("--rules-file", '"wings": 2, "speed_mps": 8.0', "wings"),
        ("--rules-file", '"speed_mps": "fast"', "agent.speed_mps"),
        ("--layout", '{"boxes": [{"at_m": [9.9, 0], "size_m": [3, 1, 3]}]}', "sticks out"),
        ("--layout", '{"boxes": [{"at_m": [0, 0], "size_m": [20, 2.8, 1]}]}', "2 parts"),
        ("--layout", '{"boxes": [{"at_m": [0, 0], "size_m": [1, -2, 1]}]}', "size_m"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_code_2(
    option: str, text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.json"
    if option == "--rules-file":
        text = paths.rules_file().read_text().replace('"speed_mps": 8.0', text)
    path.write_text(text)
    assert main([*PLAY, option, str(path)]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert says in complaint


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PLAY, "--layout", "moon", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_unexpected_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("the\nroof\nfell")

    monkeypatch.setattr("estragon.check.evaluate.EvalTag.evaluate", explode)
    assert main(PLAY) == 1
    assert capsys.readouterr().err == (
        "estragon: unexpected RuntimeError: the roof fell (--debug shows where)\n"
    )


def test_unwritable_output_is_said_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLAY, "--episodes", "10000000", "--json", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("compiled", [True, False])
def test_ctrl_c_stops_cleanly(compiled: bool, tmp_path: Path) -> None:
    """Also while the kernels are being compiled, which an empty cache makes sure of."""
    environment = os.environ | ({} if compiled else {"ESTRAGON_HOME": str(tmp_path)})
    if compiled:
        assert main([*PLAY, "--episodes", "1"]) == 0
    words = [sys.executable, "-m", "estragon", *PLAY, "--episodes", "10000000"]
    process = subprocess.Popen(
        words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    time.sleep(5.0)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=120)
    waited = "" if compiled else "estragon: stopping as soon as this is compiled\n"
    assert complaint == f"{waited}estragon: stopped\n"
    assert process.returncode == 130
