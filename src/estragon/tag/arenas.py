"""Thousands of arenas at once: the embedded engine that everything trains on."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from estragon.support.errors import UserError
from estragon.tag.compile import kernel
from estragon.tag.constants import (
    Constants,
    Rooms,
    Weights,
    constants_of,
    fan_of,
    rooms_of,
    weights_of,
)
from estragon.tag.crew import available_cores, share_out
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.match import GOING_ON, decide, observe, spawn
from estragon.tag.physics import distance_between
from estragon.tag.rewards import TERMS
from estragon.tag.rules import ACTION_SIZE, AGENTS, Rules, load_rules
from estragon.tag.state import AGENT, ARENA

SEEDS = 2**32


class Game(NamedTuple):
    """All that stays the same while arenas are played."""

    constants: Constants
    weights: Weights
    rooms: Rooms
    fan: np.ndarray
    seed: int
    first_seeker: int


class Results(NamedTuple):
    """What a decision brought, one row an arena; overwritten by the next one."""

    observations: np.ndarray
    """(arenas, agents, observation size) float32: what the agents see now."""
    rewards: np.ndarray
    """(arenas, agents) float32."""
    terms: np.ndarray
    """(arenas, agents, terms) float32: the same rewards, term by term."""
    ends: np.ndarray
    """(arenas,) int8: GOING_ON, TAGGED or TIMED_OUT."""
    winners: np.ndarray
    """(arenas,) int8: the agent that won, -1 while nobody has."""
    ticks: np.ndarray
    """(arenas,) int64: ticks of the episode after the decision, also where it ended."""
    distances: np.ndarray
    """(arenas,) float64: metres between the agents after the decision."""
    final_observations: np.ndarray
    """(arenas, agents, observation size) float32: the last sight of an episode that ended."""


class Arenas:
    """N arenas of two agents that advance together, one decision at a time.

    An arena's course depends on the seed, its number and the actions alone: not on the threads,
    nor on how many others are played beside it.
    """

    def __init__(
        self,
        count: int,
        *,
        rules: Rules | None = None,
        layout: str | Sequence[Layout] | None = None,
        seed: int = 0,
        first_arena: int = 0,
        first_seeker: int = 0,
        threads: int | None = None,
    ) -> None:
        """Prepare `count` arenas; call `reset` to begin.

        Args:
            count: arenas to play side by side.
            rules: the game; None for the game's own file.
            layout: boxes, as `load_layouts` reads them; with several, every episode draws one.
            seed: of all random draws, below 2^32.
            first_arena: number of the first arena in the random streams.
            first_seeker: the agent that is "it" when an episode begins, 0 or 1.
            threads: threads to play on; None for all cores.
        """
        if not 1 <= count <= 2**20:
            raise UserError(f"arenas: expected 1 to {2**20}, got {count}")
        if first_seeker not in range(AGENTS):
            raise UserError(f"first_seeker: expected 0 or 1, got {first_seeker}")
        if not 0 <= first_arena <= SEEDS - count:
            raise UserError(f"first_arena: expected 0 to {SEEDS - count}, got {first_arena}")
        self.rules = rules or load_rules()
        chosen = layout if layout is not None else self.rules.layout
        self.layouts = load_layouts(chosen, self.rules) if isinstance(chosen, str) else list(chosen)
        if not self.layouts:
            raise UserError("layout: expected at least one")
        self.count = count
        self.threads = threads or available_cores()
        self.game = Game(
            constants=constants_of(self.rules),
            weights=weights_of(self.rules),
            rooms=rooms_of(self.layouts, self.rules),
            fan=fan_of(self.rules),
            seed=_checked_seed(seed),
            first_seeker=first_seeker,
        )
        self.begun = False
        self.arenas = np.zeros(count, dtype=ARENA)
        self.arenas["number"] = np.arange(first_arena, first_arena + count)
        self.agents = np.zeros((count, AGENTS), dtype=AGENT)
        size = self.rules.observation.size
        self.results = Results(
            observations=np.zeros((count, AGENTS, size), dtype=np.float32),
            rewards=np.zeros((count, AGENTS), dtype=np.float32),
            terms=np.zeros((count, AGENTS, len(TERMS)), dtype=np.float32),
            ends=np.zeros(count, dtype=np.int8),
            winners=np.full(count, -1, dtype=np.int8),
            ticks=np.zeros(count, dtype=np.int64),
            distances=np.zeros(count, dtype=np.float64),
            final_observations=np.zeros((count, AGENTS, size), dtype=np.float32),
        )

    @property
    def observations(self) -> np.ndarray:
        """What the agents see now: (arenas, agents, observation size) float32."""
        return self.results.observations

    @property
    def is_seeker(self) -> np.ndarray:
        """Which agents are "it" now: (arenas, agents) bool."""
        seekers: np.ndarray = self.arenas["seeker"]
        is_seeker: np.ndarray = seekers[:, None] == np.arange(AGENTS)
        return is_seeker

    @property
    def seed(self) -> int:
        """Of all random draws."""
        return self.game.seed

    @property
    def layout_index(self) -> np.ndarray:
        """Which of the layouts is played on: (arenas,) int64."""
        index: np.ndarray = self.arenas["layout"]
        return index

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Begin episode 0 everywhere, with a new seed if one is given; returns the observations."""
        if seed is not None:
            self.game = self.game._replace(seed=_checked_seed(seed))
        self.arenas["episode"] = 0
        return self._begin()

    def next_episode(self) -> np.ndarray:
        """Begin the next episode everywhere; returns the observations."""
        self.arenas["episode"] += 1
        return self._begin()

    def step(self, actions: np.ndarray, *, restart: bool = True) -> Results:
        """Play one decision in every arena.

        Args:
            actions: (arenas, agents, 3) float32: move_x, move_z, jump.
            restart: begin the next episode where one ended; else the caller sees to it.
        """
        actions = np.ascontiguousarray(actions, dtype=np.float32)
        if actions.shape != (self.count, AGENTS, ACTION_SIZE):
            raise ValueError(
                f"actions: expected shape {(self.count, AGENTS, ACTION_SIZE)}, got {actions.shape}"
            )
        self._run(_step_span, actions, self.results, self.game, restart)
        return self.results

    def save(self) -> dict[str, np.ndarray]:
        """The whole state, also in the middle of an episode, as plain arrays."""
        return {
            "seed": np.array(self.game.seed, dtype=np.int64),
            "arenas": self.arenas.view(np.uint8).copy(),
            "agents": self.agents.view(np.uint8).copy(),
        }

    def restore(self, saved: dict[str, np.ndarray]) -> np.ndarray:
        """Go on from what `save` gave, to the same bits; returns the observations."""
        plain = {"arenas": self.arenas.view(np.uint8), "agents": self.agents.view(np.uint8)}
        for name, array in plain.items():
            if saved[name].shape != array.shape or saved[name].dtype != np.uint8:
                raise UserError(f"saved {name}: made with another number of arenas or version")
        arenas = np.ascontiguousarray(saved["arenas"]).view(ARENA)
        if not np.isin(arenas["layout"], range(len(self.layouts))).all():
            raise UserError("saved arenas: made with other layouts")
        if not np.isin(arenas["seeker"], range(AGENTS)).all():
            raise UserError("saved arenas: damaged")
        for name, array in plain.items():
            array[...] = saved[name]
        self.game = self.game._replace(seed=_checked_seed(int(saved["seed"])))
        self.begun = True
        return self._observe()

    def _begin(self) -> np.ndarray:
        self.begun = True
        self._run(_spawn_span, self.game)
        return self._observe()

    def _observe(self) -> np.ndarray:
        self._run(_observe_span, self.observations, self.game)
        return self.observations

    def _run(self, kernel: Callable[..., None], *arguments: Any) -> None:
        share_out(kernel, self.count, self.threads, self.arenas, self.agents, *arguments)


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < SEEDS:
        raise UserError(f"seed: expected a whole number from 0 to {SEEDS - 1}, got {seed}")
    return int(seed)


