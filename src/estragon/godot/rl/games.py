"""All games of one environment: started together, told together, and started again when lost."""

import contextlib
import os
import socket
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from estragon.errors import UserError
from estragon.godot.display import display
from estragon.godot.restart import RestartBudget
from estragon.godot.rl.connect import Visitors, listen
from estragon.godot.rl.game import Game, GameLostError
from estragon.godot.rl.launch import Launch, Program
from estragon.godot.rl.outcome import LEFT, TRUNCATED, Outcome, Sight
from estragon.godot.rl.roster import Roster
from estragon.godot.supervised import GodotError, SupervisedProcess

SEEDS = 2**32


class Games:
    """Games that wait for actions; nothing of them outlives this object."""

    def __init__(self, launch: Launch) -> None:
        """Start all, and wait until each has introduced itself."""
        self.launch = launch
        self.restarts = 0
        self.games: list[Game] = []
        self._seed = launch.seed
        self._budget = RestartBudget(launch.restarts, launch.restart_window_sec)
        self._lost: dict[int, GameLostError] = {}
        # Not this object's own: what is closed at the end must not keep it alive.
        self._open = contextlib.ExitStack()
        self._end = weakref.finalize(self, _close, self.games, self._open, os.getpid())
        try:
            self._program = None if launch.by_hand else Program(launch)
            self._folder, self._advice = self._make_log_folder()
            self._env = dict(os.environ)
            if launch.show_window and self._program is not None:
                self._env = self._open.enter_context(display())
            starts = [self._start(index, launch.seed + index) for index in range(launch.n_parallel)]
            try:
                for index, (listener, process) in enumerate(starts):
                    self.games.append(self._connect(index, listener, process))
            finally:
                for listener, process in starts[len(self.games) :]:
                    listener.close()
                    if process is not None:
                        process.stop(grace_sec=0.0)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The games, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        self.close()

    @property
    def rosters(self) -> list[Roster]:
        """Who plays, game by game."""
        return [game.roster for game in self.games]

    @property
    def encoding(self) -> str:
        """How they talk: binary1 or json."""
        return self.games[0].wire.encoding

    def reset(self, seed: int | None = None) -> list[Outcome]:
        """Begin new episodes everywhere; with a seed, from its first one."""
        self._check_open()
        if seed is not None:
            self._seed = seed % SEEDS
        for index, game in enumerate(self.games):
            try:
                if game.is_awaited:
                    game.receive()  # of a step that was interrupted
                game.send_reset(None if seed is None else (self._seed + index) % SEEDS)
            except GameLostError as error:
                self._lost[index] = error
        return self.gather(reset=True)

    def send(self, actions: Sequence[np.ndarray]) -> None:
        """Tell every game what its agents do: float32, agent by agent, key by key."""
        self._check_open()
        for game in self.games:
            if game.is_awaited:
                raise UserError("the step before was interrupted: reset first")
        for index, (game, numbers) in enumerate(zip(self.games, actions, strict=True)):
            try:
                game.send_actions(numbers)
            except GameLostError as error:
                self._lost[index] = error

    def gather(self, *, reset: bool = False) -> list[Outcome]:
        """What came of it, game by game; a game that was lost has begun again."""
        found: list[Outcome] = []
        for index, game in enumerate(self.games):
            try:
                if self._lost and (error := self._lost.pop(index, None)):
                    raise error
                found.append(game.receive())
            except GameLostError as error:
                found.append(self._begin_again(index, error, reset=reset))
        return found

    def call(self, method: str) -> list[Any]:
        """Call a method of all agents; what it returned, agent by agent."""
        self._check_open()
        return [value for game in self.games for value in game.call(method)]

    def close(self) -> None:
        """End all games, for certain."""
        self._end()

    def _check_open(self) -> None:
        if not self._end.alive:
            raise UserError("the environment is closed; make a new one")

    def _begin_again(self, index: int, error: GameLostError, *, reset: bool) -> Outcome:
        """Start a lost game again; its agents leave, and new ones join."""
        before = self.games[index]
        reason: GodotError = error
        while True:
            self._budget.spend(reason)
            self.restarts += 1
            # Other episodes than those that it has played already.
            seed = (self._seed + index + self.launch.n_parallel * self.restarts) % SEEDS
            try:
                before.kill()
                listener, process = self._start(index, seed)
                game = self._connect(index, listener, process)
                self.games[index] = game
                game.send_reset(seed)
                fresh = game.receive()
            except GodotError as again:
                reason = again
            else:
                return fresh if reset else _all_anew(before.roster, fresh, str(error))

    def _start(self, index: int, seed: int) -> tuple[socket.socket, SupervisedProcess | None]:
        listener = listen(self.launch.port_of(index))
        if self._program is None:
            return listener, None
        try:
            port = listener.getsockname()[1]
            return listener, self._program.start(
                index, port, seed % SEEDS, self._folder, self._env, self._advice
            )
        except BaseException:
            listener.close()
            raise

    def _connect(
        self, index: int, listener: socket.socket, process: SupervisedProcess | None
    ) -> Game:
        name = f"the game on port {listener.getsockname()[1]}"
        try:
            with listener:
                visitors = Visitors(listener, self.launch.encoding)
                channel, info = visitors.wait(self.launch.start_timeout_sec, process)
            try:
                return Game(
                    channel,
                    info,
                    process,
                    name=name,
                    step_timeout_sec=self.launch.step_timeout_sec,
                )
            except BaseException:
                channel.close()
                raise
        except BaseException:
            if process is not None:
                process.stop(grace_sec=0.0)
            raise

    def _make_log_folder(self) -> tuple[Path, str]:
        if self.launch.log_folder is not None:
            folder = Path(os.fspath(self.launch.log_folder))
            return folder, f"the whole logs are in {folder}"
        temporary = tempfile.TemporaryDirectory(prefix="estragon-")
        return Path(self._open.enter_context(temporary)), "log_folder=… keeps the whole log"


def _all_anew(before: Roster, fresh: Outcome, why: str) -> Outcome:
    """An outcome in which everybody's episode is cut off, and a new game's agents join."""
    roster = before.joined_by(fresh.roster.agents)
    gone = len(before)
    infos = fresh.infos or [{} for _ in fresh.roster.agents]
    states = np.concatenate([np.full(gone, TRUNCATED | LEFT, np.uint8), fresh.states & LEFT])
    numbers = np.zeros(int(before.numbers[-1]), np.float32)
    images = np.zeros(int(before.image_bytes[-1]), np.uint8)
    masks = None
    if fresh.masks is not None:
        masks = np.concatenate([np.ones(int(before.mask_bytes[-1]), np.uint8), fresh.masks])
    return Outcome(
        roster=roster,
        joined=len(fresh.roster),
        rewards=np.concatenate([np.zeros(gone, np.float32), fresh.rewards]),
        states=states,
        seen=Sight(
            roster,
            np.concatenate([numbers, fresh.seen.numbers]),
            np.concatenate([images, fresh.seen.images]),
        ),
        masks=masks,
        infos=[{"game_lost": why} for _ in range(gone)] + infos,
        lost=why,
    )


def _close(games: list[Game], opened: contextlib.ExitStack, owner: int) -> None:
    """Close all games at once, then what they were started with."""
    if os.getpid() != owner:
        return  # a fork of the trainer ends, not the trainer
    try:
        for game in games:
            game.say_goodbye()
        for game in games:
            game.close()
    finally:
        opened.close()
