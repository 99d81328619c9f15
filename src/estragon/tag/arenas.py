"""Thousands of arenas at once: the embedded engine that everything trains on."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from estragon.support.errors import UserError
from estragon.support.parallel import available_cores, parallel_for
from estragon.tag.compile import inlined, kernel
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.physics import (
    command_of,
    distance_between,
    gap_square,
    move_agent,
    no_command,
)
from estragon.tag.rewards import reward_terms
from estragon.tag.rules import (
    ACTION_SIZE,
    AGENTS,
    GOING_ON,
    NOBODY,
    TAGGED,
    TERMS,
    TIMED_OUT,
    VARIABLE,
    Rules,
    load_rules,
)
from estragon.tag.state import (
    AGENT,
    ARENA,
    VARIED,
    VARIED_CONSTANTS,
    Constants,
    PackedLayouts,
    constants_of,
    fan_of,
    pack_layouts,
)
from estragon.tag.threefry import FACING, LAYOUT, SPAWN, uniform_pair
from estragon.tag.variation import Variation
from estragon.tag.vision import cast_fan, close_eyes, hears, sees, write_head, write_rays

SEEDS = 2**32
FIRST_TRIES, SECOND_TRIES, FACING_TRIES = 16, 64, 32
NOW, NEXT = 0, 1
"""Of the episodes whose values an arena holds: a match restarts within a step, so the values of the
next one must be there already."""


class Game(NamedTuple):
    """All that stays the same while arenas are played."""

    constants: Constants
    weights: Any
    """Of rules.Weights."""
    packed: PackedLayouts
    fan: np.ndarray
    seed: int
    first_seeker: int
    varied: np.ndarray | None = None
    """(arenas, 2) of VARIED: the episode that is played and the next one. None compiles kernels
    that read `constants` alone."""


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
        variation: Variation | None = None,
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
            variation: rule numbers that differ from episode to episode, and all the layouts.
        """
        if not 1 <= count <= 2**20:
            raise UserError(f"arenas: expected 1 to {2**20}, got {count}")
        if first_seeker not in range(AGENTS):
            raise UserError(f"first_seeker: expected 0 or 1, got {first_seeker}")
        self.rules = rules or load_rules()
        chosen = layout if layout is not None else self.rules.layout
        if variation is not None:
            chosen = variation.layouts
        self.layouts = load_layouts(chosen, self.rules) if isinstance(chosen, str) else list(chosen)
        self.variation, self.lesson = variation, 0
        self.lessons = np.zeros(count, dtype=np.int64)
        """Those that the episodes of the last decision were drawn from."""
        if not self.layouts:
            raise UserError("layout: expected at least one")
        self.count = count
        self.threads = threads or available_cores()
        self.game = Game(
            constants=constants_of(self.rules),
            weights=self.rules.reward_weights,
            packed=pack_layouts(self.layouts, self.rules),
            fan=fan_of(self.rules),
            seed=_checked_seed(seed),
            first_seeker=first_seeker,
            varied=None if variation is None else np.zeros((count, 2), dtype=VARIED),
        )
        self.begun = False
        self.arenas = np.zeros(count, dtype=ARENA)
        self._number(first_arena)
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

    def reset(self, seed: int | None = None, *, first_arena: int | None = None) -> np.ndarray:
        """Begin episode 0 everywhere; returns the observations.

        Args:
            seed: a new seed of all random draws.
            first_arena: a new number of the first arena in the random streams.
        """
        if seed is not None:
            self.game = self.game._replace(seed=_checked_seed(seed))
        if first_arena is not None:
            self._number(first_arena)
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
        if self.values is not None:
            self.lessons = self.values["lesson"].copy()
        self._run(_step_span, actions, self.results, self.game, restart)
        if restart and self.variation is not None:
            self._draw(np.flatnonzero(self.results.ends), 1)
        return self.results

    def teach(self, lesson: int) -> None:
        """Draw the values of the episodes to come from another lesson of the variation."""
        self.lesson = lesson
        self._draw(np.arange(self.count), 1)

    @property
    def values(self) -> np.ndarray | None:
        """The values of the episodes that are played, (arenas,) of VARIED; None if none vary."""
        return None if self.game.varied is None else self.game.varied[:, NOW]

    @property
    def rules_in_force(self) -> list[Rules]:
        """By arena, the rules of the episode that is played."""
        if self.values is None:
            return [self.rules] * self.count
        return [
            self.rules.varied({name: float(row[name]) for name in VARIABLE}) for row in self.values
        ]

    def save(self) -> dict[str, np.ndarray]:
        """The whole state, also in the middle of an episode, as plain arrays."""
        saved: dict[str, np.ndarray] = {
            "seed": np.array(self.game.seed, dtype=np.int64),
            "arenas": self.arenas.view(np.uint8).copy(),
            "agents": self.agents.view(np.uint8).copy(),
        }
        if self.values is not None:
            saved["values"] = self.values.copy().view(np.uint8)
            saved["lesson"] = np.array(self.lesson, dtype=np.int64)
        return saved

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
        if self.values is not None:
            self.values[...] = np.ascontiguousarray(saved["values"]).view(VARIED)
            self.teach(int(saved["lesson"]))
        return self._observe()

    def _number(self, first_arena: int) -> None:
        if not 0 <= first_arena <= SEEDS - self.count:
            raise UserError(f"first_arena: expected 0 to {SEEDS - self.count}, got {first_arena}")
        self.arenas["number"] = np.arange(first_arena, first_arena + self.count)

    def _begin(self) -> np.ndarray:
        self.begun = True
        self._draw(np.arange(self.count), 0)
        self._run(_spawn_span, self.game)
        self._draw(np.arange(self.count), 1)
        return self._observe()

    def _draw(self, arenas: np.ndarray, ahead: int) -> None:
        """Draw the values of the episodes so many `ahead` of the current ones, as the next ones."""
        if self.variation is None or self.game.varied is None:
            return
        numbers, episodes = self.arenas["number"][arenas], self.arenas["episode"][arenas] + ahead
        for a, number, episode in zip(arenas, numbers.tolist(), episodes.tolist(), strict=True):
            self.game.varied[a, NEXT] = self.variation.row(
                self.rules, self.lesson, self.seed, number, episode
            )

    def _observe(self) -> np.ndarray:
        self._run(_observe_span, self.observations, self.game)
        return self.observations

    def _run(self, kernel: Callable[..., None], *arguments: Any) -> None:
        parallel_for(kernel, self.count, self.threads, self.arenas, self.agents, *arguments)