@kernel
def _spawn_span(first: int, last: int, arenas: Any, agents: Any, game: Game) -> None:
    for a in range(first, last):
        spawn(arenas, agents, a, game.seed, game.first_seeker, game.rooms, game.constants)


@kernel
def _observe_span(
    first: int, last: int, arenas: Any, agents: Any, observations: np.ndarray, game: Game
) -> None:
    scratch = np.empty((4, game.fan.shape[1]))
    for a in range(first, last):
        observe(arenas, agents, a, game.fan, scratch, game.rooms, observations, game.constants)


@kernel
def _step_span(
    first: int,
    last: int,
    arenas: Any,
    agents: Any,
    actions: np.ndarray,
    results: Results,
    game: Game,
    restart: bool,
) -> None:
    """One decision in the arenas from `first` up to `last`."""
    c, rooms, fan = game.constants, game.rooms, game.fan
    scratch = np.empty((4, fan.shape[1]))
    terms = np.empty((2, results.terms.shape[2]))
    for a in range(first, last):
        end, winner = decide(arenas, agents, a, actions, terms, rooms, game.weights, c)
        for i in range(2):
            total = 0.0
            for term in range(terms.shape[1]):
                total = total + terms[i, term]
                results.terms[a, i, term] = np.float32(terms[i, term])
            results.rewards[a, i] = np.float32(total)
        results.ends[a] = end
        results.winners[a] = winner
        results.ticks[a] = arenas[a].tick
        results.distances[a] = distance_between(agents[a, 0], agents[a, 1])
        if end != GOING_ON and restart:
            observe(arenas, agents, a, fan, scratch, rooms, results.final_observations, c)
            arenas[a].episode = arenas[a].episode + 1
            spawn(arenas, agents, a, game.seed, game.first_seeker, rooms, c)
        observe(arenas, agents, a, fan, scratch, rooms, results.observations, c)
