"""All agents of all games as one Gymnasium `VectorEnv`."""

import os
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from estragon.envs.batch import Batch, Step
from estragon.envs.faces import Eyes, Hands, Masks
from estragon.envs.launch import Launch

NUMBERS, TRUTHS = {float, int}, {bool}
NESTED = {dict, list}


class GodotEnv(VectorEnv[Any, Any, np.ndarray]):
    """One sub-environment for each agent, over all games; all agents have the same spaces.

    Episodes begin again in the step that ends them: `infos["final_obs"]` and `infos["final_info"]`
    tell of the one that ended. Games with an older addon never tell what was seen last, nor a time
    limit from an end: every end is then `terminated`, `final_obs` is what was seen one step before,
    and `final_info["final_obs_missing"]` says so. The same is so for a game that was lost and
    started again, whose agents are `truncated` with `final_info["game_lost"]`.

    Agents may leave (`truncated`, `final_info["agent_left"]`) and join: a sub-environment is a seat
    that is then empty, or taken. While it is empty it sees zeros, and `infos["empty"]` marks it.
    What `step` returns is the caller's to keep: it is never written to again.
    `infos["seed"]` is the seed of an episode that begins, `infos["action_mask"]` the choices that
    are allowed, where the game tells.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

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
        self.closed = True  # until there is something to close
        self._batch = Batch(Launch(env_path, **options))
        try:
            spaces = self._batch.spaces
            self._eyes, self._hands = Eyes(spaces, key), Hands(spaces)
            self._masks = Masks(spaces)
        except BaseException:
            self._batch.games.close()
            raise
        self.closed = False
        self._told: list[dict[str, Any]] | None = None
        self._columns: dict[str, np.ndarray] = {}
        self.num_envs = self._batch.count
        self.agent_policy_names = self._batch.policies
        self.single_observation_space = self._eyes.space
        self.single_action_space = self._hands.space
        self.observation_space = batch_space(self._eyes.space, self.num_envs)
        self.action_space = batch_space(self._hands.space, self.num_envs)

    @property
    def encoding(self) -> str:
        """How Python and the games talk: binary1, or json with an older addon."""
        return self._batch.games.encoding

    @property
    def restarts(self) -> int:
        """How many times a game was lost and started again."""
        return self._batch.games.restarts

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin everywhere: with a seed, its first episodes; without, the next ones.

        Game i gets seed + i. Games with an older addon take a seed only when they start.
        """
        first = seed[0] if isinstance(seed, list) else seed
        super().reset(seed=first)
        step = self._batch.reset(first)
        return self._eyes.see(step.numbers, step.images), self._infos(step)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """One action of every agent."""
        self._batch.send(self._hands.rows(actions, self.num_envs))
        step = self._batch.gather()
        seen = self._eyes.see(step.numbers, step.images)
        rewards = step.rewards.astype(np.float64)
        return seen, rewards, step.terminated, step.truncated, self._infos(step)

    def call(self, method: str) -> tuple[Any, ...]:
        """Call a method of every agent in the games; what each returned."""
        return tuple(self._batch.call(method))

    def action_masks(self) -> np.ndarray:
        """(num_envs, choices) bool: which choices are allowed now."""
        return self._masks.all_choices(self._batch.masks)

    def close_extras(self, **_: Any) -> None:
        """End the games."""
        self._batch.games.close()

    def _infos(self, step: Step) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        if step.infos is not None:
            self._add_told(infos, step, step.infos)
        for row, seat in enumerate(step.ended.tolist() if len(step.ended) else ()):
            final = dict(step.infos[seat]) if step.infos is not None else {}
            if step.last_missing[row]:
                final["final_obs_missing"] = True
            last = self._eyes.see(step.last_numbers[row], step.last_images[row])
            self._add_info(infos, {"final_obs": last, "final_info": final}, seat)
        for seat, info in step.begun.items():
            self._add_info(infos, info, seat)
        if self._masks.are_told:
            infos["action_mask"] = self.action_masks().astype(np.int8)
            infos["_action_mask"] = np.ones(self.num_envs, bool)
        if self._batch.has_empty:
            infos["empty"] = self._batch.empty.copy()
            infos["_empty"] = np.ones(self.num_envs, bool)
        return infos

    def _add_told(self, infos: dict[str, Any], step: Step, told: list[dict[str, Any]]) -> None:
        """Add what those who play on tell."""
        if told is self._told:
            infos.update({name: column.copy() for name, column in self._columns.items()})
        elif add_columns(infos, told, step.ended):
            self._remember(step, infos)
        else:
            over = set(step.ended.tolist())
            for seat, info in enumerate(told):
                if info and seat not in over:
                    self._add_info(infos, info, seat)

    def _remember(self, step: Step, columns: dict[str, Any]) -> None:
        """Most agents tell the same again in the next step."""
        if not len(step.ended):
            self._told = step.infos
            self._columns = {name: column.copy() for name, column in columns.items()}


def add_columns(infos: dict[str, Any], rows: list[dict[str, Any]], ended: np.ndarray) -> bool:
    """Add what all who play on tell under the same names, as arrays; whether that is so."""
    goes_on = np.ones(len(rows), bool)
    goes_on[ended] = False
    telling = [row for row, goes in zip(rows, goes_on.tolist(), strict=True) if goes]
    if not telling:
        return True
    try:
        columns = {name: [row[name] for row in telling] for name in telling[0]}
    except KeyError:
        return False
    if sum(map(len, telling)) != len(columns) * len(telling):
        return False
    kinds = [set(map(type, column)) for column in columns.values()]
    if any(kind & NESTED for kind in kinds):
        return False
    for (name, column), kind in zip(columns.items(), kinds, strict=True):
        if kind <= NUMBERS or kind == TRUTHS:
            told = np.array(column)
            infos[name] = np.zeros(len(rows), told.dtype)
        else:
            told = np.array(column, object)
            infos[name] = np.full(len(rows), None, object)
        infos[name][goes_on] = told
        infos[f"_{name}"] = goes_on.copy()
    return True
