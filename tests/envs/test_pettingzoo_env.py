"""One game as a PettingZoo ParallelEnv: agents by name, who come and go."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from estragon.envs import GodotParallelEnv, policy_of
from estragon.support.errors import UserError
from tests.envs.peers.counter import seed_of
from tests.envs.staging import Expected, flat

SEED = 7


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_every_number_is_as_it_must_be(new_game: Path, old_game: Path, old: bool) -> None:
    path = old_game if old else new_game
    with closing(GodotParallelEnv(path, seed=SEED, arguments={"agents": 3})) as env:
        names = ["policy0:0", "policy1:1", "policy0:2"]
        assert env.possible_agents == names
        expected = {name: Expected(i, SEED, old=old) for i, name in enumerate(names)}
        seen, infos = env.reset()
        assert env.agents == names
        assert {name: each["obs"].tolist() for name, each in seen.items()} == {
            name: each.sees() for name, each in expected.items()
        }
        if not old:
            assert infos["policy1:1"]["seed"] == seed_of(SEED, 1, 0)
        alive = list(names)
        for count in range(1, 6):
            actions = {name: env.action_space(name).sample() for name in env.agents}
            right = {name: expected[name].step(flat(actions[name])) for name in alive}
            seen, rewards, terminated, truncated, infos = env.step(actions)
            assert list(seen) == list(rewards) == list(infos) == alive
            for name, each in right.items():
                assert rewards[name] == each["reward"]
                assert terminated[name] == each["terminated"]
                assert truncated[name] == each["truncated"]
                shown = each["next"] if each["last"] is None else each["last"]
                assert np.allclose(seen[name]["obs"], shown, atol=1e-5)
                missing = old and each["last"] is not None
                assert infos[name].get("final_obs_missing", False) == missing
            alive = [name for name in alive if right[name]["last"] is None]
            assert env.agents == alive, count
        assert env.agents == []
        assert env.step({}) == ({}, {}, {}, {}, {})
        env.reset()
        assert env.agents == names


@pytest.mark.parametrize("kind", ["mixed", "image", "masked"])
def test_the_parallel_api(new_game: Path, kind: str) -> None:
    with closing(GodotParallelEnv(new_game, arguments={"agents": 3, "kind": kind})) as env:
        parallel_api_test(env, num_cycles=20)


def test_the_parallel_api_of_an_old_game(old_game: Path) -> None:
    with closing(GodotParallelEnv(old_game, arguments={"form": "single"})) as env:
        assert env.possible_agents == ["shared_policy:0", "shared_policy:1"]
        parallel_api_test(env, num_cycles=20)


def test_agents_leave_and_join(new_game: Path) -> None:
    arguments = {"agents": 2, "leave": 1, "join": 2}
    with closing(GodotParallelEnv(new_game, key="obs", arguments=arguments)) as env:
        env.reset(seed=3)
        still = np.zeros(2, np.float32)
        seen, rewards, _, truncated, infos = env.step(dict.fromkeys(env.agents, still))
        assert truncated == {"policy0:0": True, "policy1:1": False}
        assert infos["policy0:0"]["agent_left"]
        assert seen["policy0:0"][:2].tolist() == [0, 1]
        assert env.agents == ["policy1:1"]
        seen, rewards, _, _, infos = env.step(dict.fromkeys(env.agents, still))
        assert env.agents == ["policy1:1", "policy0:2"]
        assert env.possible_agents == ["policy0:0", "policy1:1", "policy0:2"]
        assert seen["policy0:2"][:3].tolist() == [2, 0, 0]
        assert rewards["policy0:2"] == 0
        assert infos["policy0:2"]["seed"] == seed_of(3, 2, 0)
        actions = {"policy1:1": still, "policy0:2": np.ones(2, np.float32)}
        seen, rewards, _, _, _ = env.step(actions)
        assert rewards == {"policy1:1": 103, "policy0:2": 201}
        assert seen["policy0:2"][4] == 3
        env.reset()
        assert env.agents == ["policy1:1", "policy0:2"]


def test_an_action_for_everybody_is_needed(new_game: Path) -> None:
    with closing(GodotParallelEnv(new_game)) as env:
        env.reset()
        with pytest.raises(UserError, match="no action for policy1:1"):
            env.step({"policy0:0": np.zeros(2)})


def test_the_policy_is_in_the_name() -> None:
    assert policy_of("a:b:17") == "a:b"
    assert policy_of("shared_policy:0", None, worker=1) == "shared_policy"


def test_one_game_only(new_game: Path) -> None:
    with pytest.raises(UserError, match="n_parallel"):
        GodotParallelEnv(new_game, n_parallel=2)
