"""SpaceTime's scenes for landing, several people, voxels, physics and the menu."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.envs.sb3_env import GodotVecEnv
from estragon.show.frames import find_frames
from estragon.spacetime.client import GodotAPIClient
from estragon.spacetime.scenes import PRESETS, SceneName
from estragon.spacetime.serve import running_scene
from estragon.support import paths
from estragon.support.parameters import Plan

SEES = {
    "spacecraft_landing": {"obs": 14, "landing": 14},
    "multi_agent_vr": {"obs": 12, "teams": 4},
    "voxel_stress": {"obs": 4, "world": 7},
    "physics_stress": {"obs": 7},
    "ui_interaction": {"obs": 37},
}
AGENTS = {"multi_agent_vr": 4}
TIMED = {"voxel_stress": 2, "physics_stress": 3}
"""How many of the first observations are times or memory, which differ every time."""


def test_presets_are_scenes() -> None:
    for preset in PRESETS.values():
        path = paths.godot_project() / preset.scene.removeprefix("res://")
        assert path.exists()
        if preset.plan is not None:
            assert Plan.parse(preset.plan).lessons


@pytest.fixture(scope="module")
def client(godot: Path) -> Iterator[GodotAPIClient]:
    with running_scene(PRESETS["spacecraft_landing"].scene, 0) as running:
        yield running.client


def load(client: GodotAPIClient, scene: str) -> None:
    if client.get_scene_state()["scene_path"] != scene:
        client.load_scene(scene)
    end = time.monotonic() + 60.0
    while client.get_scene_state()["scene_path"] != scene:
        assert time.monotonic() < end
        time.sleep(0.05)


def play(client: GodotAPIClient, seed: int, steps: int, timed: int) -> list[Any]:
    """Observations and rewards of the same actions every time, without what the machine adds."""
    told = client.request("GET", "/rl/info")
    random = np.random.default_rng(3)
    client.request("POST", "/rl/reset", {"seed": seed, "all": True})
    found: list[Any] = []
    for _ in range(steps):
        actions = [
            {key: _draw(random, spec) for key, spec in space.items()}
            for space in told["action_space"]
        ]
        result = client.request("POST", "/rl/step", {"actions": actions})
        for seen in result["observations"]:
            found += [seen["obs"][timed:], *(seen[key] for key in seen if key != "obs")]
        if not timed:
            found.append(result["rewards"])
    return found


def _draw(random: np.random.Generator, spec: dict[str, Any]) -> Any:
    if spec["action_type"] == "discrete":
        return int(random.integers(spec["size"]))
    return [float(value) for value in random.uniform(-1, 1, spec["size"])]


@pytest.mark.slow
@pytest.mark.parametrize("name", SEES)
def test_a_seed_and_actions_are_an_episode(name: SceneName, client: GodotAPIClient) -> None:
    load(client, PRESETS[name].scene)
    told = client.request("GET", "/rl/info")
    assert told["n_agents"] == AGENTS.get(name, 1)
    assert told["ticks_per_second"] == 90
    sizes = {key: space["size"] for key, space in told["observation_space"][0].items()}
    assert sizes == {key: [size] for key, size in SEES[name].items()}
    timed = TIMED.get(name, 0)
    first, again = (play(client, 7, 4, timed) for _ in range(2))
    assert first == again
    if name != "physics_stress":  # which does not see where boxes fall
        assert play(client, 8, 4, timed) != first
    scene = client.get_performance_metrics()["scene"]
    assert scene["islands"] == 1
    assert ("voxel_performance" in scene) == (name in TIMED)
    if name in TIMED:
        measured = scene["voxel_performance"]
        assert measured["physics_frame_time_ms"] > 0.0
        assert (measured["active_chunk_count"] > 0) == (name == "voxel_stress")


@pytest.mark.slow
def test_two_policies_chase_each_other() -> None:
    arguments = {"parameter.rigs": 2, "parameter.task": "chase"}
    scene = PRESETS["multi_agent_vr"].scene
    with contextlib.closing(
        GodotVecEnv(paths.godot_project(), scene=scene, arguments=arguments, seed=1)
    ) as games:
        assert games.agent_policy_names == ["chaser", "runner"] * 4
        seen: Any = games.reset()
        assert (seen["teams"][:, 0] == [1, -1] * 4).all()
        _, rewards, _, _ = games.step(np.zeros((8, 2), np.float32))
        assert np.isfinite(rewards).all()


def test_what_train_scene_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, value in (("seed", "-1"), ("num_envs", "65"), ("timesteps", "0")):
        words = ["train", "scene", f"--{option}", value, "--output", str(tmp_path)]
        assert main(words) == 2
        said = capsys.readouterr().err
        assert f"--{option}: expected" in said
        assert said.count("\n") == 1


def test_frames_need_a_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["spacetime", "run", "--frames", str(tmp_path)]
    assert main(words) == 2
    assert "--frames needs --seconds" in capsys.readouterr().err
    (tmp_path / "frame_000000.png").touch()
    assert main([*words, "--seconds", "1"]) == 2
    assert "has frames already" in capsys.readouterr().err


@pytest.mark.slow
def test_a_scene_is_drawn_into_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene = PRESETS["spacecraft_landing"].scene
    words = ["spacetime", "run", "--scene", scene, "--frames", str(tmp_path / "film")]
    assert main([*words, "--seconds", "0.2", "--fps", "10"]) == 0
    assert capsys.readouterr().out.startswith("2 frames in ")
    frames = find_frames(tmp_path / "film")
    assert len(frames) == 2
    assert len({path.read_bytes() for path in frames}) > 1
