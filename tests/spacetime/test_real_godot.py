"""The scene in Godot, over the socket and over HTTP."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.cli import main
from estragon.envs.gymnasium_env import GodotEnv
from estragon.envs.http_channel import given_token
from estragon.envs.sb3_env import GodotVecEnv
from estragon.godot.process import GodotError
from estragon.spacetime.client import GodotAPIClient
from estragon.spacetime.config import SCENE, RLConfig
from estragon.spacetime.observation import RAY_RANGE, to_fields, to_vector
from estragon.spacetime.rewards import RewardCalculator
from estragon.spacetime.serve import RunningScene, running_scene
from estragon.spacetime.vec_rewards import NavigationRewards
from estragon.support import paths
from estragon.support.errors import UserError
from tests.godot.addon.models import linear

STEPS = 40
pytestmark = pytest.mark.slow


def options(wire: str, **more: Any) -> dict[str, Any]:
    arguments = {"parameter.rigs": more.pop("rigs", 2)}
    given = {"scene": SCENE, "wire": wire, "arguments": arguments, "step_timeout_sec": 120.0}
    return given | {"start_timeout_sec": 120.0} | more


def vec_env(wire: str, **more: Any) -> GodotVecEnv:
    return GodotVecEnv(paths.godot_project(), **options(wire, **more))


def walk(env: GodotEnv, steps: int = STEPS) -> list[Any]:
    """Observations and rewards of the same walk every time."""
    random = np.random.default_rng(3)
    found: list[Any] = [env.reset(seed=5)[0]["obs"]]
    for _ in range(steps):
        actions = random.uniform(-1, 1, (env.num_envs, 3)).astype(np.float32)
        observed, rewards, *_ = env.step({"move": actions} if _is_dict(env) else actions)
        found += [observed["obs"], rewards]
    return found


def _is_dict(env: GodotEnv) -> bool:
    return hasattr(env.single_action_space, "spaces")


def test_http_plays_the_same_bits_as_the_socket(tmp_path: Path) -> None:
    found = []
    for wire in ("tcp", "http"):
        env = GodotEnv(
            paths.godot_project(), **options(wire, n_parallel=2, log_folder=tmp_path / wire)
        )
        with contextlib.closing(env):
            assert env.num_envs == 4
            assert env.encoding == "binary1"
            token = env._pool._token
            found.append(walk(env))
    for ours, theirs in zip(*found, strict=True):
        assert np.array_equal(ours, theirs)
    assert len(token) > 30
    logs = [path.read_text() for path in tmp_path.rglob("*.log")]
    assert len(logs) == 4
    assert not any(token in log for log in logs)


@pytest.fixture(scope="module")
def scene(godot: Path) -> Iterator[RunningScene]:
    with running_scene(SCENE, 0) as running:
        yield running


def test_the_client(scene: RunningScene) -> None:
    client = scene.client
    assert client.health_check()
    assert client.get_scene_state() == {
        "scene_name": "VRLocomotionTest",
        "scene_path": SCENE,
        "status": "loaded",
    }
    measured = client.get_performance_metrics()
    assert measured["memory"]["static_memory_usage"] > 0
    assert "fps" in measured["engine"]
    assert client.validate_scene(SCENE)["valid"]
    seen = to_vector(client.request("POST", "/rl/reset", {"seed": 1})["observation"])
    fields = to_fields(seen)
    assert 10.0 <= fields["goal_distance"][0] <= 31.0
    assert (fields["ray_sensors"] <= RAY_RANGE).all()
    assert np.linalg.norm(fields["goal_direction"]) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(UserError, match="HTTP 403 forbidden"):
        client.load_scene("res://tag/game/Tag.tscn")
    with (
        GodotAPIClient(client.port, "wrong") as stranger,
        pytest.raises(UserError, match="HTTP 401 unauthorized"),
    ):
        stranger.get_status()
    assert not GodotAPIClient(1, "x").health_check()
    command = Path(f"/proc/{scene.process.pid}/cmdline")
    if command.exists():
        assert client.token.encode() not in command.read_bytes()


def test_a_game_that_somebody_else_started(
    scene: RunningScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("API_TOKEN", raising=False)
    with pytest.raises(UserError, match="API_TOKEN is not set"):
        given_token()
    monkeypatch.setenv("API_TOKEN", "not it")
    with pytest.raises(GodotError, match="has another token; set API_TOKEN"):
        GodotEnv(wire="http", port=scene.client.port)
    monkeypatch.setenv("API_TOKEN", scene.client.token)
    with contextlib.closing(GodotEnv(wire="http", port=scene.client.port)) as env:
        assert env.num_envs == 1
        walk(env, 3)
    assert scene.client.health_check()  # it is not ours to stop


def test_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "x")
    with pytest.raises(GodotError, match="timed out after"):
        GodotEnv(wire="http", port=1, start_timeout_sec=0.2)


def test_a_port_that_is_taken(scene: RunningScene) -> None:
    with pytest.raises(UserError, match=f"port {scene.client.port} .*stop the program"):
        GodotEnv(paths.godot_project(), **options("http", port=scene.client.port))


def test_the_game_pays_what_the_calculator_pays() -> None:
    """Up to how often they look: every tick, and every step."""
    parameters = RLConfig().parameters()
    with contextlib.closing(vec_env("tcp", rigs=4, parameters=parameters, seed=1)) as games:
        calculated = NavigationRewards(games, RewardCalculator)
        observed: Any = calculated.reset()
        theirs, ours = np.zeros(4), np.zeros(4)
        for _ in range(60):
            goal = to_fields(observed["obs"])["goal_direction"]
            actions = np.stack([goal[:, 0], -goal[:, 2], 0.3 * -goal[:, 0]], axis=1)
            games.step_async(actions)
            calculated._actions = actions
            result = games.step_wait()
            games.step_wait = lambda result=result: result  # type: ignore[method-assign,misc]
            observed, rewards, dones, _ = calculated.step_wait()
            del games.step_wait
            theirs, ours = theirs + result[1], ours + rewards
            assert not dones.any()
        with pytest.raises(UserError, match="wire='http'"):
            games.reload_scene()
    assert ours.min() > 5.0
    assert ours == pytest.approx(theirs, rel=0.1, abs=1.0)


def test_reloading_the_scene_and_losing_the_game() -> None:
    parameters = {"parameters": {"goal_max_m": {"uniform": [12.0, 20.0]}}}
    with contextlib.closing(vec_env("http", parameters=parameters)) as games:
        games.reset()
        stay = np.zeros((2, 3), np.float32)
        games.step(stay)
        games.reload_scene()
        _, _, dones, infos = games.step(stay)
        assert dones.all()
        assert all(info["game_lost"] == "its scene was reloaded" for info in infos)
        assert all(info["TimeLimit.truncated"] for info in infos)
        observed, _, dones, infos = games.step(stay)
        assert not dones.any()
        assert games.restarts == 0
        assert np.abs(observed["obs"]).max() > 5.0  # type: ignore[call-overload]
        process = games._pool.games[0].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        _, _, dones, infos = games.step(stay)
        assert dones.all()
        assert "SIGKILL" in infos[0]["game_lost"]
        assert games.restarts == 1
        assert not games.step(stay)[2].any()


def test_a_policy_plays_without_python_until_a_client_takes_control(tmp_path: Path) -> None:
    weights = np.zeros((48, 3), np.float32)
    weights[45, 0], weights[47, 1] = 1.0, -1.0  # walks along goal_direction
    model = linear(tmp_path / "straight.onnx", weights.tolist())
    parameters = {"obstacle_count": 0, "goal_max_m": 12}
    with running_scene(SCENE, 0, model=model, parameters=parameters) as (client, process):
        process.wait_for("episodes", lambda: _episodes(client)["episodes"] >= 3, 60.0)
        played = _episodes(client)
        assert played["successes"] == played["episodes"]
        assert client.get_status()["trainer"] == "none"
        client.request("POST", "/rl/reset", {"seed": 1})
        assert client.get_status()["trainer"] == "http"


def _episodes(client: GodotAPIClient) -> dict[str, int]:
    return client.get_performance_metrics()["scene"]


def test_serving_a_scene(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["spacetime", "run", "--model", "missing.onnx"]) == 2
    config = tmp_path / "config.json"
    RLConfig.preset("comfort_optimized").to_json(config)
    words = ["--seconds", "0.1", "--task", "maze", "--config", str(config)]
    assert main(["spacetime", "run", "--port", "0", *words]) == 0
    said = capsys.readouterr().out
    assert "serves res://scenes/features/vr_locomotion_test.tscn" in said
    assert "API_TOKEN=" in said
