"""Rewards of a `RewardCalculator` over the games' own, for Stable-Baselines3."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from estragon.spacetime.observation import SIZE
from estragon.spacetime.rewards import RewardCalculator
from estragon.support.errors import UserError

OBS, TASK = "obs", "task"


class NavigationRewards(VecEnvWrapper):
    """Every agent's reward is calculated here.

    The info of an episode's last step gets `comfort`, the mean comfort score of its steps, and the
    sum of every term as `reward_NAME`.

    Args:
        venv: games whose agents observe the 48 numbers as `obs`.
        calculator: the rewards.
        tasks: if given, an observation `task` says which of them is played, one number per task.
    """

    def __init__(
        self, venv: VecEnv, calculator: RewardCalculator, tasks: Sequence[str] | None = None
    ) -> None:
        seen: Any = venv.observation_space
        parts = dict(seen.spaces) if isinstance(seen, spaces.Dict) else {}
        if OBS not in parts or parts[OBS].shape != (SIZE,):
            raise UserError(f"expected a scene whose agents observe {SIZE} numbers, got {seen}")
        self._tasks = list(tasks or ())
        if self._tasks:
            parts[TASK] = spaces.Box(0.0, 1.0, (len(self._tasks),), np.float32)
        super().__init__(venv, spaces.Dict(parts))
        self.calculator = calculator
        self._played = np.zeros((self.num_envs, len(self._tasks)), np.float32)
        self._last = np.zeros((self.num_envs, SIZE), np.float32)
        self._actions = np.zeros(0)
        self._sums: list[dict[str, float]] = [{} for _ in range(self.num_envs)]
        self._comfort = np.zeros(self.num_envs)
        self._steps = np.zeros(self.num_envs, int)

    def reset(self) -> Any:
        """Start new episodes."""
        observations: Any = self.venv.reset()
        self._last = observations[OBS]
        for agent in range(self.num_envs):
            self._begin(agent)
        return self._with_task(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Send the actions of all agents."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Receive the result of the step, with calculated rewards."""
        observations: Any
        observations, rewards, dones, infos = self.venv.step_wait()
        seen, calculator = observations[OBS], self.calculator
        rewards = np.zeros(self.num_envs, np.float32)
        for agent, info in enumerate(infos):
            done = bool(dones[agent])
            after = info["terminal_observation"][OBS] if done else seen[agent]
            if "game_lost" not in info:
                rewards[agent] = calculator.calculate_reward(
                    self._last[agent], self._actions[agent], after, done, info
                )
                self._note(agent, after)
            if done:
                self._end(agent, info)
        self._last = seen
        return self._with_task(observations), rewards, dones, infos

    def _note(self, agent: int, after: np.ndarray) -> None:
        self._comfort[agent] += self.calculator.comfort_score(after)
        self._steps[agent] += 1
        sums = self._sums[agent]
        for name, value in self.calculator.last_terms.items():
            sums[name] = sums.get(name, 0.0) + value

    def _end(self, agent: int, info: dict[str, Any]) -> None:
        info["comfort"] = float(self._comfort[agent] / max(self._steps[agent], 1))
        info |= {f"reward_{name}": value for name, value in self._sums[agent].items()}
        if self._tasks:
            info["terminal_observation"][TASK] = self._played[agent].copy()
        self._begin(agent)

    def _begin(self, agent: int) -> None:
        self._sums[agent], self._comfort[agent], self._steps[agent] = {}, 0.0, 0
        if self._tasks:
            values = self.venv.reset_infos[agent].get("parameters", {})
            self._played[agent] = [task == values.get("task") for task in self._tasks]

    def _with_task(self, observations: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return observations | {TASK: self._played.copy()} if self._tasks else observations