def _checked_seed(seed: int) -> int:
    if not 0 <= seed < SEEDS:
        raise UserError(f"seed: expected a whole number from 0 to {SEEDS - 1}, got {seed}")
    return int(seed)


@kernel
def _spawn_span(first: int, last: int, arenas: Any, agents: Any, game: Game) -> None:
    for a in range(first, last):
        spawn(arenas, agents, a, game)


@kernel
def _observe_span(
    first: int, last: int, arenas: Any, agents: Any, observations: np.ndarray, game: Game
) -> None:
    scratch = np.empty((4, game.fan.shape[1]))
    for a in range(first, last):
        observe(arenas, agents, a, scratch, observations, game)


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
    scratch = np.empty((4, game.fan.shape[1]))
    terms = np.zeros((2, results.terms.shape[2]))
    for a in range(first, last):
        end, winner = decide(arenas, agents, a, actions, terms, game)
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
            observe(arenas, agents, a, scratch, results.final_observations, game)
            arenas[a].episode = arenas[a].episode + 1
            spawn(arenas, agents, a, game)
        observe(arenas, agents, a, scratch, results.observations, game)


@inlined
def _constants(varied: Any, a: int, c: Constants) -> Constants:
    """The rules in force in arena `a`."""
    if varied is None:
        return c
    v = varied[a, NOW]
    return Constants(
        v.fall_per_tick,
        v.half_fall_per_tick,
        v.speed,
        v.speed_change_per_tick,
        v.jump_speed,
        v.reach_square,
        v.separation_square,
        v.limit_ticks,
        *c[VARIED_CONSTANTS:],  # type: ignore[arg-type]
    )


