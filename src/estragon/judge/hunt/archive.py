"""The cells of a game that were visited, and the shortest way to each."""

import dataclasses
import zlib
from typing import Any

import msgspec
import numpy as np

from estragon.judge.hunt.game import Snapshot

BINS = 24
"""Cells along the longer side of the level."""
BITS, BITS_ALONE = 6, 10
"""Bits of an observation's random projection, if there also is a place, and if not."""
MOST_PAID = 48
Key = tuple[int, ...]


class Rollout(msgspec.Struct):
    """A reset and the actions after it; each is the action of all agents."""

    seed: int
    actions: list[list[float]]


@dataclasses.dataclass(slots=True)
class Cell:
    """A part of the game's states."""

    visits: int
    rollout: Rollout
    steps: int
    """So many actions of the rollout lead here."""
    chosen: int = 0
    """How often it was returned to."""

    @property
    def appeal(self) -> float:
        """Rarely visited, rarely chosen, and not far."""
        return float(1.0 / np.sqrt(1.0 + self.visits + 4.0 * self.chosen) / (40.0 + self.steps))


class CellArchive:
    """Cells by the place of the first body and a coarse hash of the observation."""

    def __init__(
        self,
        size: float,
        obs_scale: list[float],
        *,
        moves: bool = True,
        flags: tuple[str, ...] = (),
    ) -> None:
        """Of a level.

        Args:
            size: of its longest side.
            obs_scale: the usual size of each value observed.
            moves: whether places tell cells apart.
            flags: values observed and variables that tell cells apart exactly.
        """
        self.cells: dict[Key, Cell] = {}
        self._values: dict[tuple[int, float], tuple[int, Key]] = {}
        """By flag and value: in how many steps it was seen, and the nearest cell with it."""
        self.heat: dict[tuple[int, int], int] = {}
        """Visits by place, seen from above."""
        self.curve: list[tuple[float, int]] = []
        """Seconds played, cells."""
        self.paid: dict[int, Rollout] = {}
        """The shortest rollout with which something was paid or punished, by what flags tell."""
        self.cell_size = max(size, 1e-6) / BINS
        self._scale = np.maximum(np.array(obs_scale), 1e-3)
        self._flags = flags
        random = np.random.default_rng(0)
        bits = BITS if moves else BITS_ALONE
        self._planes = random.normal(size=(len(obs_scale), bits))

    def key_of(self, shot: Snapshot) -> Key:
        """The cell of a snapshot."""
        number = 0
        if len(shot.obs) == len(self._scale):
            bits = (shot.obs / self._scale) @ self._planes > 0.0
            number = int(bits @ (1 << np.arange(len(bits))))
            number += zlib.crc32(self._exact(shot).tobytes()) << len(bits)
        return (*(int(np.floor(value / self.cell_size)) for value in shot.place), number)

    def visit(self, key: Key, shot: Snapshot, rollout: Rollout, steps: int) -> bool:
        """Count a visit; whether the cell is new."""
        if shot.place:
            across = (key[0], key[2] if shot.scene.is_3d else key[1])
            self.heat[across] = self.heat.get(across, 0) + 1
        cell, is_new = self.cells.get(key), key not in self.cells
        if cell is None:
            cell = self.cells[key] = Cell(0, rollout, steps)
        cell.visits += 1
        if steps < cell.steps:
            cell.rollout, cell.steps = rollout, steps
        for flag in enumerate(self._exact(shot).tolist()):
            count, near = self._values.get(flag, (0, key))
            near = key if steps < self.cells[near].steps else near
            self._values[flag] = (count + 1, near)
        return is_new

    def note_pay(self, key: Key, rollout: Rollout, random: np.random.Generator) -> None:
        """The last action of a rollout was paid, and led to a cell."""
        kind = self._kind(key)
        if kind not in self.paid or len(rollout.actions) < len(self.paid[kind].actions):
            self.paid[kind] = Rollout(rollout.seed, list(rollout.actions))
        if len(self.paid) > MOST_PAID:
            del self.paid[list(self.paid)[random.integers(len(self.paid))]]

    def choose(self, random: np.random.Generator) -> tuple[Key, Cell] | None:
        """A cell to return to: rarely visited, rarely chosen; every other time of a rare flag."""
        if not self.cells:
            return None
        if self._values and random.random() < 0.5:
            # Flags that always change together count once.
            counts, keys = zip(*set(self._values.values()), strict=True)
            weights = 1.0 / np.array(counts)
        else:
            keys = tuple(self.cells)
            weights = np.array([each.appeal for each in self.cells.values()])
        key = keys[int(random.choice(len(keys), p=weights / weights.sum()))]
        self.cells[key].chosen += 1
        return key, self.cells[key]

    def _kind(self, key: Key) -> int:
        """What the flags of a cell tell."""
        return key[-1] >> int(self._planes.shape[1])

    def _exact(self, shot: Snapshot) -> np.ndarray:
        """The values of the flags."""
        return np.nan_to_num(np.round(shot.read(self._flags), 2)).astype(np.float32)

    def plain(self) -> dict[str, Any]:
        """As JSON; cells share their rollouts."""
        numbers: dict[int, int] = {}
        rollouts: list[Rollout] = []
        for cell in self.cells.values():
            if id(cell.rollout) not in numbers:
                numbers[id(cell.rollout)] = len(rollouts)
                rollouts.append(cell.rollout)
        cells = [
            [list(key), cell.visits, numbers[id(cell.rollout)], cell.steps]
            for key, cell in self.cells.items()
        ]
        heat = [[*place, count] for place, count in self.heat.items()]
        return {
            "rollouts": [msgspec.to_builtins(each) for each in rollouts],
            "cells": cells,
            "heat": heat,
            "values": [[*flag, count, list(key)] for flag, (count, key) in self._values.items()],
            "paid": [[kind, msgspec.to_builtins(each)] for kind, each in self.paid.items()],
            "curve": self.curve,
        }

    def load(self, plain: dict[str, Any]) -> None:
        """Take what `plain` returned."""
        rollouts = msgspec.convert(plain["rollouts"], list[Rollout])
        for key, visits, number, steps in plain["cells"]:
            self.cells[tuple(key)] = Cell(visits, rollouts[number], steps)
        self._values = {(flag, value): (n, tuple(key)) for flag, value, n, key in plain["values"]}
        self.paid = {kind: msgspec.convert(each, Rollout) for kind, each in plain["paid"]}
        self.heat = {(x, y): count for x, y, count in plain["heat"]}
        self.curve = [(float(sec), int(count)) for sec, count in plain["curve"]]
