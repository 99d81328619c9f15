"""Rewards of a `RewardCalculator` over the games' own, for Stable-Baselines3."""

from collections.abc import Callable, Sequence
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

    The info of an episode's last step gets the sum of every term as `reward_NAME`.

    Args:
        venv: games whose agents observe the 48 numbers as `obs`.
        calculator: makes what calculates an agent's rewards; None: the games' own rewards.
        tasks: if given, an observation `task` says which of them is played, one number per task.
    """

    def __init__(
        self,
        venv: VecEnv,
        calculator: Callable[[], RewardCalculator] | None,
        tasks: Sequence[str] | None = None,
    ) -> None:
        seen: Any = venv.observation_space
        parts = dict(seen.spaces) if isinstance(seen, spaces.Dict) else {}
        if OBS not in parts or parts[OBS].shape != (SIZE,):
            raise UserError(f"expected a scene whose agents observe {SIZE} numbers, got {seen}")
        self._tasks = list(tasks or ())
        if self._tasks:
            parts[TASK] = spaces.Box(0.0, 1.0, (len(self._tasks),), np.float32)
        super().__init__(venv, spaces.Dict(parts))
        self.calculators = [calculator() for _ in range(self.num_envs)] if calculator else []
        self._played = np.zeros((self.num_envs, len(self._tasks)), np.float32)
        self._last = np.zeros((self.num_envs, SIZE), np.float32)
        self._actions = np.zeros(0)
        self._sums: list[dict[str, float]] = [{} for _ in range(self.num_envs)]

    def reset(self) -> Any:
        """Start new episodes."""
        observations: Any = self.venv.reset()
        self._last = observations[OBS]
        for agent in range(self.num_envs):
            self._begin(agent, self._last[agent])
        return self._with_task(observations)

    def step_async(self, actions: np.ndarray) -> None:
        """Send the actions of all agents."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> Any:
        """Receive the result of the step, with calculated rewards."""
        observations: Any
        observations, rewards, dones, infos = self.venv.step_wait()
        seen = observations[OBS]
        if self.calculators:
            rewards = np.zeros(self.num_envs, np.float32)
            for agent, info in enumerate(infos):
                done = bool(dones[agent])
                after = info["terminal_observation"][OBS] if done else seen[agent]
                if "game_lost" not in info:
                    calculator = self.calculators[agent]
                    rewards[agent] = calculator.calculate_reward(
                        self._last[agent], self._actions[agent], after, done, info
                    )
                    self._note(agent, calculator)
        for agent in dones.nonzero()[0].tolist():
            self._end(agent, infos[agent], seen[agent])
        self._last = seen
        return self._with_task(observations), rewards, dones, infos

    def _note(self, agent: int, calculator: RewardCalculator) -> None:
        sums = self._sums[agent]
        for name, value in calculator.last_terms.items():
            sums[name] = sums.get(name, 0.0) + value

    def _end(self, agent: int, info: dict[str, Any], first: np.ndarray) -> None:
        info |= {f"reward_{name}": value for name, value in self._sums[agent].items()}
        if self._tasks:
            info["terminal_observation"][TASK] = self._played[agent].copy()
        self._begin(agent, first)

    def _begin(self, agent: int, first: np.ndarray) -> None:
        self._sums[agent] = {}
        if self.calculators:
            self.calculators[agent].begin_episode(first)
        if self._tasks:
            values = self.venv.reset_infos[agent].get("parameters", {})
            self._played[agent] = [task == values.get("task") for task in self._tasks]

    def _with_task(self, observations: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return observations | {TASK: self._played.copy()} if self._tasks else observations
