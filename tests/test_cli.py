"""The command: teaches, and answers bad input with one clear line and exit code 2."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from estragon import __version__
from estragon.cli import VERBS, main
from estragon.support import paths

PLAY = ["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:random"]
PATIENCE_SEC = 300.0


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
        (["xyzzy"], "estragon --help lists them"),
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
    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("the\nroof\nfell")

    monkeypatch.setattr("estragon.tag.matches.evaluate", explode)
    assert main(PLAY) == 1
    assert capsys.readouterr().err == (
        "estragon: unexpected RuntimeError: the roof fell (--debug shows where)\n"
    )


def test_unwritable_output_is_said_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*PLAY, "--episodes", "10000000", "--json", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
@pytest.mark.parametrize("words", [["--help"], ["train", "sb3", "--help"]])
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "estragon", *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=PATIENCE_SEC,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_stops_play_cleanly(tmp_path: Path) -> None:
    assert main([*PLAY, "--episodes", "1"]) == 0, "compiles what is not compiled yet"
    log = ["--log-trajectories", "--log-at-most", "1", "--data-root", str(tmp_path)]
    lines = interrupted([*PLAY, "--episodes", "10000000", *log], tmp_path, "ep_*.jsonl")
    assert lines == [
        "logging the first 1 of 10000000 matches (--log-at-most)",
        "estragon: stopped",
    ]


@pytest.mark.prove
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_stops_cleanly_while_kernels_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty cache makes sure that they are; the first one in it is a part of the next."""
    monkeypatch.setenv("ESTRAGON_HOME", str(tmp_path))
    lines = interrupted([*PLAY, "--episodes", "10000000"], tmp_path, "*.nbc")
    assert lines == ["estragon: stopping after compilation", "estragon: stopped"]


def interrupted(words: list[str], folder: Path, awaited: str) -> list[str]:
    """What a command says that gets a Ctrl-C once there is such a file in the folder."""
    with subprocess.Popen(
        [sys.executable, "-m", "estragon", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            deadline = time.monotonic() + PATIENCE_SEC
            while not any(folder.rglob(awaited)):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline, f"no {awaited} in {folder}"
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE_SEC)
        finally:
            process.kill()
    assert process.returncode == 130
    return [line for line in said.splitlines() if not line.startswith("playing ")]
