"""`estragon judge hunt`: games played side by side until they break; every bug becomes a trace."""

import contextlib
import copy
import itertools
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from estragon.godot.process import GodotError
from estragon.godot.project import ready_project
from estragon.judge import provenance
from estragon.judge.hunt.archive import CellArchive, Rollout
from estragon.judge.hunt.explorers import EXPLORERS, ActionSampler, Bandit
from estragon.judge.hunt.game import HuntedGame
from estragon.judge.hunt.oracles import LEAK_SETTLES, Finding, Watcher
from estragon.judge.hunt.shorten import Shortener, cut
from estragon.judge.hunt.state import STATE, Bug, HuntSettings, HuntState
from estragon.judge.hunt.traces import FORMAT, Trace, action_names, declared_bounds
from estragon.judge.hunt.usual import Usual, Warmup, level_of
from estragon.judge.hunt.words import to_markdown
from estragon.judge.hunt.worker import REFERENCES, Worker
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json, write_whole
from estragon.support.interrupts import StopRequest
from estragon.support.progress import Progress

WARMUP_STEPS, WARMUP_ROLLOUTS = 5000, 12
WARMUP_LENGTHS = (300, 1200, 300)
WARMUP_LEAST = 3
WARMUP_SHARE, WARMUP_SEC = 0.25, 60.0
SAVE_SEC = 20.0
RECENT, LEAK_RESETS = 32, 20
"""A leak needs no more rollouts than these, usually; and at least these."""
TRIES = 3
"""How often a finding may fail to replay before it is left alone."""
BY_PLACE = ("stuck", "overlap", "speed", "crash", "hang")
"""Oracles whose findings at another place may be other bugs."""
MOST_PLACES = 2
MOST_OBSERVATIONS = 3
"""Of so many at most it is told that they leave their range: rays often do it together."""
OBSERVATION = "range: observation "
SHORTEN_SEC = 30.0
SHORTER = 0.6
"""A bug is handled again if it was seen after so much fewer actions."""


