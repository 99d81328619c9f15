"""Ways to explore a game, behind one interface, and the bandit that shares the time among them."""

import abc
import dataclasses
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from estragon.envs.spaces import AgentSpaces
from estragon.envs.wire import AgentTable
from estragon.judge.hunt.archive import CellArchive, Key
from estragon.judge.hunt.game import Snapshot
from estragon.support.errors import UserError

STICK = 0.88
AHEAD_SEC, MOST_AHEAD_SEC = 0.4, 20.0
"""A body that is pushed is steered by where it will be."""
MOST_SOUGHT = 400
"""So many steps a thing is sought at most."""
ABOVE = 1.5
"""Who climbs on a thing aims so high above its middle, in sizes of the body."""
EVEN = 0.3
"""What an explorer that finds nothing gets of the time of the best one, about."""
NEARBY_STEPS = 40
"""So long most rollouts look about after they have returned to a cell."""
WAITS, LONG = 0.06, 1 << 20
"""How often a rollout does the same in a cell until the episode ends, or should have ended."""
SEEDS = 64
"""Most rollouts start from one of these seeds, so that cells of one seed add up."""


class ActionSampler:
    """Actions of all agents of a game as one vector."""

    def __init__(self, table: AgentTable, neutral: dict[str, float] | None = None) -> None:
        """`neutral` are the choices that change least, by number of the column."""
        self.spaces: list[AgentSpaces] = [agent.spaces for agent in table.agents]
        self.columns = [
            (row, spec, column)
            for row, spaces in enumerate(self.spaces)
            for spec in spaces.actions
            for column in range(spec.width)
        ]
        buttons = [
            spec for _, spec, _ in self.columns if spec.kind == "discrete" and spec.size == 2
        ]
        self._press = 0.5 if len(buttons) <= 3 else 1.5 / len(buttons)
        """How often a button is pressed: of many, seldom more than a few at once."""
        self._idle = np.zeros(len(self.columns), np.float32)
        for column, value in (neutral or {}).items():
            self._idle[int(column)] = value

    @property
    def idle(self) -> np.ndarray:
        """No movement, and of everything the choice that changes least."""
        return self._idle.copy()

    def random(self, random: np.random.Generator) -> np.ndarray:
        """Any action."""
        return np.array([self._draw(spec, random) for _, spec, _ in self.columns], np.float32)

    def strong(self, random: np.random.Generator) -> np.ndarray:
        """Full deflections only, as at the edges of a stick."""
        action = self.random(random)
        for index, (_, spec, _) in enumerate(self.columns):
            if spec.kind == "continuous":
                action[index] = random.choice([-1.0, 0.0, 1.0])
        return action

    def sweep(self) -> list[np.ndarray]:
        """Each direction of each column alone."""
        found = []
        for index, (_, spec, _) in enumerate(self.columns):
            choices = [-1.0, 1.0] if spec.kind == "continuous" else range(min(spec.size, 16))
            for value in choices:
                if value == self._idle[index]:
                    continue
                action = self.idle
                action[index] = value
                found.append(action)
        return found

    def valid(self, action: np.ndarray) -> np.ndarray:
        """The nearest action that there is."""
        sizes = [1.0 if spec.kind == "continuous" else spec.size - 1 for _, spec, _ in self.columns]
        lows = [-1.0 if spec.kind == "continuous" else 0.0 for _, spec, _ in self.columns]
        clipped: np.ndarray = np.clip(action, lows, sizes).astype(np.float32)
        return clipped

    def _draw(self, spec: Any, random: np.random.Generator) -> float:
        if spec.kind == "continuous":
            return round(float(random.uniform(-1.0, 1.0)), 2)
        if spec.size == 2:
            return float(random.random() < self._press)
        return float(random.integers(spec.size))


@dataclasses.dataclass
class Start:
    """Where a rollout of an explorer begins: a seed, and actions to repeat first."""

    seed: int
    prefix: list[list[float]]
    cell: Key | None = None
    """Where the prefix leads, if the game is deterministic."""
    steps: int | None = None
    """How long to play then, if it is known."""
    waits: bool = False
    """Whether to play until the episode ends, or should have ended."""


