"""Every face on a real Godot with our addon in it, in a game in which everything is known.

The counter game counts its ticks, four to an action, earns one a tick, and after ten ticks has ten
more and begins anew. `LIFE` is what that comes to.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

from benchmarks._incumbent import NEWEST_PYTHON, incumbent_python
from estragon.envs import GodotEnv, GodotMultiAgentEnv, GodotParallelEnv, GodotSingleEnv
from estragon.envs.sb3_env import GodotVecEnv
from estragon.godot.project import import_project
from estragon.support import paths
from estragon.support.errors import UserError
from tests.envs.exporting import can_export, environment, kept_game
from tests.envs.peers.counter import seed_of
from tests.envs.staging import assert_gone, free_port, is_running, pids
from tests.prove import Recorder

SEED = 5
LIFE = [(4, 4, False), (4, 8, False), (12, 2, True), (6, 6, False), (14, 0, True), (4, 4, False)]
"""Reward, count that is seen, and whether an episode ended, of the first six actions."""
ARGUMENTS = {"agents": 2, "lifetime": 10}
MARBLE = "res://examples/marble/marble.tscn"
ORCHARD = "res://examples/orchard/orchard.tscn"
pytestmark = pytest.mark.slow


def moves(count: int) -> dict[str, np.ndarray]:
    return {"push": np.full((count, 2), 0.25, np.float32), "choice": np.full(count, 2)}


MOVE = {"push": np.full(2, 0.25, np.float32), "choice": 2}


def seeds(seen: np.ndarray) -> list[int]:
    """The seeds that agents see."""
    low_high = seen.reshape(-1, 2, 2)[:, 1].astype(np.int64)
    return [int(low | high << 16) for low, high in low_high]


def test_the_vector_env_is_right_to_the_step(counter: Path) -> None:
    options: dict[str, Any] = {"seed": SEED, "n_parallel": 2, "arguments": ARGUMENTS}
    with closing(GodotEnv(counter, **options)) as env:
        assert env.encoding == "binary1"
        observes: Any = env.single_observation_space
        acts: Any = env.single_action_space
        assert (list(observes), list(acts)) == (["zeta", "alpha"], ["push", "choice"])
        episode = 0
        seen, infos = env.reset()
        for reward, count, ended in LIFE:
            expected = [seed_of(SEED + i // 2, i % 2, episode) for i in range(4)]
            assert seeds(seen["alpha"]) == expected
            assert infos.get("seed", np.array(expected)).tolist() == expected
            seen, rewards, terminated, truncated, infos = env.step(moves(4))
            assert rewards.tolist() == [reward] * 4
            assert seen["zeta"][:, 1].tolist() == [count] * 4
            assert terminated.tolist() == [ended] * 4
            assert not truncated.any()
            assert ("final_obs" in infos) == ended
            if ended:
                for seat, last in enumerate(infos["final_obs"]):
                    assert last["zeta"].tolist() == [seat % 2, 10, 2]
                    assert seeds(last["alpha"]) == [expected[seat]]
                episode += 1
        ages = env.call("tell_age")
        assert len(ages) == 4
        assert set(ages) == {ages[0]}
        seen, infos = env.reset(seed=9)
        assert infos["seed"].tolist() == [seed_of(9 + i // 2, i % 2, 0) for i in range(4)]


def test_time_limits_truncate(counter: Path) -> None:
    with closing(GodotEnv(counter, arguments={"limit": 5})) as env:
        env.reset()
        rows = [env.step(moves(1)) for _ in range(4)]
        assert [bool(truncated[0]) for _, _, _, truncated, _ in rows] == [False, True, True, False]
        assert [rewards[0] for _, rewards, *_ in rows] == [4, 1, 5, 4]
        assert not any(terminated[0] for _, _, terminated, _, _ in rows)
        assert [rows[i][4]["final_obs"][0]["zeta"][1] for i in (1, 2)] == [5, 5]


def test_sb3_is_right_to_the_step(counter: Path) -> None:
    with closing(GodotVecEnv(counter, seed=SEED, arguments=ARGUMENTS)) as env:
        env.reset()
        action = np.tile(np.array([0.25, 0.25, 0.0, 0.1, 0.9], np.float32), (2, 1))
        episode = 0
        for reward, count, ended in LIFE:
            seen, rewards, dones, infos = env.step(action)
            assert isinstance(seen, dict)
            assert rewards.tolist() == [reward] * 2
            assert seen["zeta"].tolist() == [[0, count, 2], [1, count, 2]]
            assert dones.tolist() == [ended] * 2
            if ended:
                episode += 1
                assert infos[1]["terminal_observation"]["zeta"].tolist() == [1, 10, 2]
                assert not infos[1]["TimeLimit.truncated"]
                assert env.reset_infos[1]["seed"] == seed_of(SEED, 1, episode)


@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_and_rllib_are_right_to_the_step(counter: Path) -> None:
    config = {"env_path": counter, "seed": SEED, "arguments": ARGUMENTS}
    with (
        closing(GodotParallelEnv(counter, seed=SEED, arguments=ARGUMENTS)) as parallel,
        closing(GodotMultiAgentEnv(config)) as multi,
    ):
        for env in (parallel, multi):
            names = ["shared_policy:0", "shared_policy:1"]
            _, infos = env.reset()
            assert infos[names[1]]["seed"] == seed_of(SEED, 1, 0)
            for reward, count, ended in LIFE[:3]:
                assert env.agents == names
                seen, rewards, terminated, truncated, _ = env.step(dict.fromkeys(names, MOVE))
                assert [rewards[name] for name in names] == [reward] * 2
                shown = 10 if ended else count
                assert [seen[name]["zeta"][1] for name in names] == [shown] * 2
                assert [terminated[name] for name in names] == [ended] * 2
                assert not any(truncated.values())
            assert env.agents == []


def test_the_parallel_api(counter: Path) -> None:
    arguments = {"agents": 3, "lifetime": 10, "masks": 1, "policies": 1}
    with closing(GodotParallelEnv(counter, arguments=arguments)) as env:
        assert env.possible_agents == ["policy0:0", "policy1:1", "policy2:2"]
        parallel_api_test(env, num_cycles=20)


def test_agents_leave_and_join(counter: Path) -> None:
    arguments = {"agents": 2, "leave": 10, "join": 18}
    with closing(GodotEnv(counter, arguments=arguments)) as env:
        env.reset()
        history = [env.step(moves(2)) for _ in range(6)]
        left = [step for step, (*_, truncated, _) in enumerate(history) if truncated[0]]
        empty = [bool(infos.get("empty", [False])[0]) for *_, infos in history]
        assert len(left) == 1
        assert history[left[0]][4]["final_info"]["agent_left"][0]
        assert empty[left[0]]
        assert not empty[-1]
        assert history[-1][0]["zeta"][:, 0].tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:.*A Box observation space m..imum value is -?infinity")
def test_one_agent_passes_the_checks(godot: Path) -> None:
    project = paths.godot_project()
    with closing(GodotSingleEnv(project, scene=ORCHARD, arguments={"copies": 1})) as env:
        check_env(env, skip_render_check=True)
        check_env_of_sb3(env, skip_render_check=True)


def test_a_scene_that_is_not_there(godot: Path) -> None:
    with pytest.raises(UserError, match=r"marble\.tscn"):
        GodotEnv(paths.godot_project(), scene="res://examples/marble/marbles.tscn")


@pytest.fixture(scope="module")
def exported(counter: Path) -> Iterator[Path]:
    """A folder with the counter game as a program, and its pack beside it."""
    if not can_export():
        pytest.skip("needs the private copy of Godot from Debian's packages")
    folder = kept_game("counter game", counter, embed_pack=False).parent
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            patch.setenv(name, value)
        yield folder


@pytest.mark.parametrize("ending", ["pck", "x86_64"])
def test_exported_games(exported: Path, ending: str) -> None:
    game = exported / f"counter game.{ending}"
    with closing(GodotEnv(game, n_parallel=2, seed=SEED, arguments=ARGUMENTS)) as env:
        env.reset()
        for reward, count, ended in LIFE:
            seen, rewards, terminated, _, _ = env.step(moves(4))
            assert rewards.tolist() == [reward] * 4
            assert seen["zeta"][:, 1].tolist() == [count] * 4
            assert terminated.tolist() == [ended] * 4


def kill_at_random(env: Any, kills: int, rng: np.random.Generator) -> set[int]:
    """Step on while games are killed; returns every process there was."""
    everybody = set(pids(env))
    for _ in range(kills):
        for _ in range(int(rng.integers(1, 30))):
            env.step(moves(env.num_envs))
        os.kill(pids(env)[rng.integers(len(pids(env)))], signal.SIGKILL)
        *_, truncated, infos = env.step(moves(env.num_envs))
        assert truncated.sum() == env.num_envs / 2
        assert infos["final_info"]["_game_lost"].tolist() == truncated.tolist()
        everybody |= set(pids(env))
    env.step(moves(env.num_envs))
    return everybody


def test_killed_games_begin_again(counter: Path) -> None:
    options: dict[str, Any] = {"n_parallel": 2, "restarts": 2, "arguments": {"agents": 4}}
    with closing(GodotEnv(counter, **options)) as env:
        env.reset()
        everybody = kill_at_random(env, 2, np.random.default_rng(1))
        assert len(everybody) == 4
        assert sum(map(is_running, everybody)) == 2
    assert_gone(list(everybody))


class Killer(threading.Thread):
    """Kills one of the games at random times, each time after the last one is back."""

    def __init__(self, env: GodotVecEnv, kills: int) -> None:
        super().__init__(daemon=True)
        self.env, self.kills = env, kills
        self.killed: list[int] = []

    def run(self) -> None:
        rng = np.random.default_rng(20)
        while len(self.killed) < self.kills:
            time.sleep(rng.uniform(0.2, 3.0))
            victim = pids(self.env)[rng.integers(len(pids(self.env)))]
            os.kill(victim, signal.SIGKILL)
            self.killed.append(victim)
            while victim in pids(self.env):
                time.sleep(0.05)


@pytest.mark.prove
def test_killed_twenty_times_and_training_goes_on(counter: Path, record_result: Recorder) -> None:
    options: dict[str, Any] = {"n_parallel": 2, "restarts": 20, "arguments": {"agents": 8}}
    with closing(GodotVecEnv(counter, **options)) as env:
        model = PPO("MultiInputPolicy", env, n_steps=32, batch_size=128, n_epochs=2, seed=1)
        killer = Killer(env, 20)
        killer.start()
        while killer.is_alive():
            model.learn(2048, reset_num_timesteps=False)
        model.learn(2048, reset_num_timesteps=False)
        everybody = {*killer.killed, *pids(env)}
        restarts, steps = env.restarts, model.num_timesteps
    assert_gone(list(everybody))
    text = f"{restarts} restarts during {steps:,} agent-steps of PPO, no orphan"
    held = restarts == 20
    record_result("a Godot game killed 20 times at random", text, held=held)
    assert held, text


def test_a_hung_game_is_ended_and_begins_again(counter: Path) -> None:
    options: dict[str, Any] = {"step_timeout_sec": 1.0, "arguments": ARGUMENTS}
    with closing(GodotEnv(counter, **options)) as env:
        env.reset()
        hung = pids(env)[0]
        os.kill(hung, signal.SIGSTOP)
        *_, truncated, infos = env.step(moves(2))
        assert truncated.all()
        assert "after 1 s" in infos["final_info"]["game_lost"][0]
        assert_gone([hung])
        assert env.step(moves(2))[1].tolist() == [4, 4]


INCUMBENT = """
import sys
from godot_rl.wrappers.stable_baselines_wrapper import StableBaselinesGodotEnv
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env.vec_monitor import VecMonitor

