"""Calculated rewards and the id of the task, around games that are made up."""

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from estragon.spacetime.observation import SIZE, SLICES
from estragon.spacetime.rewards import RewardCalculator
from estragon.spacetime.vec_rewards import NavigationRewards
from estragon.support.errors import UserError

TASKS = ["goals", "maze"]


class Walkers(VecEnv):
    """Two agents that come a metre closer with every step; the first arrives in the third."""

    def __init__(self, size: int = SIZE) -> None:
        seen = spaces.Dict({"obs": spaces.Box(-100.0, 100.0, (size,), np.float32)})
        super().__init__(2, seen, spaces.Box(-1.0, 1.0, (3,), np.float32))
        self._distances = np.array([3.0, 9.0])
        self.reset_infos = [{"parameters": {"task": task}} for task in TASKS]

    def reset(self) -> Any:
        return {"obs": self._see()}

    def step_async(self, actions: np.ndarray) -> None:
        self._distances -= 1.0

    def step_wait(self) -> Any:
        infos: list[dict[str, Any]] = [{}, {}]
        dones = self._distances < 1.0
        if dones[0]:
            infos[0] = {"goal_reached": True, "terminal_observation": {"obs": self._see()[0]}}
            self._distances[0] = 5.0
            self.reset_infos[0] = {"parameters": {"task": "maze"}}
        return {"obs": self._see()}, np.full(2, 7.0, np.float32), dones, infos

    def _see(self) -> np.ndarray:
        seen = np.zeros((2, SIZE), np.float32)
        seen[:, SLICES["camera_rotation"]] = (0.0, 0.0, 0.0, 1.0)
        seen[:, SLICES["goal_distance"]] = self._distances[:, None]
        return seen

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None, None]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        pass

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> list[Any]:
        return []

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False, False]


def test_rewards_of_every_agent_and_the_sum_of_their_terms() -> None:
    env = NavigationRewards(Walkers(), RewardCalculator)
    env.reset()
    still = np.zeros((2, 3))
    for _ in range(2):
        _, rewards, dones, _ = env.step(still)
        assert rewards == pytest.approx([3.1, 3.1])
        assert not dones.any()
    _, rewards, dones, infos = env.step(still)
    assert dones.tolist() == [True, False]
    assert rewards == pytest.approx([103.1, 3.1])
    assert infos[0]["reward_goal_reached"] == 100.0
    assert infos[0]["reward_progress"] == pytest.approx(3.0)
    assert env.calculators[0].nearest == 5.0  # of the next episode
    assert env.step(still)[1] == pytest.approx([3.1, 3.1])


def test_the_task_is_observed() -> None:
    env = NavigationRewards(Walkers(), None, TASKS)
    first: Any = env.reset()
    assert first["task"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    still = np.zeros((2, 3))
    for _ in range(2):
        env.step(still)
    seen: Any
    seen, rewards, _, infos = env.step(still)
    assert rewards.tolist() == [7.0, 7.0]
    assert infos[0]["terminal_observation"]["task"].tolist() == [1.0, 0.0]
    assert seen["task"].tolist() == [[0.0, 1.0], [0.0, 1.0]]
    assert env.observation_space["task"].shape == (2,)  # type: ignore[index]


def test_other_scenes_are_refused() -> None:
    with pytest.raises(UserError, match="expected a scene whose agents observe 48 numbers"):
        NavigationRewards(Walkers(12), RewardCalculator)
