"""One game as an RLlib MultiAgentEnv, by RLlib's own check and by training."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

import estragon.godot
from estragon import envs
from estragon.envs import GodotMultiAgentEnv, policy_of
from tests.envs.peers.counter import seed_of
from tests.envs.staging import Expected, flat

SEED = 7
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_every_number_is_as_it_must_be(new_game: Path, old_game: Path, old: bool) -> None:
    config = {"env_path": old_game if old else new_game, "seed": SEED, "key": "obs"}
    with closing(GodotMultiAgentEnv(config)) as env:
        names = ["policy0:0", "policy1:1"]
        assert env.possible_agents == env.agents == names
        assert set(env.observation_spaces or {}) == set(names)
        expected = {name: Expected(i, SEED, old=old) for i, name in enumerate(names)}
        seen, infos = env.reset()
        assert seen["policy1:1"].tolist() == expected["policy1:1"].sees()
        assert infos["policy0:0"].get("seed") == (None if old else seed_of(SEED, 0, 0))
        for count in range(1, 5):
            actions = {name: env.get_action_space(name).sample() for name in env.agents}
            right = {name: expected[name].step(flat(actions[name])) for name in env.agents}
            seen, rewards, terminated, truncated, _ = env.step(actions)
            for name, each in right.items():
                assert rewards[name] == each["reward"]
                assert terminated[name] == each["terminated"]
                assert truncated[name] == each["truncated"]
                shown = each["next"] if each["last"] is None else each["last"]
                assert np.allclose(seen[name], shown, atol=1e-5)
            assert (terminated["__all__"] or truncated["__all__"]) == (count == 4)


def test_all_environments_are_public_under_both_packages() -> None:
    for name in envs.__all__:
        assert getattr(estragon.godot, name) is getattr(envs, name)


def test_the_check_of_rllib(new_game: Path) -> None:
    with closing(GodotMultiAgentEnv({"env_path": new_game, "key": "obs"})) as env:
        check_multiagent_environments(env)


@pytest.mark.prove
def test_ppo_trains_two_policies(new_game: Path) -> None:
    arguments: dict[str, Any] = {"kind": "discrete", "agents": 4}
    config = (
        PPOConfig()
        .environment(
            GodotMultiAgentEnv,
            env_config={"env_path": str(new_game), "key": "obs", "arguments": arguments},
        )
        .env_runners(num_env_runners=0, rollout_fragment_length=64)
        .multi_agent(policies={"policy0", "policy1"}, policy_mapping_fn=policy_of)
        .training(train_batch_size=64, minibatch_size=32, num_epochs=1)
    )
    algorithm = config.build_algo()
    try:
        result = algorithm.train()
        assert set(result["learners"]) >= {"policy0", "policy1"}
        returns = result["env_runners"]["agent_episode_returns_mean"]
        assert returns["policy0:0"] == 1 + 2 + 3
        assert returns["policy1:1"] == 4 * 100 + 1 + 2 + 3 + 4
    finally:
        algorithm.stop()
        ray.shutdown()