@inlined
def _layout(varied: Any, arenas: Any, a: int, seed: int, layouts: int) -> int:
    """The layout of the episode that begins in arena `a`; its values begin as well."""
    if varied is not None:
        varied[a, NOW] = varied[a, NEXT]
        return int(varied[a, NOW].layout)
    if layouts < 2:
        return 0
    share, _ = uniform_pair(seed, arenas[a].number, arenas[a].episode, LAYOUT, 0)
    return int(share * layouts)


@inlined
def spawn(arenas: Any, agents: Any, a: int, game: Game) -> None:
    """Begin the current episode of arena `a`: a layout, two places apart, two facings."""
    arena = arenas[a]
    arena.layout = _layout(game.varied, arenas, a, game.seed, game.packed.counts.shape[0])
    c = _constants(game.varied, a, game.constants)
    arena.tick = 0
    arena.seeker = game.first_seeker
    _place(arena, agents[a, 0], agents[a, 1], c.separation_square, game)
    for i in range(2):
        agent = agents[a, i]
        agent.y = c.stop_floor
        agent.velocity_x = agent.velocity_y = agent.velocity_z = 0.0
        agent.forward_x, agent.forward_z = 0.0, 1.0
        agent.seen_x = agent.seen_y = agent.seen_z = 0.0
        agent.seen_tick = -1
        agent.immune_ticks = c.head_start_ticks
        agent.it_ticks = 0
        agent.on_floor = 1
        for attempt in range(FACING_TRIES):
            draw = i * FACING_TRIES + attempt
            share_x, share_z = uniform_pair(game.seed, arena.number, arena.episode, FACING, draw)
            x, z = 2.0 * share_x - 1.0, 2.0 * share_z - 1.0
            square = x * x + z * z
            if 0.01 < square < 1.0:
                length = math.sqrt(square)
                agent.forward_x = x / length
                agent.forward_z = z / length
                break


@inlined
def _place(arena: Any, one: Any, two: Any, separation_square: float, game: Game) -> None:
    """Draw two free floor places at least the separation apart."""
    packed, layout, draw = game.packed, arena.layout, 0
    for _ in range(FIRST_TRIES):
        one.x, one.z = _draw_floor(arena, draw, game)
        draw += 1
        if not _is_free(one.x, one.z, packed, layout):
            continue
        for _ in range(SECOND_TRIES):
            two.x, two.z = _draw_floor(arena, draw, game)
            draw += 1
            x, z = two.x - one.x, two.z - one.z
            is_apart = x * x + z * z >= separation_square
            if is_apart and _is_free(two.x, two.z, packed, layout):
                return
    one.x, one.z = packed.spawns[layout, 0, 0], packed.spawns[layout, 0, 1]
    two.x, two.z = packed.spawns[layout, 1, 0], packed.spawns[layout, 1, 1]


@inlined
def _draw_floor(arena: Any, draw: int, game: Game) -> tuple[float, float]:
    share_x, share_z = uniform_pair(game.seed, arena.number, arena.episode, SPAWN, draw)
    c = game.constants
    return (2.0 * share_x - 1.0) * c.stop_x, (2.0 * share_z - 1.0) * c.stop_z


@inlined
def _is_free(x: float, z: float, packed: PackedLayouts, layout: int) -> bool:
    for index in range(packed.counts[layout]):
        box = packed.boxes[layout, index]
        if box.stop_low_x < x < box.stop_high_x and box.stop_low_z < z < box.stop_high_z:
            return False
    return True