class Explorer(abc.ABC):
    """Chooses where rollouts begin, and every action."""

    def __init__(self, sampler: ActionSampler, random: np.random.Generator) -> None:
        self.sampler, self.random = sampler, random

    def start(self, archive: CellArchive) -> Start:
        """Where the next rollout begins."""
        return Start(int(self.random.integers(SEEDS)), [])

    def learn(self, shot: Snapshot) -> None:  # noqa: B027 - most do not
        """What came of the last action."""

    @abc.abstractmethod
    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The next action in this cell."""


class RandomExplorer(Explorer):
    """A new random action in every step."""

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """Any action."""
        return self.sampler.random(self.random)


class StickyExplorer(Explorer):
    """Random actions, each held for a while: gets further than noise."""

    def start(self, archive: CellArchive) -> Start:
        """At a seed; nothing is held yet."""
        self._held = self.sampler.random(self.random)
        return super().start(archive)

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The one before, or a new one."""
        if self.random.random() > STICK:
            draw = self.sampler.strong if self.random.random() < 0.5 else self.sampler.random
            self._held = draw(self.random)
        return self._held


class SweepExplorer(Explorer):
    """Scripted: holds each direction long, runs into edges and corners, mashes buttons."""

    def start(self, archive: CellArchive) -> Start:
        """At a seed, with a new script."""
        sweep, random = self.sampler.sweep(), self.random
        kind = random.integers(4)
        script: list[np.ndarray] = []
        for _ in range(12):
            action = sweep[random.integers(len(sweep))].copy()
            if kind == 1:  # towards a corner: two at once
                other = sweep[random.integers(len(sweep))]
                action = np.where(other != 0.0, other, action)
            if kind == 2:  # mash: on and off
                script += [action, self.sampler.idle] * int(random.integers(3, 12))
            elif kind == 3:  # a sequence of short presses
                script += [action] * int(random.integers(1, 4))
            else:
                script += [action] * int(random.integers(15, 60))
        self._script = iter(script)
        return super().start(archive)

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The next one of the script, then random ones."""
        action = next(self._script, None)
        return self.sampler.strong(self.random) if action is None else action


class NoveltyExplorer(StickyExplorer):
    """Count-based: prefers the action that was taken least in a cell."""

    def __init__(self, sampler: ActionSampler, random: np.random.Generator) -> None:
        super().__init__(sampler, random)
        self._moves = [*sampler.sweep(), sampler.idle]
        self._taken: dict[Key, np.ndarray] = {}
        self._last: Key = ()

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """Keep going within a cell; in a new cell, the action that was taken least."""
        if key != self._last or self.random.random() > STICK:
            taken = self._taken.setdefault(key, np.zeros(len(self._moves)))
            least = np.flatnonzero(taken == taken.min())
            chosen = int(self.random.choice(least))
            taken[chosen] += 1
            self._held, self._last = self._moves[chosen], key
        return self._held


class GoExplorer(StickyExplorer):
    """Returns to a promising cell by the actions that led there, then explores from it."""

    def start(self, archive: CellArchive) -> Start:
        """At a cell; from there random actions, or for a while one action, or none."""
        start = super().start(archive)
        self._patience, waits = 0, self.random.random() < WAITS
        if waits or self.random.random() < 0.3:
            sweep = [*self.sampler.sweep(), *[self.sampler.idle] * 3]
            self._held = sweep[self.random.integers(len(sweep))]
            self._patience = int(self.random.integers(5, 40))
        chosen = archive.choose(self.random)
        if chosen is None:
            return start
        key, cell = chosen
        steps = None if self.random.random() < 0.3 else NEARBY_STEPS
        if waits:
            self._patience = LONG
        prefix = cell.rollout.actions[: cell.steps]
        return Start(cell.rollout.seed, prefix, key, None if waits else steps, waits)

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The one before, or a new one."""
        self._patience -= 1
        return self._held if self._patience > 0 else super().act(shot, key, archive)


