"""Stable-Baselines3: all agents of all games as one `VecEnv`."""

import os
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from estragon.envs.pool import PoolProperties
from estragon.envs.spaces import SegmentedActionCodec
from estragon.envs.vector_core import VectorCore, VectorStep
from estragon.support.errors import UserError

MASKS = "action_masks"
Indices = None | int | Iterable[int]


class GodotVecEnv(PoolProperties, VecEnv):
    """One sub-environment per agent, over all games; all agents have the same spaces.

    Mixed actions are one Box: a discrete action is a segment with one value per choice, of which
    the largest wins. If the game sends action masks, `MaskablePPO` uses them. `infos` have
    `terminal_observation` and `TimeLimit.truncated`, and at its end the `seed` of an episode.

    Games with an older addon send no terminal observations and do not distinguish time limits:
    `terminal_observation` is then the observation before the last step, and
    `terminal_observation_missing` is set. When a game is lost and restarted, its agents are
    truncated in the same way, with the reason in `game_lost`.
    """

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the games that `Launch` describes; `key` selects one observation of a dict."""
        self._core = core = VectorCore(env_path, key, options)
        self._pool = core.pool
        self._segments = SegmentedActionCodec(core.spaces) if core.action_codec.mixed else None
        self.agent_policy_names = core.policies
        action_space = (self._segments or core.action_codec).space
        super().__init__(core.num_slots, core.obs_codec.space, action_space)

    def reset(self) -> Any:
        """Start new episodes: after `seed`, its first ones; else the next ones."""
        step = self._core.reset(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [step.reset_infos.get(slot, {}) for slot in range(self.num_envs)]
        return self._core.decode_obs(step)

    def step_async(self, actions: np.ndarray) -> None:
        """Send the actions of all agents."""
        codec = self._core.action_codec
        if self._segments is None:
            values = codec.encode(actions, self.num_envs)
        else:
            values = self._segments.encode(actions, self.num_envs, self.action_masks())
            codec.check(values)
        self._core.send(values)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Receive the result of the step."""
        step = self._core.receive()
        obs = self._core.decode_obs(step)
        return obs, step.rewards, step.terminated | step.truncated, self._infos(step)

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the games; returns what each returned."""
        return self._core.call(method)

    def action_masks(self) -> np.ndarray:
        """(num_envs, choices) bool: which choices are allowed now."""
        return self._core.action_masks()

    def reload_scene(self) -> None:
        """Load every game's scene again in the next step (wire http); episodes are truncated."""
        self._pool.reload_scene()

    def close(self) -> None:
        """Stop the games."""
        self._pool.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The same for every agent; `action_masks` only if the game sends them."""
        count = len(list(self._get_indices(indices)))
        if attr_name == "render_mode":
            return [None] * count
        if attr_name == MASKS and not self._core.mask_codec.available:
            raise AttributeError("the game sends no action masks")
        return [getattr(self, attr_name)] * count

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Unsupported: nothing of a running game can be set from here."""
        raise UserError(f"cannot set {attr_name}: pass it to the game with arguments={{…}}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks`, or a method of the agents in the game, without arguments."""
        if method_args or method_kwargs:
            raise UserError(f"{method_name}: methods of the game take no arguments")
        found = list(self.action_masks()) if method_name == MASKS else self.call(method_name)
        return [found[index] for index in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """False: agents are not wrapped; wrap this whole environment."""
        return [False for _ in self._get_indices(indices)]

    def _infos(self, step: VectorStep) -> list[dict[str, Any]]:
        infos = [dict(info) for info in step.infos or [{}] * self.num_envs]
        for row, slot in enumerate(step.ended.tolist()):
            info = infos[slot]
            info["terminal_observation"] = self._core.decode_final_obs(step, row)
            info["TimeLimit.truncated"] = bool(step.truncated[slot] and not step.terminated[slot])
            if step.final_missing[row]:
                info["terminal_observation_missing"] = True
            if "seed" in (begun := self.reset_infos[slot]):
                info["seed"] = begun["seed"]
            self.reset_infos[slot] = step.reset_infos.get(slot, {})
        return infos
