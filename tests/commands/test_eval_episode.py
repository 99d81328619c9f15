"""`estragon eval-episode`: one match, its log, its picture, its film."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from estragon.cli import main
from estragon.show.film_renderers import GODOT_SIZE, HOLD_SEC, TOP_DOWN_SIZE
from estragon.show.paths_picture import SIZE
from estragon.show.trajectory_reader import read_trajectory
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import ROLES, load_rules
from tests.show.staging import footage

SCRIPT = Path(__file__).parents[2] / "scripts" / "eval_episode.sh"
SHORT = ["eval-episode", "--duration", "1.5"]


def only(folder: Path, ending: str) -> Path:
    (path,) = folder.glob(f"ep_*{ending}")
    return path


def test_it_leaves_a_log_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(SHORT) == 0
    folder = tmp_path / "data" / "trajectories"
    trajectory = read_trajectory(only(folder, ".jsonl"))
    assert trajectory.seconds[-1] == trajectory.start.time_limit_sec == 1.5
    assert trajectory.start.players == {"seeker": "bot:chaser", "hider": "bot:evader"}
    with Image.open(only(folder, ".png")) as picture:
        assert picture.size == SIZE
    assert len(list(folder.iterdir())) == 2
    captured = capsys.readouterr()
    assert captured.err == "seeker: bot:chaser\nhider: bot:evader\n"
    assert captured.out.startswith("nobody is tagged in 1.5 s\nwrote data/trajectories/ep_")


def test_trained_policies_play_where_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = load_rules()
    for role in ROLES:
        policy = FrozenPolicy.untrained(rules, role, seed=1)
        save_policies(tmp_path / "trainer" / f"policy_{role}.npz", {role: policy}, rules)
    assert main([*SHORT, "--output", "here"]) == 0
    players = read_trajectory(only(tmp_path / "here", ".jsonl")).start.players
    assert Path(players["seeker"]) == Path("trainer", "policy_seeker.npz")
    assert Path(players["hider"]) == Path("trainer", "policy_hider.npz")
    assert "policy_seeker.npz" in capsys.readouterr().err
    assert main([*SHORT, "--output", "bots", "--seeker", "bot:random"]) == 0
    players = read_trajectory(only(tmp_path / "bots", ".jsonl")).start.players
    assert players["seeker"] == "bot:random"
    assert capsys.readouterr().err.count("\n") == 1, "only who was not asked for is told"


def test_the_first_agent_begins_as_asked(tmp_path: Path) -> None:
    words = ["--duration", "0.5", "--start-role", "hider", "--seed", "3"]
    assert main(["eval-episode", "--output", str(tmp_path), *words]) == 0
    trajectory = read_trajectory(only(tmp_path, ".jsonl"))
    assert not trajectory.is_seeker[:, 0].any()
    assert trajectory.start.seeker == "Agent2"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_script_plays_the_same_match_in_godot_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another duration and the other agent first."""
    monkeypatch.chdir(tmp_path)  # a checkout may have policies of its own
    words = ["--duration", "1.5", "--start-role", "hider", "--seed", "3", "--layout", "random:2"]
    assert main(["eval-episode", *words, "--output", str(tmp_path / "embedded")]) == 0
    script = ["bash", str(SCRIPT), *words, "--engine", "godot", "--title", "one & two"]
    env = os.environ | {"AI_DATA_ROOT": "my data"}
    done = subprocess.run(
        script, cwd=tmp_path, env=env, check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "my data" / "trajectories"
    ours, theirs = (
        read_trajectory(only(where, ".jsonl")) for where in (tmp_path / "embedded", folder)
    )
    assert (ours.start.engine, theirs.start.engine) == ("embedded", "godot")
    assert (theirs.start.seeker, theirs.start.time_limit_sec) == ("Agent2", 1.5)
    assert len(theirs.ticks) == 31
    np.testing.assert_array_equal(ours.positions, theirs.positions)
    np.testing.assert_array_equal(ours.ray_distances, theirs.ray_distances)
    with Image.open(only(folder, ".png")) as picture:
        assert picture.size == SIZE
    refused = subprocess.run(
        ["bash", SCRIPT, "--speed", "9"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2


def test_a_film_is_made_if_wanted(tmp_path: Path) -> None:
    words = ["--duration", "0.5", "--record", "--record-fps", "10", "--title", "Über – alles"]
    assert main(["eval-episode", "--output", str(tmp_path), *words]) == 0
    stream, _, frames = footage(only(tmp_path, ".mp4"), TOP_DOWN_SIZE)
    assert "10 fps" in stream
    assert len(frames) == (0.5 + HOLD_SEC) * 10 + 1
    changed = np.abs(frames[5].astype(int) - frames[0])[80:700].mean()
    assert changed > 0.1, "somebody moves"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_godot_draws_the_film_if_wanted(tmp_path: Path) -> None:
    words = ["--duration", "0.2", "--record", "--record-fps", "5", "--renderer", "godot"]
    assert main(["eval-episode", "--output", str(tmp_path), *words]) == 0
    stream, _, frames = footage(only(tmp_path, ".mp4"), GODOT_SIZE)
    assert "1280x720" in stream
    assert len(frames) == (0.2 + HOLD_SEC) * 5 + 1
    assert frames[0].std() > 10.0, "something is drawn"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--duration", "0"], "--duration: expected 0.05 to 3600, got 0"),
        (["--duration", "nan"], "--duration: expected"),
        (["--record-fps", "0"], "--record-fps: expected 1 to 240, got 0"),
        (["--start-role", "king"], "king"),
        (["--seeker", "nobody.npz"], "no player 'nobody.npz'"),
        (["--layout", "moon"], "no layout 'moon'"),
        (["--output", "/dev/null"], "cannot write /dev/null/ep.jsonl"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["eval-episode", "--hider", "bot:evader", "--seeker", "bot:chaser", *words]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert says in complaint


def test_a_strange_frame_rate_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AI_RECORD_FPS", "fast")
    assert main(SHORT) == 2
    assert "AI_RECORD_FPS: expected a whole number, got 'fast'" in capsys.readouterr().err