game, port = sys.argv[1:]
env = StableBaselinesGodotEnv(env_path=game, port=int(port), speedup=8, framerate=60, copies=4)
env = VecMonitor(env)
model = PPO("MultiInputPolicy", env, n_steps=64, batch_size=64, n_epochs=1)
model.learn(256)
print(len(model.ep_info_buffer), "episodes", env.num_envs, "agents")
env.close()
"""


@pytest.mark.skipif(sys.version_info[:2] > NEWEST_PYTHON, reason="its numpy is too old for this")
@pytest.mark.parametrize(
    "scene",
    [pytest.param(MARBLE, marks=pytest.mark.prove), ORCHARD],
    ids=["marble", "orchard"],
)
def test_the_client_of_godot_rl_agents_trains(godot: Path, tmp_path: Path, scene: str) -> None:
    """godot-rl 0.8.2 and SB3, both of their own time, against our addon."""
    game = tmp_path / "game.x86_64"
    project = import_project(paths.godot_project(), godot=godot)
    game.write_text(f'#!/bin/sh\nexec "{godot}" --path "{project}" "{scene}" "$@"\n')
    game.chmod(0o755)
    words = [str(incumbent_python()), "-c", INCUMBENT, str(game), str(free_port())]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "episodes 4 agents" in done.stdout, done.stdout
