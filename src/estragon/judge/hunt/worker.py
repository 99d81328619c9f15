"""A worker of a hunt: plays one game process, rollout by rollout, and hands on what looks wrong."""

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from estragon.godot.process import GodotError
from estragon.judge.hunt.archive import Rollout
from estragon.judge.hunt.explorers import EXPLORERS, ActionSampler, Explorer, PolicyExplorer, Start
from estragon.judge.hunt.game import HuntedGame

if TYPE_CHECKING:
    from estragon.judge.hunt.hunt import Hunt

PROCESS_STEPS = 12_000
"""A process is replaced after so many steps, so that what it has played stays short enough."""
CROSSES = 0.3
"""Share of rollouts that go on when an episode ends; traces of one episode are shorter."""
REFERENCES, REFERENCE_STEPS = 2, 10
"""Short rollouts that every process plays three times first, and now and then again."""
AGAIN = 0.12
"""Share of the rollouts that begin like a reference."""


class Worker(threading.Thread):
    """One game process, played until the hunt is over."""

    def __init__(self, hunt: "Hunt", number: int) -> None:
        super().__init__(daemon=True)
        self.error: Exception | None = None
        self._hunt = hunt
        seeds = [hunt.settings.launch.seed, number, int(hunt.state.steps)]
        self._random = np.random.default_rng(seeds)
        self._history: list[Rollout] = []

    def run(self) -> None:
        """Play; an error is kept for the main thread."""
        try:
            with self._hunt.open_game() as game:
                self._prepare(game)
                while not self._hunt.is_over:
                    self._play(game)
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.error = error

    def _prepare(self, game: HuntedGame) -> None:
        hunt = self._hunt
        sampler = ActionSampler(game.table, hunt.state.usual.neutral)
        self._explorers: dict[str, Explorer] = {
            name: EXPLORERS[name](sampler, self._random) for name in hunt.settings.explorers
        }
        if hunt.settings.model is not None:
            self._explorers["policy"] = PolicyExplorer(sampler, self._random, hunt.settings.model)
        random = np.random.default_rng(0)
        self._references = []
        for seed in range(REFERENCES):
            held = [sampler.strong(random).tolist() for _ in range(2)]
            actions = [each for each in held for _ in range(REFERENCE_STEPS // 2)]
            self._references.append(Start(seed, actions))
        self._renew(game, restart=False)

    def _renew(self, game: HuntedGame, *, restart: bool = True) -> None:
        if restart:
            game.restart()
        self._history = []
        self._watcher = self._hunt.new_watcher(game)
        self._to_repeat = [*self._references] * 3

    def _play(self, game: HuntedGame) -> None:
        """One rollout of the explorer whose turn it is."""
        hunt, began = self._hunt, time.monotonic()
        with hunt.lock:
            name = hunt.bandit.choose()
            start = self._explorers[name].start(hunt.archive)
        only_repeats = bool(self._to_repeat)
        if only_repeats:
            start = self._to_repeat.pop()
        elif self._random.random() < AGAIN:
            start = self._references[self._random.integers(REFERENCES)]
        rollout = Rollout(start.seed, [])
        self._history.append(rollout)
        self._watcher.begin(rollout.seed)
        shot = game.reset(rollout.seed)
        seen, new_cells = self._watcher.watch(shot, None), 0
        findings = [each for each in seen if hunt.takes(each, self._history)]
        after = self._length(start.waits) if start.steps is None else start.steps
        length = len(start.prefix) + (0 if only_repeats else after)
        crosses = self._random.random() < CROSSES
        paid = max(hunt.state.usual.step_reward, 1e-3)
        while not findings and not shot.lost and not hunt.is_over:
            step = len(rollout.actions)
            is_long = step >= length and not self._watcher.is_overdue
            if is_long or (shot.ended.all() and step and not crosses):
                break
            with hunt.lock:
                key = hunt.archive.key_of(shot)
                if step:  # a reset may show where the body was before
                    new_cells += hunt.archive.visit(key, shot, rollout, step)
                if step == len(start.prefix) and start.cell is not None:
                    hunt.state.returns += 1
                    hunt.state.returned += key == start.cell
            if step < len(start.prefix):
                action = np.array(start.prefix[step], np.float32)
            else:
                action = self._explorers[name].act(shot, key, hunt.archive)
            rollout.actions.append([float(value) for value in action])
            shot = game.step(action)
            self._explorers[name].learn(shot)
            if not shot.ended.any() and np.abs(shot.rewards).max(initial=0.0) > 0.3 * paid:
                hunt.archive.note_pay(hunt.archive.key_of(shot), rollout, self._random)
            findings = [
                each
                for each in self._watcher.watch(shot, action)
                if hunt.takes(each, self._history)
            ]
        bugs = 0
        for finding in findings:
            played = [Rollout(each.seed, list(each.actions)) for each in self._history]
            growth = self._watcher.growth(finding.key)
            try:
                bugs += hunt.handle(game, finding, played, growth, name)
            except GodotError:
                game.restart()
        is_old = sum(len(each.actions) for each in self._history) > PROCESS_STEPS
        if findings or shot.lost or is_old:
            self._renew(game)
        with hunt.lock:
            hunt.state.steps += len(rollout.actions)
            hunt.bandit.reward(name, new_cells, bugs, time.monotonic() - began)

    def _length(self, waits: bool) -> int:
        """Steps of a rollout: about an episode, now and then longer than any should last."""
        usual = self._hunt.state.usual.longest_episode or 400
        if waits or self._random.random() < 0.15:
            return min(int(1.7 * usual) + 60, 3000)
        return int(np.clip(self._random.uniform(0.3, 1.1) * usual, 60, 600))
