"""All agents of all games side by side in slots: the core of the vector environments.

A slot is a sub-environment. An agent that leaves frees its slot, an agent that joins takes a free
one. An agent without a slot does nothing (all zeros); an empty slot observes zeros, reward 0.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from estragon.envs.launch import Launch
from estragon.envs.pool import GamePool
from estragon.envs.spaces import ActionCodec, AgentSpaces, MaskCodec, ObservationCodec
from estragon.envs.wire import (
    ENDED,
    HAS_FINAL_OBS,
    LEFT,
    PARAMETERS,
    TERMINATED,
    TRUNCATED,
    AgentTable,
    Infos,
    StepResult,
)
from estragon.support.errors import UserError

NO_SLOTS, NO_FLAGS = np.zeros(0, np.int64), np.zeros(0, bool)
NO_VALUES, NO_IMAGES = np.zeros((0, 0), np.float32), np.zeros((0, 0), np.uint8)
SEED = "seed"


@dataclasses.dataclass
class VectorStep:
    """The result of a step, slot by slot; the arrays are never written to again."""

    values: np.ndarray
    """(slots, spaces.obs_size) float32."""
    images: np.ndarray
    """(slots, spaces.image_size) uint8."""
    rewards: np.ndarray
    """(slots,) float32."""
    terminated: np.ndarray
    """(slots,) bool."""
    truncated: np.ndarray
    """(slots,) bool."""
    ended: np.ndarray = dataclasses.field(default_factory=lambda: NO_SLOTS)
    """The slots whose episode ended."""
    final_values: np.ndarray = dataclasses.field(default_factory=lambda: NO_VALUES)
    """(ended, spaces.obs_size) of the terminal observation."""
    final_images: np.ndarray = dataclasses.field(default_factory=lambda: NO_IMAGES)
    """(ended, spaces.image_size) of the terminal observation."""
    final_missing: np.ndarray = dataclasses.field(default_factory=lambda: NO_FLAGS)
    """(ended,) whether the game did not send it, so that it is that of the step before."""
    infos: Infos | None = None
    """By slot, of the step that was taken; if the games sent any."""
    reset_infos: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """By slot, the infos of episodes that start."""


class VectorCore:
    """Games whose agents all have the same spaces, and the codecs of these."""

    def __init__(
        self, env_path: str | os.PathLike[str] | None, key: str | None, options: dict[str, Any]
    ) -> None:
        """Start the games; `key` selects one observation, `options` are those of `Launch`."""
        self.pool = GamePool(Launch(env_path, **options))
        try:
            tables = self.pool.tables
            self.spaces = spaces = _common_spaces(tables)
            self.obs_codec = ObservationCodec(spaces, key)
            self.action_codec = ActionCodec(spaces)
            self.mask_codec = MaskCodec(spaces)
        except BaseException:
            self.pool.close()
            raise
        self.policies = [agent.policy for table in tables for agent in table.agents]
        self.num_slots = len(self.policies)
        ends = np.cumsum([len(table) for table in tables]).tolist()
        self._spans = list(zip([0, *ends], ends, strict=False))
        """First and last slot of every game."""
        self.masks = np.ones((self.num_slots, spaces.mask_size), np.uint8)
        """Which choices of the masked actions are allowed now."""
        self.empty = np.zeros(self.num_slots, bool)
        """Slots without an agent."""
        self.has_empty = False
        self._assign_slots()
        self._last = self._blank_step()

    def reset(self, seed: int | None = None) -> VectorStep:
        """Start new episodes everywhere."""
        results = self.pool.reset(seed)
        self._assign_slots()
        step = self._blank_step()
        for game, result in enumerate(results):
            self._write_obs(step, game, result)
            for row, slot in self._occupied(game, result):
                step.reset_infos[slot] = result.info(row)
        self._last = step
        return step

    def send(self, actions: np.ndarray) -> None:
        """Send the actions of all agents: (slots, spaces.action_size) float32."""
        if self._in_order:
            self.pool.send([actions[first:last] for first, last in self._spans])
            return
        wanted = []
        for slots in self._slots:
            rows = np.zeros((len(slots), actions.shape[1]), np.float32)
            rows[slots >= 0] = actions[slots[slots >= 0]]
            wanted.append(rows)
        self.pool.send(wanted)

    def receive(self) -> VectorStep:
        """The result of the step."""
        results = self.pool.receive()
        if self._in_order and not any(result.agents_changed() for result in results):
            step = self._step_in_order(results)
        else:
            step = self._step_by_slot(results)
        self._last = step
        return step

    def call(self, method: str) -> list[Any]:
        """Call a method of all agents; returns what it returned, slot by slot."""
        found: list[Any] = [None] * self.num_slots
        returned = self.pool.call(method)
        for slot, value in zip(np.concatenate(self._slots).tolist(), returned, strict=False):
            if slot >= 0:
                found[slot] = value
        return found

    def decode_obs(self, step: VectorStep) -> Any:
        """Observations of all slots."""
        return self.obs_codec.decode(step.values, step.images)

    def decode_final_obs(self, step: VectorStep, row: int) -> Any:
        """The terminal observation of slot `step.ended[row]`."""
        return self.obs_codec.decode(step.final_values[row], step.final_images[row])

    def action_masks(self) -> np.ndarray:
        """(slots, choices) bool: which choices are allowed now."""
        return self.mask_codec.decode(self.masks)

    def _assign_slots(self) -> None:
        """Assign every game's slots to its agents, in order."""
        self._slots: list[np.ndarray] = []
        """By game, the slot of every agent, or -1."""
        self.empty[:] = True
        for table, (first, last) in zip(self.pool.tables, self._spans, strict=True):
            own = np.full(len(table), -1)
            taken = min(len(table), last - first)
            own[:taken] = first + np.arange(taken)
            self._slots.append(own)
            self.empty[own[:taken]] = False
        self._slots_changed()

    def _slots_changed(self) -> None:
        """If all slots are in the order of the messages, arrays can be used whole."""
        self.has_empty = bool(self.empty.any())
        self._in_order = all(
            np.array_equal(slots, np.arange(first, last))
            for slots, (first, last) in zip(self._slots, self._spans, strict=True)
        )

    def _step_in_order(self, results: list[StepResult]) -> VectorStep:
        count, spaces = self.num_slots, self.spaces
        values = _concatenate([each.obs.values for each in results])
        images = _concatenate([each.obs.images for each in results])
        step = VectorStep(
            values=values.reshape(count, spaces.obs_size),
            images=images.reshape(count, spaces.image_size),
            rewards=_concatenate([each.rewards for each in results]),
            terminated=np.zeros(count, bool),
            truncated=np.zeros(count, bool),
            infos=_concatenate_infos(results),
        )
        if spaces.mask_size:
            for (first, last), result in zip(self._spans, results, strict=True):
                if result.masks is not None:
                    self.masks[first:last] = result.masks.reshape(last - first, -1)
        if not all(result.uneventful for result in results):
            self._end_episodes(step, results)
        return step

    def _step_by_slot(self, results: list[StepResult]) -> VectorStep:
        """The general case: agents join and leave."""
        step = self._blank_step()
        step.infos = [{} for _ in range(self.num_slots)]
        for slots, result in zip(self._slots, results, strict=True):
            for row in np.flatnonzero(slots >= 0).tolist():
                step.rewards[slots[row]] = result.rewards[row]
                step.infos[slots[row]] = result.info(row)
        self._end_episodes(step, results)
        for game, result in enumerate(results):
            num_before = len(self._slots[game])
            self._reassign(game, result)
            self._write_obs(step, game, result)
            for row, slot in self._occupied(game, result):
                if row >= num_before:
                    step.reset_infos[slot] = result.info(row)
        self._slots_changed()
        return step

    def _end_episodes(self, step: VectorStep, results: list[StepResult]) -> None:
        """Fill in which episodes ended, and how."""
        flags = np.zeros(self.num_slots, np.uint8)
        for slots, result in zip(self._slots, results, strict=True):
            flags[slots[slots >= 0]] = result.flags[: len(slots)][slots >= 0]
        left = flags & LEFT != 0
        step.terminated = flags & TERMINATED != 0
        # An agent that leaves during its episode is truncated.
        step.truncated = (flags & TRUNCATED != 0) | (left & ~step.terminated)
        step.ended = ended = np.flatnonzero(flags & (ENDED | LEFT))
        step.final_values, step.final_images = self._last.values[ended], self._last.images[ended]
        step.final_missing = (flags[ended] & ENDED != 0) & (flags[ended] & HAS_FINAL_OBS == 0)
        for slots, result in zip(self._slots, results, strict=True):
            known = result.flags[: len(slots)]
            if result.final_obs is not None:
                rows = np.flatnonzero(known & HAS_FINAL_OBS)
                has_slot = slots[rows] >= 0
                places = np.searchsorted(ended, slots[rows[has_slot]])
                parts = result.final_obs.select(np.flatnonzero(has_slot), self.spaces)
                step.final_values[places], step.final_images[places] = parts
            if left.any():  # those that left during their episode
                during = known & (LEFT | ENDED | HAS_FINAL_OBS) == LEFT
                rows = np.flatnonzero(during & (slots >= 0))
                places = np.searchsorted(ended, slots[rows])
                parts = result.obs.select(rows, self.spaces)
                step.final_values[places], step.final_images[places] = parts
        if step.infos is not None:
            for slot in ended.tolist():
                if left[slot]:
                    step.infos[slot]["agent_left"] = True
                else:  # the seed is that of the next episode
                    info = step.infos[slot]
                    step.reset_infos[slot] = {SEED: info.pop(SEED)} if SEED in info else {}
            for slots, result in zip(self._slots, results, strict=True):
                for row, values in result.parameters.items():
                    if (slot := int(slots[row])) >= 0:
                        info = step.infos[slot]
                        if PARAMETERS in info and slot in step.reset_infos:
                            step.reset_infos[slot][PARAMETERS] = info[PARAMETERS]
                        info[PARAMETERS] = values

    def _reassign(self, game: int, result: StepResult) -> None:
        """Free the slots of agents that left, and assign free ones to agents that joined."""
        stays = result.flags & LEFT == 0
        slots = np.concatenate([self._slots[game], np.full(result.num_joined, -1)])
        gone = slots[~stays]
        self.empty[gone[gone >= 0]] = True
        first, last = self._spans[game]
        for row in np.flatnonzero(stays & (slots < 0)):
            free = np.flatnonzero(self.empty[first:last])
            if not len(free):
                break
            if result.table.agents[row].spaces != self.spaces:
                raise UserError(
                    f"{result.table.describe(row)} joined with different spaces; "
                    "use GodotParallelEnv"
                )
            slots[row] = first + free[0]
            self.empty[slots[row]] = False
        self._slots[game] = slots[stays]

    def _occupied(self, game: int, result: StepResult) -> Iterator[tuple[int, int]]:
        """Row and slot of every agent that has not left."""
        for row, slot in zip(result.remaining().tolist(), self._slots[game].tolist(), strict=True):
            if slot >= 0:
                yield row, slot

    def _write_obs(self, step: VectorStep, game: int, result: StepResult) -> None:
        """Write observations and masks into the slots of the agents that have not left."""
        for row, slot in self._occupied(game, result):
            step.values[slot], step.images[slot] = result.obs.row(row)
            if result.masks is not None:
                self.masks[slot] = result.mask(row)

    def _blank_step(self) -> VectorStep:
        count, spaces = self.num_slots, self.spaces
        return VectorStep(
            values=np.zeros((count, spaces.obs_size), np.float32),
            images=np.zeros((count, spaces.image_size), np.uint8),
            rewards=np.zeros(count, np.float32),
            terminated=np.zeros(count, bool),
            truncated=np.zeros(count, bool),
        )


def _concatenate(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _concatenate_infos(results: list[StepResult]) -> Infos | None:
    if len(results) == 1:
        return results[0].infos
    if not any(result.infos for result in results):
        return None
    return [info for each in results for info in each.infos or [{} for _ in each.table.agents]]


def _common_spaces(tables: list[AgentTable]) -> AgentSpaces:
    found = {agent.spaces: agent for table in tables for agent in table.agents}
    if len(found) > 1:
        each = [
            f"agent {agent.id} ({agent.policy}) {agent.spaces.describe()}"
            for agent in found.values()
        ]
        several = "; ".join(each[:3])
        raise UserError(
            f"the agents have different spaces: {several}; a vector environment needs the same for "
            "all: use GodotParallelEnv or GodotMultiAgentEnv"
        )
    return next(iter(found))
