"""All agents of all games as one Stable-Baselines3 `VecEnv`."""

import os
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from estragon.envs.batch import Batch, Step
from estragon.envs.faces import Eyes, Hands, Masks, Segments, is_mixed
from estragon.envs.launch import Launch
from estragon.support.errors import UserError

MASKS = "action_masks"
Indices = None | int | Iterable[int]


class GodotVecEnv(VecEnv):
    """One sub-environment for each agent, over all games; all agents have the same spaces.

    Mixed actions are one Box, in which a discrete action has a segment of as many numbers as it
    has choices, and the largest wins. `infos` have `terminal_observation` and
    `TimeLimit.truncated`. Games with an older addon never tell what was seen last, nor a time limit
    from an end: `terminal_observation` is then what was seen one step before, and
    `terminal_observation_missing` says so. The same is so for a game that was lost and started
    again, whose agents are truncated with `game_lost`. Where the game tells which choices are
    allowed, `MaskablePPO` finds them.
    """

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the games, or wait for the editor.

        Args:
            env_path: what to play, see `Launch`.
            key: the one observation to give, instead of a dict of all.
            options: of `Launch`.
        """
        self._batch = Batch(Launch(env_path, **options))
        try:
            spaces = self._batch.spaces
            self._eyes, self._hands = Eyes(spaces, key), Hands(spaces)
            self._masks = Masks(spaces)
            self._segments = Segments(spaces) if is_mixed(spaces) else None
        except BaseException:
            self._batch.games.close()
            raise
        self.agent_policy_names = self._batch.policies
        chosen = self._hands if self._segments is None else self._segments
        super().__init__(self._batch.count, self._eyes.space, chosen.space)

    @property
    def encoding(self) -> str:
        """How Python and the games talk: binary1, or json with an older addon."""
        return self._batch.games.encoding

    @property
    def restarts(self) -> int:
        """How many times a game was lost and started again."""
        return self._batch.games.restarts

    def reset(self) -> Any:
        """Begin everywhere: after `seed`, its first episodes; else the next ones."""
        step = self._batch.reset(self._seeds[0])
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [step.begun.get(seat, {}) for seat in range(self.num_envs)]
        return self._eyes.see(step.numbers, step.images)

    def step_async(self, actions: np.ndarray) -> None:
        """Tell every agent what to do."""
        if self._segments is None:
            rows = self._hands.rows(actions, self.num_envs)
        else:
            rows = self._segments.rows(actions, self.num_envs, self.action_masks())
            self._hands.checked(rows)
        self._batch.send(rows)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """What came of it."""
        step = self._batch.gather()
        seen = self._eyes.see(step.numbers, step.images)
        return seen, step.rewards, step.terminated | step.truncated, self._infos(step)

    def call(self, method: str) -> list[Any]:
        """Call a method of every agent in the games; what each returned."""
        return self._batch.call(method)

    def action_masks(self) -> np.ndarray:
        """(num_envs, choices) bool: which choices are allowed now."""
        return self._masks.all_choices(self._batch.masks)

    def close(self) -> None:
        """End the games."""
        self._batch.games.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The same for every agent; `action_masks` only where the game tells them."""
        count = len(list(self._get_indices(indices)))
        if attr_name == "render_mode":
            return [None] * count
        if attr_name == MASKS and not self._masks.are_told:
            raise AttributeError("the game tells no action masks")
        return [getattr(self, attr_name)] * count

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Nothing of a running game can be set from here."""
        raise UserError(f"cannot set {attr_name}: give it to the game with arguments={{…}}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """`action_masks`, or a method of the agents in the game, which takes no arguments."""
        if method_args or method_kwargs:
            raise UserError(f"{method_name}: a method of the game takes no arguments")
        found = list(self.action_masks()) if method_name == MASKS else self.call(method_name)
        return [found[index] for index in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Agents are not wrapped; wrap this whole environment."""
        return [False for _ in self._get_indices(indices)]

    def _infos(self, step: Step) -> list[dict[str, Any]]:
        told = step.infos
        infos = [{} for _ in range(self.num_envs)] if told is None else [dict(i) for i in told]
        for row, seat in enumerate(step.ended.tolist()):
            info = infos[seat]
            last = self._eyes.see(step.last_numbers[row], step.last_images[row])
            info["terminal_observation"] = last
            info["TimeLimit.truncated"] = bool(step.truncated[seat] and not step.terminated[seat])
            if step.last_missing[row]:
                info["terminal_observation_missing"] = True
            self.reset_infos[seat] = step.begun.get(seat, {})
        return infos
