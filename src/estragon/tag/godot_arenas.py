"""Arenas of the tag game played by real Godot, with the methods of the embedded ones."""

import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

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


class GodotArenas:
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
        """Start Godot with `count` arenas.

        Args:
            count: arenas side by side.
            rules: the game, as Godot is to play it.
            layouts: boxes; with several, every episode draws one.
            seed: of all random draws.
            first_seeker: the agent that is "it" when an episode begins, 0 or 1.
        """
        self.rules, self.count = rules, count
        self.layouts, self.seed = list(layouts), seed
        self._folder = tempfile.TemporaryDirectory(prefix="estragon-arenas-")
        folder = Path(self._folder.name)
        try:
            write_json(folder / "rules.json", msgspec.to_builtins(rules))
            options = [
                f"--arenas={count}",
                f"--layout={write_layouts(layouts, folder)}",
                f"--rules-file={folder / 'rules.json'}",
                f"--seed={seed}",
                f"--first-seeker={first_seeker}",
            ]
            self._channel = Lockstep(paths.godot_project(), options)
            self._check_hello()
        except BaseException:
            self._folder.cleanup()
            raise
        self._seekers = np.zeros(count, dtype=np.int8)
        self.layout_index = np.zeros(count, dtype=np.int32)
        """Which of the layouts is played on, (arenas,)."""
        self.states = np.zeros((count, AGENTS, STATE_SIZE))
        """(arenas, agents, fields of AGENT) float64 after the last answer."""

    def __enter__(self) -> Self:
        """The arenas, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End Godot."""
        self.close()

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

    def reset(self, *, first_arena: int = 0) -> np.ndarray:
        """Begin episode 0 of arenas number `first_arena` on; returns the observations."""
        frame = b"R" + struct.pack("<II", 0, first_arena)
        answer = self._channel.ask(frame, "the first observations")
        return self._decode(answer, restart=False).observations

    def step(self, actions: np.ndarray, *, restart: bool = True) -> Results:
        """Play one decision in every arena: actions (arenas, agents, 3) float32."""
        plain = np.ascontiguousarray(actions, dtype="<f4")
        frame = b"S" + bytes([restart]) + plain.tobytes()
        return self._decode(self._channel.ask(frame, "the next observations"), restart=restart)

    def ask_bot(self, bot: int, observations: np.ndarray) -> np.ndarray:
        """What Godot's bot number `bot` would do: (rows, 3) for (rows, observation size)."""
        frame = b"B" + bytes([bot]) + np.ascontiguousarray(observations, dtype="<f4").tobytes()
        answer = self._channel.ask(frame, "the bot's actions")
        return np.frombuffer(answer, dtype="<f4").reshape(-1, ACTION_SIZE)

    def close(self) -> None:
        """End Godot."""
        self._channel.close()
        self._folder.cleanup()

    def _check_hello(self) -> None:
        hello = self._channel.hello
        ours = {
            "protocol": PROTOCOL,
            "arenas": self.count,
            "observation_version": self.rules.observation.version,
            "observation_size": self.rules.observation.size,
            "terms": list(TERMS),
        }
        for key, value in ours.items():
            if hello.get(key) != value:
                self._channel.close()
                raise UserError(f"{key}: Godot has {hello.get(key)}, Python has {value}")

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