@inlined
def decide(
    arenas: Any, agents: Any, a: int, actions: np.ndarray, terms: np.ndarray, game: Game
) -> tuple[int, int]:
    """Play one decision in arena `a`; returns how it ended and who won, or NOBODY.

    Args:
        actions: (arenas, 2, 3) what the agents want.
        terms: (2, terms) float64, filled with the decision's rewards.
    """
    arena, one, two = arenas[a], agents[a, 0], agents[a, 1]
    packed, w, c = game.packed, game.weights, _constants(game.varied, a, game.constants)
    layout, count = arena.layout, packed.counts[arena.layout]
    acted_as_seeker = arena.seeker
    command_one, command_two = command_of(actions[a, 0], c), command_of(actions[a, 1], c)
    sight = 1 if agents[a, acted_as_seeker].seen_tick == arena.tick else -1
    if arena.tick < c.head_start_ticks:
        sight = 0
        if acted_as_seeker == 0:
            command_one = no_command()
        else:
            command_two = no_command()
    before = distance_between(one, two)
    tags_one, tags_two, near_jumps = 0, 0, 0
    end, winner = GOING_ON, NOBODY
    for _ in range(c.decision_ticks):
        seeker = arena.seeker
        jumped_one = move_agent(one, two, command_one, packed.boxes, layout, count, c)
        jumped_two = move_agent(two, one, command_two, packed.boxes, layout, count, c)
        if jumped_one if seeker == 0 else jumped_two:
            near_jumps += seeker == acted_as_seeker and distance_between(one, two) <= w.jump_near_m
        tagged, end = _judge_tick(arena, agents[a, seeker], agents[a, 1 - seeker], c)
        if tagged:
            tags_one += seeker == 0
            tags_two += seeker == 1
        if end != GOING_ON:
            winner = _winner(arena, one, two, end)
            break
    progress = before - distance_between(one, two)
    for i in range(2):
        reward_terms(
            agents[a, i],
            i == acted_as_seeker,
            progress,
            tags_one - tags_two if i == 0 else tags_two - tags_one,
            near_jumps,
            sight,
            0 if end != TIMED_OUT or winner == NOBODY else (1 if winner == i else -1),
            terms[i],
            w,
            c,
        )
    return end, winner


@inlined
def _judge_tick(arena: Any, seeker: Any, hider: Any, c: Constants) -> tuple[bool, int]:
    """Count the tick, then see whether it brought a tag or the end."""
    arena.tick = arena.tick + 1
    seeker.it_ticks = seeker.it_ticks + 1
    if seeker.immune_ticks > 0:
        seeker.immune_ticks = seeker.immune_ticks - 1
    if hider.immune_ticks > 0:
        hider.immune_ticks = hider.immune_ticks - 1
    tagged = hider.immune_ticks == 0 and gap_square(seeker, hider, c.size) <= c.reach_square
    if tagged:
        if c.tag_ends_episode:
            return True, TAGGED
        arena.seeker = 1 - arena.seeker
        seeker.immune_ticks = c.immunity_ticks
        hider.immune_ticks = c.immunity_ticks
    return tagged, TIMED_OUT if arena.tick >= c.limit_ticks else GOING_ON


@inlined
def _winner(arena: Any, one: Any, two: Any, end: int) -> int:
    """Who won a match that ended: by the tag, or who was "it" for less time."""
    if end == TAGGED:
        return int(arena.seeker)
    if one.it_ticks == two.it_ticks:
        return NOBODY
    return 0 if one.it_ticks < two.it_ticks else 1


@inlined
def observe(
    arenas: Any, agents: Any, a: int, scratch: np.ndarray, observations: np.ndarray, game: Game
) -> None:
    """Sense, remember, and write the observations of arena `a`.

    Args:
        scratch: (4, rays) float64.
        observations: (arenas, 2, observation size) float32.
    """
    arena, packed, c = arenas[a], game.packed, _constants(game.varied, a, game.constants)
    layout, count = arena.layout, packed.counts[arena.layout]
    for i in range(2):
        agent, other = agents[a, i], agents[a, 1 - i]
        out = observations[a, i]
        if i == arena.seeker and arena.tick < c.head_start_ticks:
            close_eyes(scratch)
            visible = write_rays(scratch, out, c)
        else:
            cast_fan(agent, other, game.fan, packed.boxes, layout, count, scratch, c)
            visible = write_rays(scratch, out, c) or sees(
                agent, other, packed.boxes, layout, count, c
            )
        if visible or (i != arena.seeker and hears(agent, other, c)):
            agent.seen_x, agent.seen_y, agent.seen_z = other.x, other.y, other.z
            agent.seen_tick = arena.tick
        write_head(arena.tick, agent, i == arena.seeker, visible, out, c)
