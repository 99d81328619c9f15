"""Arenas of the tag game played by real Godot, with the methods of the embedded ones."""

import json
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from estragon.godot.channel import Lockstep
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_json
from estragon.tag.arenas import Results
from estragon.tag.layout import Layout, write_layouts
from estragon.tag.rules import ACTION_SIZE, AGENTS, TERMS, Rules
from estragon.tag.state import AGENT

PROTOCOL = 2
STATE_SIZE = len(AGENT.names or ())


class GodotArenas(Lockstep):
    """N arenas in one Godot process, advancing in lockstep."""

    def __init__(
        self,
        count: int,
        *,
        rules: Rules,
        layouts: Sequence[Layout],
        seed: int = 0,
        first_seeker: int = 0,
    ) -> None:
        """Start Godot with `count` arenas; `first_seeker`, 0 or 1, is "it" at first."""
        self.rules, self.count = rules, count
        self.layouts, self.seed = list(layouts), seed
        with tempfile.TemporaryDirectory(prefix="estragon-arenas-") as name:
            folder = Path(name)  # read before the hello
            write_json(folder / "rules.json", msgspec.to_builtins(rules))
            options = [
                f"--arenas={count}",
                f"--layout={write_layouts(layouts, folder)}",
                f"--rules-file={folder / 'rules.json'}",
                f"--seed={seed}",
                f"--first-seeker={first_seeker}",
            ]
            super().__init__(paths.godot_project(), options)
        self._check_hello()
        self._seekers = np.zeros(count, dtype=np.int8)
        self.layout_index = np.zeros(count, dtype=np.int32)
        """Which of the layouts is played on, (arenas,)."""
        self.states = np.zeros((count, AGENTS, STATE_SIZE))
        """(arenas, agents, fields of AGENT) float64 after the last answer."""

    @property
    def agents(self) -> np.ndarray:
        """The agents as they are now: (arenas, agents) of AGENT."""
        agents = np.zeros((self.count, AGENTS), dtype=AGENT)
        for column, name in enumerate(AGENT.names or ()):
            agents[name] = self.states[..., column]
        return agents

    @property
    def is_seeker(self) -> np.ndarray:
        """Which agents are "it" now: (arenas, agents) bool."""
        is_seeker: np.ndarray = self._seekers[:, None] == np.arange(AGENTS)
        return is_seeker

    def vary(self, rules: Sequence[Rules]) -> None:
        """Play by these rules, one for each arena, from the next `reset` on.

        They may differ from the others in `rules.VARIABLE` alone.
        """
        frame = b"V" + json.dumps(msgspec.to_builtins(rules)).encode()  # as in a rules file
        if problem := self.exchange(frame, "the new rules")[1:]:
            raise UserError(f"Godot: {problem.decode()}")

    def reset(self, *, first_arena: int = 0) -> np.ndarray:
        """Begin episode 0 of arenas number `first_arena` on; returns the observations."""
        frame = b"R" + struct.pack("<II", 0, first_arena)
        answer = self.exchange(frame, "the first observations")
        return self._decode(answer, restart=False).observations

    def step(self, actions: np.ndarray, *, restart: bool = True) -> Results:
        """Play one decision in every arena: actions (arenas, agents, 3) float32."""
        plain = np.ascontiguousarray(actions, dtype="<f4")
        frame = b"S" + bytes([restart]) + plain.tobytes()
        return self._decode(self.exchange(frame, "the next observations"), restart=restart)

    def ask_bot(self, bot: int, observations: np.ndarray) -> np.ndarray:
        """What Godot's bot number `bot` would do: (rows, 3) for (rows, observation size)."""
        frame = b"B" + bytes([bot]) + np.ascontiguousarray(observations, dtype="<f4").tobytes()
        answer = self.exchange(frame, "the bot's actions")
        return np.frombuffer(answer, dtype="<f4").reshape(-1, ACTION_SIZE)

    def _check_hello(self) -> None:
        ours = {
            "protocol": PROTOCOL,
            "arenas": self.count,
            "observation_version": self.rules.observation.version,
            "observation_size": self.rules.observation.size,
            "terms": list(TERMS),
        }
        for key, value in ours.items():
            if self.hello.get(key) != value:
                self.close()
                raise UserError(f"{key}: Godot has {self.hello.get(key)}, Python has {value}")

    def _decode(self, frame: bytearray, *, restart: bool) -> Results:
        count, size = self.count, self.rules.observation.size
        place = 0

        def take(kind: str, *shape: int) -> np.ndarray:
            nonlocal place
            length = int(np.prod(shape))
            array = np.frombuffer(frame, dtype=kind, count=length, offset=place).reshape(shape)
            place += array.nbytes
            return array

        observations = take("<f4", count, AGENTS, size)
        rewards = take("<f4", count, AGENTS)
        terms = take("<f4", count, AGENTS, len(TERMS))
        ends, winners, self._seekers = take("i1", count), take("i1", count), take("i1", count)
        ticks, _episodes = take("<i4", count), take("<i4", count)
        self.layout_index = take("<i4", count)
        distances = take("<f8", count)
        self.states = take("<f8", count, AGENTS, STATE_SIZE)
        final = np.zeros_like(observations)
        if restart:
            ended = np.flatnonzero(ends)
            final[ended] = take("<f4", len(ended), AGENTS, size)
        return Results(
            observations=observations,
            rewards=rewards,
            terms=terms,
            ends=ends,
            winners=winners,
            ticks=ticks,
            distances=distances,
            final_observations=final,
        )
