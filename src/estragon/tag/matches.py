"""Matches between two players, for judging strength; on the embedded engine or in Godot."""

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas, Results
from estragon.tag.bots import Bot
from estragon.tag.godot_arenas import GodotArenas
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.policy_files import DEFAULT_BOTS, TRAINED, load_policy
from estragon.tag.rules import GOING_ON, OBS, Role, Rules

BATCH = 1024
"""Matches the embedded engine plays side by side."""
GODOT_ARENAS = 32
"""Matches played side by side in one Godot process."""
Z95 = 1.959963984540054

EngineName = Literal["embedded", "godot"]
AnyArenas = Arenas | GodotArenas


class Player(Protocol):
    """Anything that turns observations into actions."""

    name: str

    def act(self, observations: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for observations (rows, observation size) float32."""
        ...


Team = tuple[Player, Player]
"""Who plays for an agent while it is "it", and who while it is not."""


class MatchWatcher(Protocol):
    """Looks on while matches are played."""

    def begin(self, arenas: AnyArenas, first: int, observations: np.ndarray) -> None:
        """Match number `first` begins in the first arena, the next ones in those after it."""
        ...

    def see(self, arenas: AnyArenas, results: Results, playing: np.ndarray) -> None:
        """A decision was played; `playing` (arenas,) says where a match was going on before it."""
        ...


def load_player(spec: str, rules: Rules, role: Role) -> Player:
    """`bot:NAME`, or a policy file that was trained for this role."""
    if spec.startswith("bot:"):
        return Bot(spec.removeprefix("bot:"), rules)
    path = Path(spec)
    if not path.is_file():
        raise UserError(
            f"no player '{spec}'; expected a policy file, bot:random, bot:chaser or bot:evader"
        )
    return load_policy(path, rules, role)


def default_player(role: Role) -> str:
    """The policy trained last in this folder, or else a bot; printed to standard error."""
    chosen = str(TRAINED[role]) if TRAINED[role].is_file() else DEFAULT_BOTS[role]
    print(f"{role}: {chosen}", file=sys.stderr)
    return chosen


@contextlib.contextmanager
def open_arenas(
    engine: EngineName,
    count: int,
    *,
    rules: Rules,
    layouts: Sequence[Layout],
    seed: int,
    first_seeker: int = 0,
) -> Iterator[AnyArenas]:
    """Arenas of either engine, closed at the end of the block."""
    if engine == "embedded":
        yield Arenas(count, rules=rules, layout=layouts, seed=seed, first_seeker=first_seeker)
        return
    with GodotArenas(
        count, rules=rules, layouts=layouts, seed=seed, first_seeker=first_seeker
    ) as arenas:
        yield arenas


class Outcomes(NamedTuple):
    """How matches ended, one row a match."""

    winners: np.ndarray
    """(matches,) int8: 0 the agent that began as seeker, 1 the other, -1 a draw."""
    ticks: np.ndarray
    """(matches,) int64: how long each lasted."""
    rewards: np.ndarray
    """(matches, 2) float64: what each agent earned in all, the one that began as seeker first."""
    out_of_sight: np.ndarray
    """(matches,) float64: share of the decisions after the head start that began without the
    seeker seeing the hider."""


def play_matches(
    seeker: Player,
    hider: Player,
    count: int,
    *,
    rules: Rules,
    layouts: str | Sequence[Layout],
    seed: int,
    batch: int = BATCH,
    watcher: MatchWatcher | None = None,
) -> Outcomes:
    """Play matches number 0 to count - 1 of a seed on the embedded engine.

    Each match is the same in any batch. Under `transfer` rules a player acts for whichever agent
    has its role at the moment.
    """
    arenas = Arenas(min(batch, count), rules=rules, layout=layouts, seed=seed)
    return play_batches(arenas, seeker, hider, count, watcher=watcher)


def play_teams(
    first: Team,
    second: Team,
    count: int,
    *,
    rules: Rules,
    layouts: str | Sequence[Layout],
    seed: int,
) -> Outcomes:
    """The same, but each agent has players of its own for both roles, as `transfer` needs it.

    `first` plays for the agents that begin as seeker.
    """
    arenas = Arenas(count, rules=rules, layout=layouts, seed=seed)
    return _play(arenas, arenas.reset(), (first, second), count)


def play_batches(
    arenas: AnyArenas,
    seeker: Player,
    hider: Player,
    count: int,
    tell: Callable[[int], None] = lambda _: None,
    watcher: MatchWatcher | None = None,
) -> Outcomes:
    """Play matches number 0 to count - 1, one per arena, a batch after the other.

    `tell` is called with the number of matches played so far; a watcher sees every decision.
    """
    batches = []
    for first in range(0, count, arenas.count):
        observations = arenas.reset(first_arena=first)
        if watcher is not None:
            watcher.begin(arenas, first, observations)
        wanted = min(arenas.count, count - first)
        team = (seeker, hider)
        batches.append(_play(arenas, observations, (team, team), wanted, watcher))
        tell(first + wanted)
    return Outcomes(*(np.concatenate(column) for column in zip(*batches, strict=True)))


def _play(
    arenas: AnyArenas,
    observations: np.ndarray,
    teams: tuple[Team, Team],
    wanted: int,
    watcher: MatchWatcher | None = None,
) -> Outcomes:
    """One match in each of the first `wanted` arenas; where it is over, what follows is ignored."""
    winners = np.full(arenas.count, -1, dtype=np.int8)
    ticks = np.zeros(arenas.count, dtype=np.int64)
    rewards = np.zeros((arenas.count, 2))
    unseen, looked = np.zeros((2, arenas.count))
    tick = 0
    playing = np.arange(arenas.count) < wanted
    actions = np.zeros((arenas.count, 2, 3), dtype=np.float32)
    while playing.any():
        is_seeker = arenas.is_seeker
        if tick >= arenas.rules.head_start_ticks:
            looked += playing
            unseen += playing & (observations[is_seeker, OBS.opponent_visible] == 0.0)
        tick += arenas.rules.episode.step_tick_interval
        for agent, (seeker, hider) in enumerate(teams):
            for player, rows in ((seeker, is_seeker[:, agent]), (hider, ~is_seeker[:, agent])):
                if rows.any():
                    actions[rows, agent] = player.act(observations[rows, agent])
        results = arenas.step(actions, restart=False)
        if watcher is not None:
            watcher.see(arenas, results, playing)
        observations = results.observations
        rewards[playing] += results.rewards[playing]
        over = playing & (results.ends != GOING_ON)
        winners[over] = results.winners[over]
        ticks[over] = results.ticks[over]
        playing &= ~over
    share = unseen / np.maximum(looked, 1.0)
    return Outcomes(winners[:wanted], ticks[:wanted], rewards[:wanted], share[:wanted])


def evaluate(
    seeker: str,
    hider: str,
    *,
    rules: Rules,
    engine: EngineName = "embedded",
    layout: str | None = None,
    seed: int = 0,
    episodes: int = 1000,
    tell: Callable[[int], None] = lambda _: None,
    watcher: MatchWatcher | None = None,
) -> dict[str, Any]:
    """How often a seeker tags a hider: what `estragon eval tag --json` writes.

    `load_player` reads the players, `load_layouts` the layout; `play_batches` explains the rest.
    """
    spec = layout or rules.layout
    players = load_player(seeker, rules, "seeker"), load_player(hider, rules, "hider")
    layouts = load_layouts(spec, rules)
    count = min(episodes, BATCH if engine == "embedded" else GODOT_ARENAS)
    with open_arenas(engine, count, rules=rules, layouts=layouts, seed=seed) as arenas:
        outcomes = play_batches(arenas, *players, episodes, tell, watcher)
    # a draw, possible under transfer rules only, is half a win for each
    rate = float(np.mean((outcomes.winners == 0) + 0.5 * (outcomes.winners < 0)))
    searched = np.maximum(outcomes.ticks - rules.head_start_ticks, 1)
    return {
        "engine": engine,
        "seeker": seeker,
        "hider": hider,
        "layout": spec,
        "rules": rules.rules,
        "seed": seed,
        "episodes": episodes,
        "seeker_win_rate": rate,
        "ci95": wilson_interval(rate, episodes),
        "mean_seconds": float(outcomes.ticks.mean()) / rules.physics.ticks_per_second,
        "out_of_sight": float(np.average(outcomes.out_of_sight, weights=searched)),
    }


def wilson_interval(rate: float, count: int) -> list[float]:
    """The 95% interval of a share that was seen in `count` trials (Wilson's score interval)."""
    z2 = Z95 * Z95
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    reach = Z95 / (1 + z2 / count) * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))
    return [max(0.0, middle - reach), min(1.0, middle + reach)]
