"""`estragon live` as a person uses it: real Godot plays, Python learns, and everything is kept."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.live.live_session import ROUND_COLUMNS
from estragon.selfplay.checkpoint import TagRun
from estragon.selfplay.metrics import CONTRACT
from estragon.tag.policy_files import load_policies
from estragon.tag.rules import load_rules
from tests.live.staging import ESTRAGON, Command

ROOT = Path(__file__).resolve().parents[2]
QUICK = ["--arenas", "4", "--update-rows", "256", "--port", "0"]
LIMIT = """
import resource, sys
from estragon.cli import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""
LIMITED = [sys.executable, "-c", LIMIT]
"""`estragon` where no file may grow beyond so many bytes, as on a full disk."""
LONG_SEC = 240.0
STANDSTILL_SEC = 30.0
TIME_LIMIT_SEC = 2.0
"""Of a match in the test of self-play: many end in a few seconds."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def live(folder: Path, *words: str, mode: str = "seeker") -> Command:
    return Command([*ESTRAGON, "live", mode, *QUICK, *words], folder)


def wait_for(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG_SEC
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def metrics(folder: Path) -> list[dict[str, str]]:
    path = folder / "trainer" / "logs" / "metrics.csv"
    if not path.is_file():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def the_debug_folder(folder: Path) -> Path:
    (found,) = (folder / "debug").iterdir()
    return found


def game_pids(folder: Path) -> list[int]:
    """Of the games that a run has started, by its own debug folder on their command lines."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"--live=1" in words and f"PWD={folder}".encode() in environment:
            found.append(int(entry.name))
    return found


def test_self_play_in_rounds_leaves_everything(tmp_path: Path) -> None:
    """The very script of the page, with a shorter time and a folder of its own."""
    for seconds in (24, 72):  # the first is enough, except on a busy machine
        folder = tmp_path / str(seconds)
        folder.mkdir()
        shown = self_play(folder, seconds)
        rows = metrics(folder)
        policies = load_policies(folder / "trainer" / "policy.npz", load_rules())
        if rows and all(policy.trained_steps for policy in policies.values()):
            break
    assert "trained against trained" in shown
    assert tuple(rows[0])[: len(CONTRACT)] == CONTRACT
    assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
    assert {row["terminal_reason"] for row in rows} <= {"tag", "timeout"}
    assert all(float(row["duration_sec"]) <= TIME_LIMIT_SEC for row in rows)
    about = json.loads(TagRun.find(folder, "latest").metadata.read_text())
    assert about["rewards"] == "classic"
    for row in rows:  # only the classic profile pays for time
        paid = float(row["hider_term_survival"]) / float(row["hider_steps"])
        assert paid == pytest.approx(0.01)
    assert policies.keys() == {"seeker", "hider"}
    assert policies["seeker"].trained_steps > 0
    assert list((folder / "charts").glob("*.png"))
    debug = the_debug_folder(folder)
    with (debug / "self_play_rounds.csv").open(newline="") as stream:
        header, *rounds = csv.reader(stream)
    assert tuple(header) == ROUND_COLUMNS
    assert [row[1] for row in rounds] == ["seeker", "hider"]
    assert all((debug / row[4]).stat().st_size for row in rounds)
    assert "arenas" in (debug / "server.log").read_text()
    assert (debug / "metadata.txt").is_file()
    assert (debug / "policies" / "policy_seeker.npz").is_file()
    assert not game_pids(folder), "an orphan"


def self_play(folder: Path, seconds: int) -> str:
    """Two rounds that share this time; what the script prints."""
    words = ["bash", ROOT / "scripts" / "train.sh", "self-play", *QUICK, "--output", folder]
    words += ["--rewards", "classic"]
    length = {"AI_TRAIN_DURATION": str(seconds), "SELF_PLAY_ROUNDS": "2"}
    length |= {"AI_TIME_LIMIT_SEC": str(TIME_LIMIT_SEC)}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=os.environ | length | {"PWD": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_SEC,
    )
    assert done.returncode == 0 or "nothing was learned" in done.stderr, done.stderr
    return done.stdout


