"""A game with one agent as a plain `gymnasium.Env`."""

import os
from typing import Any

import gymnasium
import numpy as np

from estragon.envs.batch import Batch, Step
from estragon.envs.faces import Eyes, Hands, Masks
from estragon.envs.launch import Launch
from estragon.support.errors import UserError


class GodotSingleEnv(gymnasium.Env[Any, Any]):
    """One game, one agent; for more of either, `GodotEnv` is faster.

    The game begins the next episode by itself: a `reset` without a seed right after an end only
    shows it. Games with an older addon never tell what was seen last, nor a time limit from an end:
    every end is then `terminated`, with what was seen one step before and `final_obs_missing` in
    the info.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        env_path: str | os.PathLike[str] | None = None,
        *,
        key: str | None = None,
        **options: Any,
    ) -> None:
        """Start the game, or wait for the editor.

        Args:
            env_path: what to play, see `Launch`.
            key: the one observation to give, instead of a dict of all.
            options: of `Launch`, but one game only.
        """
        self._batch = Batch(Launch(env_path, **options))
        if self._batch.count != 1:
            self._batch.games.close()
            raise UserError(f"{self._batch.count} agents: GodotEnv can do that")
        try:
            self._eyes, self._hands = Eyes(self._batch.spaces, key), Hands(self._batch.spaces)
            self._masks = Masks(self._batch.spaces)
        except BaseException:
            self._batch.games.close()
            raise
        self.observation_space = self._eyes.space
        self.action_space = self._hands.space
        self._begun: Step | None = None

    @property
    def encoding(self) -> str:
        """How Python and the game talk: binary1, or json with an older addon."""
        return self._batch.games.encoding

    @property
    def restarts(self) -> int:
        """How many times the game was lost and started again."""
        return self._batch.games.restarts

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: with a seed, its first one; without, the next."""
        super().reset(seed=seed)
        step = self._begun if seed is None else None
        self._begun = None
        if step is None:
            step = self._batch.reset(seed)
        return self._see(step.numbers, step.images), self._told(step.begun.get(0, {}))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One action."""
        self._batch.send(self._hands.rows(action, 1))
        step = self._batch.gather()
        info = step.infos[0] if step.infos is not None else {}
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        seen = self._see(step.numbers, step.images)
        self._begun = None
        if len(step.ended):
            self._begun = step
            seen = self._see(step.last_numbers, step.last_images)
            if step.last_missing[0]:
                info["final_obs_missing"] = True
        else:
            info = self._told(info)
        return seen, float(step.rewards[0]), terminated, truncated, info

    def call(self, method: str) -> Any:
        """Call a method of the agent in the game; what it returned."""
        return self._batch.call(method)[0]

    def action_masks(self) -> np.ndarray:
        """(choices,) bool: which choices are allowed now."""
        found: np.ndarray = self._masks.all_choices(self._batch.masks)[0]
        return found

    def close(self) -> None:
        """End the game."""
        self._batch.games.close()

    def _see(self, numbers: np.ndarray, images: np.ndarray) -> Any:
        return self._eyes.see(numbers[0], images[0])

    def _told(self, info: dict[str, Any]) -> dict[str, Any]:
        if self._masks.are_told:
            info = info | {"action_mask": self.action_masks().astype(np.int8)}
        return info
