"""Games that die or hang are started again, within a budget; nothing outlives the environment."""

import gc
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.envs import GodotEnv, GodotMultiAgentEnv, GodotParallelEnv
from estragon.envs.sb3_env import GodotVecEnv
from estragon.godot.process import GodotError
from tests.envs.peers.counter import seed_of
from tests.envs.staging import assert_gone, is_running, pids

STILL = np.zeros((4, 2), np.float32)
TWO: dict[str, Any] = {"n_parallel": 2, "key": "obs"}


def test_a_killed_game_ends_its_agents_episodes_and_goes_on(new_game: Path) -> None:
    with closing(GodotEnv(new_game, seed=5, **TWO)) as env:
        env.reset()
        env.step(STILL)
        os.kill(pids(env)[1], signal.SIGKILL)
        observations, rewards, terminated, truncated, infos = env.step(STILL)
        assert truncated.tolist() == [False, False, True, True]
        assert not terminated.any()
        assert rewards.tolist() == [2, 102, 0, 0]
        assert "SIGKILL" in infos["final_info"]["game_lost"][2]
        assert infos["final_info"]["final_obs_missing"][3]
        assert infos["final_obs"][3][:2].tolist() == [1, 1], "what was seen one step before"
        assert observations[:, 1].tolist() == [2, 2, 0, 0]
        assert infos["seed"][2] == seed_of(5 + 1 + 2, 0, 0), "other episodes than before"
        observations, rewards, _, truncated, _ = env.step(STILL)
        assert rewards.tolist() == [3, 103, 1, 101]
        assert not truncated.any()
        assert env.restarts == 1
    assert_gone(pids(env))


@pytest.mark.parametrize("which", ["old", "new"])
def test_killed_again_and_again_within_the_budget(
    new_game: Path, old_game: Path, which: str
) -> None:
    rng = np.random.default_rng(1)
    path = new_game if which == "new" else old_game
    seen: set[int] = set()
    with closing(GodotEnv(path, restarts=5, **TWO)) as env:
        env.reset()
        cut = 0
        for step in range(15):
            seen |= set(pids(env))
            if step % 3 == 2:
                os.kill(pids(env)[rng.integers(2)], signal.SIGKILL)
            *_, infos = env.step(STILL)
            lost = infos.get("final_info", {}).get("_game_lost")
            cut += 0 if lost is None else int(lost.sum())
        seen |= set(pids(env))
        assert env.restarts == 5
        assert cut == 10
        assert len(seen) == 7
        os.kill(pids(env)[0], signal.SIGKILL)
        with pytest.raises(GodotError, match="given up after 5 restarts within 300 s"):
            env.step(STILL)
    assert_gone(list(seen))


def test_a_hung_game_is_started_again(new_game: Path) -> None:
    with closing(GodotEnv(new_game, step_timeout_sec=1.0, **TWO)) as env:
        env.reset()
        hung = pids(env)[0]
        os.kill(hung, signal.SIGSTOP)
        _, _, _, truncated, infos = env.step(STILL)
        assert truncated.tolist() == [True, True, False, False]
        assert "after 1 s" in infos["final_info"]["game_lost"][0]
        assert_gone([hung])


def test_a_game_killed_before_a_reset(new_game: Path) -> None:
    with closing(GodotEnv(new_game, **TWO)) as env:
        env.reset()
        os.kill(pids(env)[0], signal.SIGKILL)
        observations, _ = env.reset(seed=2)
        assert observations[:, 1].tolist() == [0, 0, 0, 0]
        assert env.restarts == 1


def test_sb3_hears_of_it(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game, **TWO)) as env:
        env.reset()
        os.kill(pids(env)[0], signal.SIGKILL)
        _, _, dones, infos = env.step(STILL)
        assert dones.tolist() == [True, True, False, False]
        assert infos[0]["TimeLimit.truncated"]
        assert infos[1]["terminal_observation_missing"]
        assert "SIGKILL" in infos[1]["game_lost"]


def test_pettingzoo_and_rllib_hear_of_it(new_game: Path) -> None:
    with closing(GodotParallelEnv(new_game)) as env:
        env.reset()
        os.kill(pids(env)[0], signal.SIGKILL)
        still = np.zeros(2, np.float32)
        _, _, _, truncated, infos = env.step(dict.fromkeys(env.agents, still))
        assert truncated == {"policy0:0": True, "policy1:1": True}
        assert "SIGKILL" in infos["policy0:0"]["game_lost"]
        assert env.agents == []
        env.reset()
        assert env.agents == ["policy0:0", "policy1:1"]
        env.step(dict.fromkeys(env.agents, still))
    with closing(GodotMultiAgentEnv({"env_path": new_game})) as other:
        other.reset()
        os.kill(pids(other)[0], signal.SIGKILL)
        _, _, terminated, truncated, _ = other.step(dict.fromkeys(other.agents, still))
        assert truncated["__all__"]
        assert not terminated["__all__"]


def test_nothing_is_left_when_it_is_forgotten(new_game: Path) -> None:
    env: GodotParallelEnv | None = GodotParallelEnv(new_game)
    numbers = pids(env)
    assert all(map(is_running, numbers))
    env = None
    gc.collect()
    assert_gone(numbers)


@pytest.mark.parametrize("end", ["exception", "interrupt", "kill"])
def test_nothing_outlives_the_trainer(new_game: Path, end: str) -> None:
    script = f"""
import signal, time
from estragon.envs import GodotEnv
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in jobs of the background
env = GodotEnv({str(new_game)!r}, n_parallel=2)
env.reset()
print(*(game.process.pid for game in env._pool.games), flush=True)
if {end!r} == "exception":
    raise RuntimeError("oh")
time.sleep(600)
"""
    trainer = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    numbers = [int(word) for word in trainer.stdout.readline().split()]
    assert len(numbers) == 2
    if end in ("interrupt", "kill"):
        trainer.send_signal(signal.SIGINT if end == "interrupt" else signal.SIGKILL)
    trainer.communicate(timeout=60)  # a busy machine takes long to end two games
    assert_gone(numbers)


def test_a_fork_of_the_trainer_leaves_its_games_alone(new_game: Path) -> None:
    script = f"""
import os, sys
from estragon.envs import GodotEnv
env = GodotEnv({str(new_game)!r})
env.reset()
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
env.step(env.action_space.sample())
assert env.restarts == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_nothing_is_left_of_a_start_that_failed(new_game: Path, tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.write_text(
        f'#!/bin/sh\necho $$ >> "{tmp_path}/pids"\n'
        f'case "$*" in *env_seed=1*) sleep 30;; *) exec "{new_game}" "$@";; esac\n'
    )
    half.chmod(0o755)
    with pytest.raises(GodotError, match="after 2 s"):
        GodotEnv(half, n_parallel=2, start_timeout_sec=2.0)
    numbers = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(numbers) == 2
    assert_gone(numbers)