class Hunt:
    """All games of a hunt, and what they share; `lock` guards it."""

    def __init__(self, settings: HuntSettings, progress: Progress, stop: StopRequest) -> None:
        self.settings, self.progress, self.stop = settings, progress, stop
        self.lock = threading.Lock()
        self.archive = CellArchive(1.0, [])
        names = [*settings.explorers, *(["policy"] if settings.model else [])]
        self.bandit = Bandit(names)
        self._lengths: dict[tuple[str, *tuple[int, ...]], int] = {}
        """Of what was handled, or is being handled: signature, and place where that matters."""
        self._start = self._saved_at = time.monotonic()
        if (settings.game / "project.godot").is_file():
            ready_project(settings.game, settings.launch.scene)  # which adds files of Godot's own
        digest = provenance.build_of(settings.game).digest
        self.state = HuntState(settings.game.absolute().name, settings.launch.scene, digest)
        self._load()

    @property
    def seconds(self) -> float:
        """Played in this run."""
        return time.monotonic() - self._start

    @property
    def is_over(self) -> bool:
        """Whether the time is up, or a stop was requested."""
        return self.stop.made or self.seconds > 60.0 * self.settings.minutes

    def run(self) -> HuntState:
        """Warm up, hunt, save."""
        played = self.state.played_sec
        with self.open_game() as game:
            self._start = time.monotonic()  # an import does not count
            if not self.state.usual.steps:
                usual = self._warm_up(game)
                if not self.stop.made:  # else it would be what is usual for good
                    self.state.usual = usual
            self._make_archive(game)
        workers = [Worker(self, number) for number in range(self.settings.games)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            self._report()
            with self.lock:
                self.state.played_sec = played + self.seconds
                if time.monotonic() - self._saved_at > SAVE_SEC:
                    self._save()
        for worker in workers:
            if worker.error is not None:
                raise worker.error
        with self.lock:
            self._save()
        self._shorten()
        return self.state

    def _shorten(self) -> None:
        """Shorten the traces that are new; a stop leaves the others as they are."""
        left = [bug for bug in self.state.bugs if not bug.is_short]
        if not left or self.stop.made:
            return
        budget = float(np.clip(6.0 * self.settings.minutes, 10.0, SHORTEN_SEC))
        with self.open_game() as game:
            for number, bug in enumerate(left):
                if self.stop.made:
                    return
                self.progress.update(number, len(left), " traces shortened")
                trace = Trace.read(self.settings.output / bug.trace)
                user = self.settings.user
                shortener = Shortener(game, trace.finding, trace.usual, user, budget)
                rollouts = [*trace.before, trace.rollout]
                with contextlib.suppress(GodotError):  # then it stays as it is
                    outcome = shortener.reproduce(rollouts)
                    if outcome.finding is not None:
                        trace.take(*shortener.shorten(rollouts, outcome))
                self._add(trace, shortened=bug)

    def open_game(self) -> HuntedGame:
        """Start a game."""
        return HuntedGame(self.settings.launch, self.settings.user.watched)

    def _warm_up(self, game: HuntedGame) -> Usual:
        """Learn what is usual; whatever is wrong now will be found again by a shorter way."""
        warmup, random = Warmup(), np.random.default_rng(self.settings.launch.seed)
        limit = min(WARMUP_SEC, 60.0 * self.settings.minutes * WARMUP_SHARE)
        sampler = ActionSampler(game.table)
        explorers = [kind(sampler, random) for kind in list(EXPLORERS.values())[:3]]
        for number in itertools.count():
            is_late = self.seconds > limit and number >= WARMUP_LEAST
            is_enough = warmup.usual.steps >= WARMUP_STEPS and number >= WARMUP_ROLLOUTS
            if self.is_over or is_late or is_enough:
                break
            explorer = explorers[number % 3]
            explorer.start(self.archive)
            shots, actions = [game.reset(number)], []
            length = WARMUP_LENGTHS[number // 3 % 3] if self.seconds < limit else 60
            while not shots[-1].lost and len(shots) <= length and not self.is_over:
                actions.append(explorer.act(shots[-1], (), self.archive))
                shots.append(game.step(actions[-1]))
            self.progress.update(self.seconds, limit, " s of warm-up")
            warmup.learn([each for each in shots if not each.lost], actions)
            if shots[-1].lost or game.reset(0).lost:
                game.restart()
            elif not (first := game.step(sampler.idle)).lost:
                warmup.learn_first(first)
            else:
                game.restart()
        self.state.steps += warmup.usual.steps
        return warmup.finish()

    def _make_archive(self, game: HuntedGame) -> None:
        usual = self.state.usual
        shot = game.reset(0)
        if usual.low:
            low, high = level_of(shot.scene.bounds, usual)
            self.state.level = max(float((high - low).max()), 1e-3)
        flags = tuple(each for each in usual.flags if each not in usual.lasting)
        archive = CellArchive(
            self.state.level, usual.obs, moves=usual.low != usual.high, flags=flags
        )
        file = self.settings.output / "archive.json"
        if file.is_file():
            archive.load(read_json(file, dict[str, Any]))
        self.archive = archive

    def new_watcher(self, game: HuntedGame) -> Watcher:
        """All oracles, for a new process."""
        return Watcher(self.state.usual, self.settings.user, declared_bounds(game.table))

    def takes(self, finding: Finding, rollouts: list[Rollout]) -> bool:
        """Whether the caller must handle a finding: it is new, or a known one much shorter."""
        key = self._key_of(finding)
        with self.lock:
            same = [each for each in self._lengths if each[0] == finding.signature]
            failed = self.state.unconfirmed.get(finding.signature, 0)
            if failed >= TRIES or (key not in self._lengths and len(same) >= MOST_PLACES):
                return False
            alike = sum(each[0].startswith(OBSERVATION) for each in self._lengths)
            if (
                not same
                and finding.signature.startswith(OBSERVATION)
                and alike >= MOST_OBSERVATIONS
            ):
                return False
            length = len(rollouts[-1].actions)
            if key in self._lengths and length >= SHORTER * self._lengths[key]:
                return False
            self._lengths[key] = length
            return True

    def _key_of(self, bug: Finding | Bug) -> tuple[str, *tuple[int, ...]]:
        """The same bug has the same key: its signature, and where it was, if that matters."""
        place = bug.place if bug.oracle in BY_PLACE else []
        return (
            f"{bug.oracle}: {bug.key}",
            *(round(2.0 * value / self.state.level) for value in place),
        )

    def handle(
        self,
        game: HuntedGame,
        finding: Finding,
        rollouts: list[Rollout],
        growth: np.ndarray,
        explorer: str,
    ) -> bool:
        """Confirm a finding by a replay in a new process, shorten it, write its trace.

        `growth` is how much each rollout leaked, if that is the bug.
        """
        found_sec, settings, launch = self.state.played_sec, self.settings, self.settings.launch
        with self.lock:  # a replay must know what was known, but the hunt does not learn from it
            usual = copy.deepcopy(self.state.usual)
        shortener = Shortener(game, finding, usual, settings.user, 0.0)
        for tried, first_length in _tries(finding, rollouts, growth):  # noqa: B007
            outcome = shortener.reproduce(tried)
            if outcome.finding is not None:
                break
        else:
            return self._give_up(finding)
        kept = cut(tried, outcome)
        if finding.oracle == "frame time":  # twice, because time is never the same
            outcome = shortener.reproduce(kept)
        if outcome.finding is None:
            return self._give_up(finding)
        trace = Trace(
            format=FORMAT,
            game=self.state.game,
            digest=self.state.digest,
            scene=launch.scene,
            arguments={key: str(value) for key, value in launch.arguments.items()},
            seed=launch.seed,
            action_repeat=launch.action_repeat,
            columns=action_names(game.table),
            before=kept[:-1],
            rollout=kept[-1],
            finding=outcome.finding,
            usual=usual,
            log_patterns=list(settings.user.log_patterns),
            expects=list(settings.user.expects),
            first_length=first_length,
            explorer=explorer,
            found_sec=round(found_sec, 1),
            first_seen=provenance.now(),
        )
        trace.take(kept, outcome)
        self._lengths[self._key_of(finding)] = trace.length
        self._add(trace)
        return True

    def _give_up(self, finding: Finding) -> bool:
        """A finding did not show again; it may be tried again later."""
        with self.lock:
            count = self.state.unconfirmed.get(finding.signature, 0)
            self.state.unconfirmed[finding.signature] = count + 1
            known = {f"{bug.oracle}: {bug.key}" for bug in self.state.bugs}
            if finding.signature not in known:
                for key in [each for each in self._lengths if each[0] == finding.signature]:
                    del self._lengths[key]
        return False

    def _add(self, trace: Trace, shortened: Bug | None = None) -> None:
        """Write a trace; it replaces a longer one of the same bug, or the one it was made from."""
        finding, folder = trace.finding, self.settings.output / "traces"
        with self.lock:
            bugs = self.state.bugs
            key = self._key_of(finding)
            same = (each for each in bugs if self._key_of(each) == key)
            known = next(same, None) if shortened is None else shortened
            if known is not None:
                if shortened is None and trace.length >= known.length:
                    return
                trace.explorer, trace.found_sec = known.explorer, known.found_sec
                trace.first_seen, trace.first_length = known.first_seen, known.first_length
            name = f"bug{len(bugs) + 1:02}_{finding.oracle.replace(' ', '_')}"
            name = Path(known.trace).stem if known else name
            trace.write(folder / f"{name}.json")
            write_whole(folder / f"{name}.md", to_markdown(trace, f"{name}.json").encode())
            bug = Bug(
                oracle=finding.oracle,
                key=finding.key,
                text=finding.text,
                place=finding.place,
                trace=f"traces/{name}.json",
                first_seen=trace.first_seen,
                found_sec=trace.found_sec,
                explorer=trace.explorer,
                length=trace.length,
                first_length=trace.first_length,
                is_short=shortened is not None,
            )
            if known is None:
                bugs.append(bug)
                self.progress.say(f"found {finding.signature}, {trace.length} actions: {name}.json")
            else:
                bugs[bugs.index(known)] = bug
            self._save()

    def _report(self) -> None:
        state, seconds = self.state, self.seconds
        rate = len(self.archive.cells) / max(seconds, 1e-3)
        text = f" s, {state.steps} steps, {len(self.archive.cells)} cells ({rate:.0f}/s), "
        self.progress.update(
            min(seconds, 60.0 * self.settings.minutes),
            60.0 * self.settings.minutes,
            f"{text}{len(state.bugs)} bugs",
        )

    def _save(self) -> None:
        """Write everything; the caller has the lock."""
        self._saved_at = time.monotonic()
        state = self.state
        state.cells = len(self.archive.cells)
        self.archive.curve.append((round(state.played_sec, 1), state.cells))
        state.explorers = {
            name: {
                "sec": round(self.bandit.time_sec[name], 1),
                "cells": self.bandit.gain[name],
                "bugs": self.bandit.bugs[name],
            }
            for name in self.bandit.gain
        }
        write_json(self.settings.output / "archive.json", self.archive.plain())
        write_json(self.settings.output / STATE, msgspec.to_builtins(state))

    def _load(self) -> None:
        file = self.settings.output / STATE
        if not file.is_file():
            return
        state = read_json(file, HuntState)
        if state.digest != self.state.digest or state.scene != self.state.scene:
            raise UserError(
                f"{self.settings.output} has the hunt of another build or scene; use another "
                "--output, or delete the folder"
            )
        self.state = state
        self._lengths = {self._key_of(bug): bug.length for bug in state.bugs}
        for name, numbers in state.explorers.items():
            if name in self.bandit.gain:
                self.bandit.gain[name], self.bandit.bugs[name] = (
                    numbers["cells"],
                    int(numbers["bugs"]),
                )


def _tries(
    finding: Finding, rollouts: list[Rollout], growth: np.ndarray
) -> list[tuple[list[Rollout], int]]:
    """What may show a finding again, the shortest first, and how long it was at first."""
    tries = [rollouts[-1:], rollouts] if len(rollouts) > 1 else [rollouts]
    again: list[tuple[list[Rollout], int]] = []
    if finding.oracle == "leak":  # one rollout again and again should do, or the last ones
        tries = [rollouts[-RECENT:], rollouts]
        lengths = [10 + len(each.actions) for each in rollouts[: len(growth)]]
        worst = LEAK_SETTLES + np.argsort(-(growth / lengths)[LEAK_SETTLES:])
        length = sum(len(each.actions) for each in rollouts[-LEAK_RESETS:])
        short = [rollouts[i] for i in worst if LEAK_RESETS * len(rollouts[i].actions) < length]
        again = [([each] * LEAK_RESETS, length) for each in short[:2]]
    elif finding.oracle == "reset":
        tries = [rollouts[: 3 * REFERENCES] + rollouts[3 * REFERENCES :][-2:], rollouts]
    elif finding.oracle == "frame time":
        tries = [rollouts[-1:]]  # often the machine's fault: not worth a long replay
    return again + [(each, sum(len(rollout.actions) for rollout in each)) for each in tries]
