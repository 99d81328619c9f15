"""The engine speaks the field's languages: Gymnasium, its vectors, and PettingZoo."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import estragon.envs  # noqa: F401
from estragon.support.errors import UserError
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.gym_env import TagEnv, TagVectorEnv
from estragon.tag.parallel_env import TagParallelEnv
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import load_rules

IDS = ["Estragon/TagSeeker-v0", "Estragon/TagHider-v0"]
MANY = 128


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_is_content(name: str) -> None:
    check_env(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines_checker_is_content(name: str) -> None:
    sb3_check_env(gymnasium.make(name))


@pytest.mark.parametrize("rules", ["seek", "transfer"])
def test_pettingzoos_tests_pass(rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    parallel_api_test(TagParallelEnv(rules=rules), num_cycles=1000)
    parallel_seed_test(lambda: TagParallelEnv(rules=rules), num_cycles=300)
    assert "Passed" in capsys.readouterr().out


def test_an_episode_ends_once_and_says_why() -> None:
    env = TagEnv(role="hider", opponent="bot:chaser", layout="playground")
    reasons = set()
    for episode in range(40):
        env.reset(seed=episode)
        for _ in range(201):
            _, _, terminated, truncated, info = env.step(np.zeros(3, dtype=np.float32))
            assert not truncated
            if terminated:
                break
        assert terminated
        reasons.add(info["terminal_reason"])
        assert info["won"] == (info["terminal_reason"] == "timeout")
        assert info["role"] == "hider"
        assert set(info["reward_terms"]) >= {"distance", "tag", "timeout"}
    assert reasons == {"tag", "timeout"}


def test_a_vector_and_single_environments_play_the_same_first_match() -> None:
    many = TagVectorEnv(MANY, role="seeker", opponent="bot:random")
    seen, _ = many.reset(seed=21)
    single = TagEnv(role="seeker", opponent="bot:random")
    alone, _ = single.reset(seed=21)
    random = np.random.default_rng(0)
    for _ in range(60):
        actions = random.uniform(-1, 1, (MANY, 3)).astype(np.float32)
        assert np.array_equal(seen[0], alone)
        seen, rewards, ended, _, _ = many.step(actions)
        alone, reward, over, _, _ = single.step(actions[0])
        assert rewards[0] == reward
        assert ended[0] == over
        if over:
            break


def test_a_vector_restarts_in_the_same_step_and_keeps_the_last_sight() -> None:
    env = gymnasium.make_vec(IDS[0], num_envs=MANY)
    env.reset(seed=1)
    ends = 0
    time_left = load_rules().field("time_left").start
    for _ in range(220):
        seen, rewards, ended, truncated, info = env.step(env.action_space.sample())
        assert seen.shape == (MANY, 126)
        assert env.observation_space.contains(seen)
        assert not truncated.any()
        assert rewards.dtype == np.float64
        if ended.any():
            assert np.array_equal(info["_final_obs"], ended)
            assert (info["final_obs"][ended, time_left] < 1.0).all()
            assert (seen[ended, time_left] == 1.0).all()
            ends += int(ended.sum())
    assert ends >= MANY


def test_a_frozen_policy_can_be_the_opponent(tmp_path: Any) -> None:
    path = tmp_path / "hider.npz"
    rules = load_rules()
    save_policies(path, {"hider": FrozenPolicy.untrained(rules, "hider", seed=2)}, rules)
    env = TagEnv(role="seeker", opponent=str(path))
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    assert np.array_equal(first, again)
    env.step(np.zeros(3, dtype=np.float32))


def test_without_a_seed_the_next_episode_begins() -> None:
    env = TagEnv()
    first, _ = env.reset(seed=3)
    second, _ = env.reset()
    third, _ = env.reset()
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)
    assert np.array_equal(env.reset(seed=3)[0], first)
    assert np.array_equal(env.reset()[0], second)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"role": "referee"}, "role"),
        ({"opponent": "bot:ninja"}, "no bot"),
        ({"layout": "moon"}, "no layout"),
        ({"rules": "chess"}, "no rule set"),
        ({"num_envs": 0}, "arenas"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        TagVectorEnv(**options)
