"""All agents of all games as an SB3 VecEnv, with every number known in advance."""

from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from estragon.envs.sb3_env import GodotVecEnv
from estragon.support.errors import UserError
from tests.envs.peers.counter import seed_of
from tests.envs.staging import Expected, flat

SEED = 7
pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_every_number_is_as_it_must_be(new_game: Path, old_game: Path, old: bool) -> None:
    path = old_game if old else new_game
    options: dict[str, Any] = {"n_parallel": 2, "seed": SEED, "arguments": {"agents": 2}}
    with closing(GodotVecEnv(path, key="obs", **options)) as env:
        expected = [Expected(i % 2, SEED + i // 2, old=old) for i in range(4)]
        assert env.reset().tolist() == [each.sees() for each in expected]
        env.action_space.seed(5)
        for _ in range(13):
            actions = np.stack([env.action_space.sample() for _ in range(4)])
            right = [each.step(flat(actions[i])) for i, each in enumerate(expected)]
            seen, rewards, dones, infos = env.step(actions)
            assert rewards.tolist() == [each["reward"] for each in right]
            assert dones.tolist() == [each["last"] is not None for each in right]
            assert isinstance(seen, np.ndarray)
            assert np.allclose(seen, [each["next"] for each in right], atol=1e-5)
            for seat, each in enumerate(right):
                assert ("terminal_observation" in infos[seat]) == dones[seat]
                if dones[seat]:
                    last = infos[seat]["terminal_observation"]
                    assert np.allclose(last, each["last"], atol=1e-5)
                    assert infos[seat]["TimeLimit.truncated"] == each["truncated"]
                    assert infos[seat].get("terminal_observation_missing", False) == old
                    assert env.reset_infos[seat] == ({} if old else {"seed": each["seed"]})


def test_infos_are_everybodys_own(old_game: Path) -> None:
    """One game tells infos and the other none: nobody's info is somebody else's."""
    game = old_game.with_name("half")
    game.write_text(
        f'#!/bin/sh\ncase "$*" in *env_seed=1*) set -- "$@" --form=single;; esac\n'
        f'exec "{old_game}" "$@"\n'
    )
    game.chmod(0o755)
    with closing(GodotVecEnv(game, n_parallel=2, key="obs")) as env:
        env.reset()
        for _ in range(3):
            _, _, dones, infos = env.step(np.zeros((4, 2), np.float32))
        assert dones.tolist() == [True, False, True, False]
        told = ["terminal_observation" in info for info in infos]
        assert told == dones.tolist()


def test_seed_is_for_the_next_reset(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game, key="obs")) as env:
        env.seed(5)
        first = env.reset()
        assert env.reset_infos[1]["seed"] == seed_of(5, 1, 0)
        following = env.reset()
        env.seed(5)
        assert np.array_equal(env.reset(), first)
        assert not np.array_equal(first, following)


def test_mixed_actions_are_segments_of_one_box(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game, key="obs", arguments={"kind": "mixed"})) as env:
        assert env.action_space == spaces.Box(-1, 1, (7,), np.float32)
        env.reset()
        # turn: 3 numbers, move: 2, jump: 2
        first = [0.1, 0.2, 0.9, 0.5, -0.5, -0.1, -0.2]
        second = [0.3, 0.2, 0.1, -1.0, 1.0, 0.0, 0.4]
        seen, _, _, _ = env.step(np.array([first, second], np.float32))
        assert isinstance(seen, np.ndarray)
        assert np.allclose(seen[:, 4], [2 + 2 * 0.5 - 3 * 0.5 + 0, 0 - 2 + 3 + 4 * 1])


def test_masks_reach_maskable_ppo(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game, key="obs", arguments={"kind": "masked"})) as env:
        env.reset()
        assert is_masking_supported(env)
        assert get_action_masks(env).tolist() == [[False, True, True, True]] * 2
        model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=1)
        model.learn(32)
        allowed = get_action_masks(env)
        actions, _ = model.predict(np.zeros((2, 5), np.float32), action_masks=allowed)
        assert allowed[[0, 1], actions].all()
    with closing(GodotVecEnv(new_game, arguments={"kind": "discrete"})) as env:
        assert not is_masking_supported(env)


@pytest.mark.parametrize("kind", ["mixed", "image"])
def test_ppo_trains(new_game: Path, kind: str) -> None:
    options: dict[str, Any] = {"n_parallel": 2, "arguments": {"kind": kind}}
    with closing(GodotVecEnv(new_game, **options)) as games:
        env = VecMonitor(games)
        model = PPO("MultiInputPolicy", env, n_steps=8, batch_size=32, n_epochs=1, seed=1)
        model.learn(32)
        assert len(model.ep_info_buffer or []) > 3
        assert {info["l"] for info in model.ep_info_buffer or []} == {3, 4}


def test_ppo_trains_on_an_old_game(old_game: Path) -> None:
    with closing(GodotVecEnv(old_game, arguments={"form": "single"})) as env:
        PPO("MultiInputPolicy", env, n_steps=8, batch_size=16, n_epochs=1).learn(32)


def test_methods_and_attributes(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game)) as env:
        env.reset()
        assert env.env_method("wave", indices=[1]) == ["wave of 1"]
        assert env.get_attr("encoding") == ["binary1", "binary1"]
        assert env.env_is_wrapped(gymnasium.Wrapper) == [False, False]
        with pytest.raises(AttributeError):
            env.get_attr("moon")
        with pytest.raises(UserError, match="arguments="):
            env.set_attr("gravity", 0)
