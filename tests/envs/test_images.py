"""Games whose agents see images: drawn by themselves, wherever they are started."""

import json
import os
import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from estragon.cli import main
from estragon.envs import GodotEnv, pool
from estragon.godot import display
from estragon.godot.find import engine_folder
from estragon.godot.process import GodotError
from tests.envs.conftest import program
from tests.envs.exporting import can_export, export_game, export_pack
from tests.envs.staging import pids
from tests.godot.addon.peer import staged
from tests.godot.staging import write_program

pytestmark = pytest.mark.usefixtures("drawing")
RED = np.array([255, 0, 0])
SWING_PX = 10.0
"""How far from the middle of the picture the ball is at its farthest."""


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_needed_rendering", set())


@pytest.fixture(scope="session")
def lookout(godot: Path) -> Path:
    """A red ball that swings before the camera of an agent."""
    return staged("lookout")


def watch(env: GodotEnv, steps: int) -> None:
    """Play, and compare what is seen with where the ball is: at most one tick before."""
    rights: list[float] = []
    for _ in range(steps):
        seen, *_ = env.step(np.zeros(env.num_envs, np.int64))
        for picture, place in zip(seen["camera_2d"], env.call("tell_side"), strict=True):
            assert picture.shape == (36, 36, 3)
            ball = np.argwhere((picture == RED).all(axis=-1))
            assert 20 < len(ball) < 400
            right = (ball[:, 1].mean() - 17.5) / SWING_PX
            assert right == pytest.approx(place / 2.5, abs=0.25)
            rights.append(right)
    assert max(rights) - min(rights) > 0.5, "it moves"


def test_a_project_is_drawn_and_again_after_a_loss(lookout: Path, tmp_path: Path) -> None:
    with closing(GodotEnv(lookout, n_parallel=2, log_folder=tmp_path)) as env:
        env.reset()
        watch(env, 10)
        os.kill(pids(env)[1], signal.SIGKILL)
        env.step(np.zeros(2, np.int64))
        assert env.restarts == 1
        watch(env, 10)
    logs = "".join(log.read_text() for log in tmp_path.glob("*.log"))
    assert "a camera sensor needs a renderer" not in logs
    assert pool._needed_rendering


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")
def test_a_display_that_dies_is_replaced(lookout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with closing(GodotEnv(lookout)) as env:
        env.reset()
        (server,) = display._servers.values()
        os.kill(server.process.pid, signal.SIGKILL)
        for _ in range(100):
            env.step(np.zeros(1, np.int64))
            if env.restarts:
                break
        watch(env, 10)
    assert not display._servers, "they end with the last game"


@pytest.mark.prove
@pytest.mark.parametrize("ending", ["pck", "x86_64"])
def test_exported_games_are_drawn(lookout: Path, tmp_path: Path, ending: str) -> None:
    if not can_export():
        pytest.skip("needs the private copy of Godot from Debian's packages")
    project = Path(shutil.copytree(lookout, tmp_path / "to export"))
    export = export_pack if ending == "pck" else export_game
    game = export(project, tmp_path / f"lookout.{ending}")
    if ending != "pck":
        # It draws with the private copy's Mesa, of which nobody else may hear.
        libraries = next((engine_folder() / "prefix/usr/lib").glob("*-linux-gnu"))
        words = f'LD_LIBRARY_PATH="{libraries}:{libraries}/pulseaudio" exec "{game}" "$@"'
        game = write_program(tmp_path / "with its libraries", words)
    with closing(GodotEnv(game)) as env:
        env.reset()
        watch(env, 20)


def test_a_game_that_cannot_begin_without_pictures(tmp_path: Path) -> None:
    """It says what Godot says, and waits for ever."""
    inner = program(tmp_path, "old_game")
    game = tmp_path / "my games" / "eager"
    said = "   at: texture_2d_get (./servers/rendering/dummy/storage/texture_storage.h:106)"
    game.write_text(
        f'#!/bin/sh\necho "$@" >> "$0.words"\ncase "$*" in *--headless*) echo "{said}"; '
        f'exec sleep 600;; esac\nexec "{inner}" "$@"\n'
    )
    game.chmod(0o755)
    with closing(GodotEnv(game, n_parallel=2, key="obs")) as env:
        env.reset()
    words = [line.split() for line in game.with_suffix(".words").read_text().splitlines()]
    assert ["--headless" in line for line in words] == [True, True, False, False]
    assert all("--fixed-fps" in line for line in words)
    assert all("--disable-render-loop" not in line for line in words[2:])


def test_who_wants_no_drawing_gets_none(lookout: Path) -> None:
    with (
        pytest.raises(GodotError, match="camera_2d"),
        closing(GodotEnv(lookout, draws=False)) as env,
    ):
        env.reset()
    assert not pool._needed_rendering
    assert not display._servers


def test_it_is_probed(lookout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seconds", "1", "--json", str(tmp_path / "found.json")]
    assert main(["godot", "probe", str(lookout), *words]) == 0
    assert "camera_2d image 36×36×3" in capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text())
    assert not [line for line in found["warnings"] if "no episode ended" not in line]


@pytest.mark.prove  # with images that are made up: tests/trainers/sb3/test_training.py
def test_it_is_learned_with_a_picture_network(
    lookout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stable_baselines3 import PPO

    monkeypatch.chdir(tmp_path)
    words = ["--policy_type", "cnn", "--timesteps", "16", "--n_steps", "8", "--batch_size", "8"]
    assert main(["train", "sb3", "--env_path", str(lookout), *words]) == 0
    model = PPO.load(tmp_path / "logs" / "sb3" / "experiment_1" / "model.zip")
    assert model.num_timesteps == 16
    assert "cnn" in " ".join(model.policy.state_dict())