@pytest.mark.prove
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="/proc")
def test_games_and_runs_that_are_killed_or_stand_still(tmp_path: Path) -> None:
    """A killed game is started again, one that stood still goes on, a killed run is taken up."""
    with live(tmp_path, "--seconds", "600") as command:
        wait_for(lambda: len(metrics(tmp_path)) > 0, "episodes")
        (first,) = game_pids(tmp_path)
        os.kill(first, signal.SIGKILL)
        command.wait_for("godot_round1 restarted: .*SIGKILL")
        wait_for(lambda: any(pid != first for pid in game_pids(tmp_path)), "another game")
        seen = len(metrics(tmp_path))
        wait_for(lambda: len(metrics(tmp_path)) > seen, "episodes of the second game")
        (second,) = game_pids(tmp_path)
        os.kill(second, signal.SIGSTOP)
        time.sleep(STANDSTILL_SEC)
        os.kill(second, signal.SIGCONT)
        seen = len(metrics(tmp_path))
        wait_for(lambda: len(metrics(tmp_path)) > seen, "episodes after standing still")
        assert game_pids(tmp_path) == [second], "nobody had to be started again"
        command.process.send_signal(signal.SIGKILL)
        command.process.wait(LONG_SEC)
    wait_for(lambda: not game_pids(tmp_path), "the game ends with the run")
    kept = metrics(tmp_path)
    with live(tmp_path, "--resume") as again:
        wait_for(lambda: len(metrics(tmp_path)) > len(kept), "episodes after that")
        again.process.send_signal(signal.SIGINT)
        assert again.process.wait(LONG_SEC) == 130
        again.end()
        assert any("saved; continue with --resume" in line for line in again.said)
    rows = metrics(tmp_path)
    assert [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
    assert not game_pids(tmp_path)
    assert len(list((tmp_path / "debug").iterdir())) == 2
    assert_a_full_disk_is_survived(tmp_path)


def assert_a_full_disk_is_survived(folder: Path) -> None:
    """No file may grow as large as the run's state is: one line, and the state of before."""
    state = TagRun.find(folder, "latest").state
    kept = state.read_bytes()
    words = [*LIMITED, str(len(kept) - 1), "live", "seeker", *QUICK, "--resume"]
    with Command(words, folder) as full:
        assert full.process.wait(LONG_SEC) == 2
        full.end()
    assert full.said[-1].startswith("estragon: ")
    assert "cannot write" in full.said[-1]
    assert "Traceback" not in "".join(full.said)
    assert state.read_bytes() == kept
    assert not game_pids(folder), "an orphan"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--arenas", "0"], "--arenas"),
        (["--seconds", "0"], "--seconds"),
        (["--rounds", "0"], "--rounds"),
        (["--update-rows", "1"], "--update-rows"),
        (["--warm-start", "nothing.pt"], "nothing.pt"),
        (["--resume"], "latest_run.txt"),
        (["--run-id", "x"], "--run-id x: only together with --resume"),
        (["--resume", "--run-id", "x"], "no run with a checkpoint .*: x"),
        (["--layout", "nowhere"], "nowhere"),
        (["--rewards", "generous"], "no reward profile 'generous'"),
    ],
)
def test_bad_options_are_one_line(
    words: list[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["live", *words]) == 2
    complaints = [
        line for line in capsys.readouterr().err.splitlines() if line.startswith("estragon: ")
    ]
    assert len(complaints) == 1
    assert re.search(says, complaints[0])


def test_without_godot_the_server_says_what_to_open(tmp_path: Path) -> None:
    with live(tmp_path, "--no-godot", "--seconds", "600") as command:
        command.wait_for("listening on ws://127.0.0.1")
        assert "project.godot" in command.wait_for("Godot was not started").string
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(LONG_SEC) == 130