class RepeatExplorer(StickyExplorer):
    """Returns to where something was paid or punished, and does that again and again."""

    def start(self, archive: CellArchive) -> Start:
        """Where it was paid."""
        start = super().start(archive)
        self._loop: list[np.ndarray] = []
        if not archive.paid:
            return start
        paid = list(archive.paid.values())
        rollout = paid[self.random.integers(len(paid))]
        prefix = rollout.actions
        part = np.array(prefix[-int(self.random.integers(1, 14)) :], np.float32)
        moves = [spec.kind == "continuous" or spec.size > 2 for _, spec, _ in self.sampler.columns]
        kind, still = self.random.integers(4), np.where(moves, self.sampler.idle, part)
        idle = np.tile(self.sampler.idle, (2, 1))
        loops: list[Any] = [
            part,
            still,
            [*still[-2:], *idle],
            [*part, *np.where(moves, -part, part)],
        ]
        loop = [self.sampler.valid(each) for each in loops[kind]]
        self._loop = loop * int(self.random.integers(6, 24))
        return Start(rollout.seed, prefix, steps=len(self._loop) + 2 * NEARBY_STEPS)

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The next one of the loop, then random ones."""
        return self._loop.pop(0) if self._loop else super().act(shot, key, archive)


class SeekExplorer(StickyExplorer):
    """Goes to things and places, one after another, and stays, pushes or presses there.

    It drives one of the agents, and learns on the way where each action moves its body.
    """

    def __init__(self, sampler: ActionSampler, random: np.random.Generator) -> None:
        super().__init__(sampler, random)
        drawn = [*sampler.sweep(), *(sampler.strong(random) for _ in range(24))]
        self._agents = []
        """Of each: its columns, its moves, their effects, and how often each was tried."""
        for row in range(len(sampler.spaces)):
            mine = np.array([each == row for each, _, _ in sampler.columns])
            moves = np.unique([np.where(mine, each, sampler.idle) for each in drawn], axis=0)
            self._agents.append((mine, moves, np.zeros((len(moves), 3)), np.zeros(len(moves))))
        self._sought: dict[str, int] = {}
        self._pay: dict[str, float] = {}
        self._from = np.zeros(3)

    def start(self, archive: CellArchive) -> Start:
        """At a seed, or at a cell; nothing is sought yet."""
        start = super().start(archive)
        self._agent = int(self.random.integers(len(self._agents)))
        self._name, self._left, self._chosen = "", 0, -1
        chosen = archive.choose(self.random) if self.random.random() < 0.3 else None
        if chosen is None:
            return start
        return Start(chosen[1].rollout.seed, chosen[1].rollout.actions[: chosen[1].steps])

    def learn(self, shot: Snapshot) -> None:
        """Remember which things pay."""
        if self._name and self._agent < len(shot.rewards):
            paid = float(np.nan_to_num(shot.rewards[self._agent]))
            self._pay[self._name] = self._pay.get(self._name, 0.0) + paid

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """The action that should lead there."""
        held = super().act(shot, key, archive)
        mine, moves, effects, tried = self._agents[self._agent]
        if not shot.place or self._agent >= shot.bodies.shape[1]:
            return held
        at, velocity = np.nan_to_num(shot.bodies[-1, self._agent, :6]).reshape(2, 3)
        # A body that is pushed is steered by its velocity, others by where they are.
        steered = velocity if shot.scene.is_rigid else at
        if self._chosen >= 0:
            rate = max(0.3, 1.0 / (1.0 + tried[self._chosen]))
            effects[self._chosen] += rate * (steered - self._from - effects[self._chosen])
            tried[self._chosen] += 1
        if self._left <= 0:
            self._choose(shot, at)
        self._left -= 1
        places = dict(zip(shot.scene.things, shot.things[:, :3], strict=False))
        target = places.get(self._name, self._target) + self._above
        way = np.nan_to_num(target - at, posinf=0.0, neginf=0.0)
        if shot.scene.is_rigid:
            seconds = np.linalg.norm(way) / max(float(np.linalg.norm(velocity)), 1e-3)
            way -= velocity * np.clip(seconds, AHEAD_SEC, MOST_AHEAD_SEC)
        if self._lingers and np.linalg.norm(way) < archive.cell_size:
            self._chosen, self._left = -1, self._left - 2
            return np.where(mine, self.sampler.idle, held)
        if self._chosen < 0 or self.random.random() < 0.4:
            scores = effects @ way / max(float(np.linalg.norm(way)), 1e-6)
            scores += self.random.normal(0.0, 0.1, len(scores)) * np.abs(scores).max(initial=1e-3)
            self._chosen = int(np.argmax(np.where(tried < 2, np.inf, scores)))
            if self.random.random() < 0.08:
                self._chosen = int(self.random.integers(len(moves)))
        self._from = steered
        return np.where(mine, moves[self._chosen], held)

    def _choose(self, shot: Snapshot, at: np.ndarray) -> None:
        """What to go to: the thing that pays, one that was sought seldom, or any place."""
        random = self.random
        self._lingers = random.random() < 0.3
        self._above = np.zeros(3)
        if shot.scene.is_3d and random.random() < 0.3:  # onto it
            self._above[1] = ABOVE * shot.scene.sizes[0]
        known = [
            name
            for name, place in zip(shot.scene.things, shot.things, strict=False)
            if np.isfinite(place).all()
        ]
        ends = np.array(shot.scene.bounds or [shot.place, shot.place])
        self._target = ends[0] + random.uniform(-0.05, 1.05, 3) * (ends[1] - ends[0])
        chance, self._name = random.random(), ""
        if known and chance < 0.4:
            self._name = max(known, key=lambda each: self._pay.get(each, 0.0))
        elif known and chance < 0.8:
            self._name = min(known, key=lambda each: (self._sought.get(each, 0), random.random()))
        if self._name:
            self._sought[self._name] = self._sought.get(self._name, 0) + 1
            self._target = shot.things[shot.scene.things.index(self._name), :3]
        # As long as it takes at half the speed that it has, or that its best move gives it.
        effects = self._agents[self._agent][2]
        speed = float(np.linalg.norm(effects, axis=1).max())
        if shot.scene.is_rigid:
            seconds = len(shot.ticks) / shot.scene.ticks_per_sec
            speed = seconds * float(np.linalg.norm(shot.bodies[-1, self._agent, 3:6]))
        distance = float(np.linalg.norm(self._target - at))
        self._left = int(np.clip(2.0 * distance / max(speed, 1e-6), 20, MOST_SOUGHT))


class PolicyExplorer(StickyExplorer):
    """A trained policy, disturbed by held random actions."""

    def __init__(self, sampler: ActionSampler, random: np.random.Generator, model: Path) -> None:
        super().__init__(sampler, random)
        from estragon.trainers.players import OnnxPolicy

        if model.suffix == ".zip":
            model = _policy_in(model)
        self._policy = OnnxPolicy(model)
        self._noise = 0.0

    def start(self, archive: CellArchive) -> Start:
        """At a seed, with new noise."""
        self._noise = float(self.random.choice([0.02, 0.1, 0.3]))
        self._left = 0
        return super().start(archive)

    def act(self, shot: Snapshot, key: Key, archive: CellArchive) -> np.ndarray:
        """What the policy does, or now and then something else for a while."""
        if self._left == 0 and self.random.random() < self._noise:
            self._left = int(self.random.integers(1, 12))
            self._held = self.sampler.strong(self.random)
        if self._left:
            self._left -= 1
            return self._held
        spaces = self.sampler.spaces
        if len({each.obs_size for each in spaces}) != 1:
            raise UserError("--model: expected agents that all observe the same")
        from estragon.envs.spaces import ActionCodec

        rows = shot.obs.reshape(len(spaces), -1)
        images = np.zeros((len(spaces), 0), np.uint8)
        codec = ActionCodec(spaces[0])
        chosen = self._policy(
            spaces[0].split(rows, images), codec.space, np.zeros(len(spaces), bool)
        )
        return codec.encode(chosen, len(spaces)).reshape(-1)


EXPLORERS: dict[str, type[Explorer]] = {
    "random": RandomExplorer,
    "sticky": StickyExplorer,
    "sweep": SweepExplorer,
    "novelty": NoveltyExplorer,
    "goexplore": GoExplorer,
    "seek": SeekExplorer,
    "repeat": RepeatExplorer,
}


class Bandit:
    """Gives the time to the explorers that find most new cells and bugs."""

    def __init__(self, names: list[str]) -> None:
        self.gain = dict.fromkeys(names, 0.0)
        self.time_sec = dict.fromkeys(names, 0.0)
        self.bugs = dict.fromkeys(names, 0)
        self._recent = {name: [0.0, 1e-3] for name in names}

    def choose(self) -> str:
        """The next explorer: the one that had least of the time that its rate of finds deserves."""
        rates = {name: gain / sec for name, (gain, sec) in self._recent.items()}
        top = max(1e-9, *rates.values())
        return min(rates, key=lambda name: self.time_sec[name] / (EVEN + rates[name] / top))

    def reward(self, name: str, new_cells: int, bugs: int, sec: float) -> None:
        """What a rollout gained; old gains fade."""
        self.gain[name] += new_cells
        self.bugs[name] += bugs
        self.time_sec[name] += sec
        gain, spent = self._recent[name]
        self._recent[name] = [0.97 * gain + new_cells + 50.0 * bugs, 0.97 * spent + sec]


def _policy_in(model: Path) -> Path:
    """The ONNX file in an SB3 model that Estragon saved."""
    import tempfile

    from estragon.trainers.sb3.model_file import POLICY

    try:
        with zipfile.ZipFile(model) as archive:
            data = archive.read(POLICY)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(
            f"--model {model}: expected an .onnx file or a model of Estragon"
        ) from error
    folder = Path(tempfile.mkdtemp(prefix="estragon-"))
    (folder / POLICY).write_bytes(data)
    return folder / POLICY
