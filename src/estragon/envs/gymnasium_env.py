"""Gymnasium: all agents of all games as one `VectorEnv`, or a game with one agent as an `Env`."""

import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from estragon.envs.pool import PoolProperties
from estragon.envs.vector_core import VectorCore, VectorStep
from estragon.support.errors import UserError

NUMBERS, BOOLEANS = {float, int}, {bool}
NESTED = {dict, list}


class GodotEnv(PoolProperties, VectorEnv[Any, Any, np.ndarray]):
    """One sub-environment per agent, over all games; all agents have the same spaces.

    Autoreset mode is SAME_STEP: `infos["final_obs"]` and `infos["final_info"]` belong to the
    episode that ended. `infos["seed"]` is the seed of an episode that starts,
    `infos["action_mask"]` the allowed choices, if the game sends them. Arrays that `step` returns
    are never written to again.

    Games with an older addon send no terminal observations and do not distinguish time limits:
    every end is `terminated`, `final_obs` is the observation before the last step, and
    `final_info["final_obs_missing"]` is set. When a game is lost and restarted, its agents are
    `truncated` in the same way, with the reason in `final_info["game_lost"]`.

    Agents may leave (`truncated`, `final_info["agent_left"]`) and join: they free and take
    sub-environments. An empty one observes zeros and is marked in `infos["empty"]`.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the games that `Launch` describes; `key` selects one observation of a dict."""
        self.closed = True  # until there is something to close
        self._core = VectorCore(env_path, key, options)
        self._pool = self._core.pool
        self.closed = False
        self._last_infos: list[dict[str, Any]] | None = None
        self._last_columns: dict[str, np.ndarray] = {}
        self.num_envs = self._core.num_slots
        self.agent_policy_names = self._core.policies
        self.single_observation_space = self._core.obs_codec.space
        self.single_action_space = self._core.action_codec.space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start new episodes: with a seed, its first ones; without, the next ones.

        Game i gets seed + i. Games with an older addon take a seed only when they are started.
        """
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        step = self._core.reset(first)
        return self._core.decode_obs(step), self._infos(step)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action of every agent."""
        self._core.send(self._core.action_codec.encode(actions, self.num_envs))
        step = self._core.receive()
        obs, rewards = self._core.decode_obs(step), step.rewards.astype(np.float64)
        return obs, rewards, step.terminated, step.truncated, self._infos(step)

    def call(self, method: str) -> tuple[Any, ...]:
        """Call a method of every agent in the games; returns what each returned."""
        return tuple(self._core.call(method))

    def action_masks(self) -> np.ndarray:
        """(num_envs, choices) bool: which choices are allowed now."""
        return self._core.action_masks()

    def close_extras(self, **_: Any) -> None:
        """Stop the games."""
        self._pool.close()

    def _infos(self, step: VectorStep) -> dict[str, Any]:
        core = self._core
        infos: dict[str, Any] = {}
        if step.infos is not None:
            self._add_step_infos(infos, step, step.infos)
        for row, slot in enumerate(step.ended.tolist()):
            final = dict(step.infos[slot]) if step.infos is not None else {}
            if step.final_missing[row]:
                final["final_obs_missing"] = True
            final_obs = core.decode_final_obs(step, row)
            self._add_info(infos, {"final_obs": final_obs, "final_info": final}, slot)
        for slot, info in step.reset_infos.items():
            self._add_info(infos, info, slot)
        if core.mask_codec.available:
            infos["action_mask"] = self.action_masks().astype(np.int8)
            infos["_action_mask"] = np.ones(self.num_envs, bool)
        if core.has_empty:
            infos["empty"] = core.empty.copy()
            infos["_empty"] = np.ones(self.num_envs, bool)
        return infos

    def _add_step_infos(
        self, infos: dict[str, Any], step: VectorStep, rows: list[dict[str, Any]]
    ) -> None:
        """Add the infos of the agents whose episode continues."""
        if rows is self._last_infos:  # most agents repeat their infos
            infos.update({name: column.copy() for name, column in self._last_columns.items()})
        elif add_columns(infos, rows, step.ended):
            if not len(step.ended):
                self._last_infos = rows
                self._last_columns = {name: column.copy() for name, column in infos.items()}
        else:
            ended = set(step.ended.tolist())
            for slot, info in enumerate(rows):
                if info and slot not in ended:
                    self._add_info(infos, info, slot)


def add_columns(infos: dict[str, Any], rows: list[dict[str, Any]], ended: np.ndarray) -> bool:
    """Add the infos of the agents that continue as arrays; False if their keys differ."""
    continues = np.ones(len(rows), bool)
    continues[ended] = False
    given = [row for row, goes_on in zip(rows, continues.tolist(), strict=True) if goes_on]
    if not given:
        return True
    try:
        columns = {name: [row[name] for row in given] for name in given[0]}
    except KeyError:
        return False
    if sum(map(len, given)) != len(columns) * len(given):
        return False
    kinds = [set(map(type, column)) for column in columns.values()]
    if any(kind & NESTED for kind in kinds):
        return False
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        if kind <= NUMBERS or kind == BOOLEANS:
            values = np.array(column)
            infos[name] = np.zeros(len(rows), values.dtype)
        else:
            values = np.array(column, object)
            infos[name] = np.full(len(rows), None, object)
        infos[name][continues] = values
        infos[f"_{name}"] = continues.copy()
    return True


class GodotSingleEnv(PoolProperties, gymnasium.Env[Any, Any]):
    """One game with one agent; for more of either, `GodotEnv` is faster.

    The game starts the next episode by itself: a `reset` without a seed right after an end only
    returns its first observation. Games with an older addon send no terminal observations and do
    not distinguish time limits: every end is `terminated`, with the observation before the last
    step and `final_obs_missing` in the info.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the one game that `Launch` describes; `key` selects one observation of a dict."""
        self._core = VectorCore(env_path, key, options)
        self._pool = self._core.pool
        if self._core.num_slots != 1:
            self.close()
            raise UserError(
                f"GodotSingleEnv supports one agent, got {self._core.num_slots}; use GodotEnv"
            )
        self.observation_space = self._core.obs_codec.space
        self.action_space = self._core.action_codec.space
        self._next_episode: VectorStep | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed)
        step, self._next_episode = self._next_episode, None
        if step is None or seed is not None:
            step = self._core.reset(seed)
        obs = self._core.obs_codec.decode(step.values[0], step.images[0])
        return obs, self._with_mask(step.reset_infos.get(0, {}))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One action."""
        self._core.send(self._core.action_codec.encode(action, 1))
        step = self._core.receive()
        info = step.infos[0] if step.infos is not None else {}
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        if len(step.ended):
            self._next_episode = step
            obs = self._core.decode_final_obs(step, 0)
            if step.final_missing[0]:
                info["final_obs_missing"] = True
        else:
            self._next_episode = None
            obs = self._core.obs_codec.decode(step.values[0], step.images[0])
            info = self._with_mask(info)
        return obs, float(step.rewards[0]), terminated, truncated, info

    def call(self, method: str) -> Any:
        """Call a method of the agent in the game; returns what it returned."""
        return self._core.call(method)[0]

    def action_masks(self) -> np.ndarray:
        """(choices,) bool: which choices are allowed now."""
        return np.asarray(self._core.action_masks()[0])

    def close(self) -> None:
        """Stop the game."""
        self._pool.close()

    def _with_mask(self, info: dict[str, Any]) -> dict[str, Any]:
        if not self._core.mask_codec.available:
            return info
        return info | {"action_mask": self.action_masks().astype(np.int8)}
