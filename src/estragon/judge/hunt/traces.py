"""A bug as a file: what was played, what was seen; and how it is played again."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Self

import msgspec
import numpy as np

from estragon.envs.launch import Launch
from estragon.envs.wire import AgentTable
from estragon.judge.hunt.archive import Rollout
from estragon.judge.hunt.game import STEP_TIMEOUT_SEC, HuntedGame
from estragon.judge.hunt.oracles import Finding, Watcher
from estragon.judge.hunt.user_oracles import UserOracles
from estragon.judge.hunt.usual import Usual
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json

FORMAT = 1


class Trace(msgspec.Struct, forbid_unknown_fields=True):
    """One bug: everything that a replay needs, and what it must show."""

    format: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    game: str
    """Name of the project's folder or of the exported game."""
    digest: str
    """Of the build."""
    scene: str | None
    arguments: dict[str, str]
    seed: int
    """Of the game process."""
    action_repeat: int | None
    columns: list[str]
    """What each number of an action is."""
    before: list[Rollout]
    """Rollouts that must be played first, in the same process."""
    rollout: Rollout
    finding: Finding
    usual: Usual
    log_patterns: list[str]
    expects: list[str]
    first_length: int
    """Number of actions when the bug was first seen."""
    explorer: str
    found_sec: float
    """Into the hunt."""
    first_seen: str
    """Date and time, UTC."""
    places: list[list[float]] = []
    """Where the first body is before the first action, and after each."""
    clicks: dict[str, str] = {}
    """By number of the action, the button that it clicked."""
    step_sec: float = 0.0
    """How long an action lasts in the game."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        return read_json(path, cls)

    def write(self, path: Path) -> None:
        """Write a file."""
        write_json(path, msgspec.to_builtins(self))

    def take(self, rollouts: list[Rollout], outcome: "Outcome") -> None:
        """Take what was played, and what it showed."""
        self.before, self.rollout = rollouts[:-1], rollouts[-1]
        self.finding = outcome.finding or self.finding
        self.places, self.clicks = outcome.places, outcome.clicks
        self.step_sec = round(outcome.step_sec, 4)

    @property
    def length(self) -> int:
        """Number of actions."""
        return len(self.rollout.actions) + sum(len(each.actions) for each in self.before)

    @property
    def user_oracles(self) -> UserOracles:
        """Those of the hunt."""
        return UserOracles(tuple(self.log_patterns), tuple(self.expects))

    def launch(self, game: Path, **options: object) -> Launch:
        """How to start its game."""
        launch = Launch(
            env_path=game,
            scene=self.scene,
            seed=self.seed,
            action_repeat=self.action_repeat,
            arguments=self.arguments,
            step_timeout_sec=STEP_TIMEOUT_SEC,
        )
        return dataclasses.replace(launch, **options)  # type: ignore[arg-type]


@dataclasses.dataclass
class Outcome:
    """What playing a trace showed."""

    finding: Finding | None = None
    """The bug that was looked for, if it was seen again."""
    rollouts: int = 0
    steps: int = 0
    """It was seen in this rollout, after so many of its actions."""
    places: list[list[float]] = dataclasses.field(default_factory=list)
    clicks: dict[str, str] = dataclasses.field(default_factory=dict)
    step_sec: float = 0.0
    others: dict[str, str] = dataclasses.field(default_factory=dict)
    """Other bugs that were seen: signature and text."""


def declared_bounds(table: AgentTable) -> list[tuple[float, float]]:
    """The declared least and greatest value of each number that the agents observe."""
    found: list[tuple[float, float]] = []
    for agent in table.agents:
        for spec in agent.spaces.observations:
            if spec.kind == "box":
                low = np.broadcast_to(np.array(spec.low), spec.size)
                high = np.broadcast_to(np.array(spec.high), spec.size)
                found += zip(low.tolist(), high.tolist(), strict=True)
            elif spec.kind == "discrete":
                found.append((0.0, spec.choices - 1.0))
    return found


def action_names(table: AgentTable) -> list[str]:
    """What each number of an action is, such as `push[0]`; with the agent if there are several."""
    found: list[str] = []
    for agent in table.agents:
        prefix = f"{agent.name} " if len(table) > 1 else ""
        for spec in agent.spaces.actions:
            indices = [f"[{i}]" for i in range(spec.width)] if spec.width > 1 else [""]
            found += [f"{prefix}{spec.key}{index}" for index in indices]
    return found


def play(
    game: HuntedGame, rollouts: list[Rollout], usual: Usual, user: UserOracles, signature: str
) -> Outcome:
    """Play rollouts one after another until a bug with this signature is seen."""
    watcher = Watcher(usual, user, declared_bounds(game.table))
    outcome = Outcome()
    width = len(action_names(game.table))
    for number, rollout in enumerate(rollouts):
        if any(len(action) != width for action in rollout.actions):
            raise UserError(f"not a trace of this game: its actions have {width} numbers")
        watcher.begin(rollout.seed)
        shot = game.reset(rollout.seed)
        outcome.places, outcome.clicks = [shot.place], {}
        actions: list[list[float] | None] = [None, *rollout.actions]
        for step, action in enumerate(actions):
            given = None if action is None else np.array(action, np.float32)
            if given is not None:
                shot = game.step(given)
                if step == 1 and shot.place:  # a reset may show where the body was before
                    outcome.places[0] = np.round(shot.bodies[0, 0, :3], 3).tolist()
                outcome.places.append(shot.place)
                outcome.step_sec = outcome.step_sec or len(shot.ticks) / shot.scene.ticks_per_sec
                if shot.infos and (clicked := shot.infos[0].get("clicked")):
                    outcome.clicks[str(step)] = str(clicked)
            for finding in watcher.watch(shot, given):
                if finding.signature == signature:
                    outcome.finding, outcome.rollouts, outcome.steps = finding, number, step
                    return outcome
                outcome.others[finding.signature] = finding.text
            if shot.lost:
                return outcome
    return outcome


def replay(trace: Trace, game: HuntedGame) -> Outcome:
    """Play a trace in a game that has just been started."""
    rollouts = [*trace.before, trace.rollout]
    return play(game, rollouts, trace.usual, trace.user_oracles, trace.finding.signature)


@contextlib.contextmanager
def open_trace(trace: Trace, game: Path, **options: object) -> Iterator[HuntedGame]:
    """Start the game of a trace."""
    with HuntedGame(trace.launch(game, **options), trace.user_oracles.watched) as hunted:
        yield hunted
