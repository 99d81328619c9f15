"""All games of one environment: started together, told together, and started again when lost."""

import contextlib
import os
import re
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from estragon.envs.connect import Visitors, listen
from estragon.envs.game import Game, GameLostError
from estragon.envs.launch import Launch, Program
from estragon.envs.messages import EnvInfo
from estragon.envs.outcome import LEFT, TRUNCATED, Outcome, Sight
from estragon.envs.roster import Roster
from estragon.envs.spaces import is_image
from estragon.godot.display import display, has_display
from estragon.godot.process import GodotError, RestartBudget, SupervisedProcess
from estragon.support.errors import UserError

SEEDS = 2**32
# Godot's own words where a picture is read that nobody draws; our addon's sensors ask first.
UNDRAWN = re.compile(
    rb"rendering/dummy/storage/texture_storage"
    rb"|(?:a camera sensor needs|no pictures without) a renderer"
)
INTRODUCTION_SEC = 2.0

_known_to_draw: set[tuple[object, ...]] = set()
"""What needed drawing once in this process: it is not tried without again."""


class _UndrawnError(GodotError):
    """A game was started without drawing, and needs it."""


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
            self._draws = False
            if self._program is not None and _draws_at_once(launch):
                self._begin_drawing()
            try:
                self._start_all()
            except _UndrawnError:
                self._begin_drawing()
                self._start_all()
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

    @property
    def warnings(self) -> list[str]:
        """What was noticed while the games were made ready to start."""
        return [] if self._program is None else self._program.warnings

    def close(self) -> None:
        """End all games, for certain."""
        self._end()

    def _check_open(self) -> None:
        if not self._end.alive:
            raise UserError("the environment is closed; make a new one")

    def _start_all(self) -> None:
        launch = self.launch
        starts = [self._start(index, launch.seed + index) for index in range(launch.n_parallel)]
        try:
            for index, (listener, process) in enumerate(starts):
                self.games.append(self._connect(index, listener, process))
        except BaseException as error:
            for game in self.games:
                game.kill()
            self.games.clear()
            for listener, process in starts:
                listener.close()
                if process is not None:
                    process.stop(grace_sec=0.0)
                    if isinstance(error, _UndrawnError):
                        process.log_file.unlink()  # it tells of nothing else
            raise

    def _begin_drawing(self) -> None:
        """Start games on a display from now on."""
        self._draws = True
        if not self.launch.show_window:
            _known_to_draw.add(_what_is_played(self.launch))
        self._env = self._open.enter_context(display())

    def _begin_again(self, index: int, error: GameLostError, *, reset: bool) -> Outcome:
        """Start a lost game again; its agents leave, and new ones join."""
        before = self.games[index]
        reason: GodotError = error
        while True:
            if self._may_begin_drawing and _lacks_pictures(before.process):
                self._begin_drawing()
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
            except _UndrawnError as again:
                self._begin_drawing()
                reason = again
            except GodotError as again:
                reason = again
            else:
                return fresh if reset else _all_anew(before.roster, fresh, str(error))

    def _start(self, index: int, seed: int) -> tuple[socket.socket, SupervisedProcess | None]:
        listener = listen(self.launch.port_of(index))
        if self._program is None:
            return listener, None
        try:
            if self._draws and not has_display(self._env):
                self._env = self._open.enter_context(display())  # the one before was killed
            return listener, self._program.start(
                index,
                listener.getsockname()[1],
                seed % SEEDS,
                self._folder,
                self._env,
                self._advice,
                draws=self._draws,
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
                doubt = self._program.doubt if self._program else ""
                visitors = Visitors(listener, self.launch.encoding, doubt)
                channel, info = visitors.wait(
                    self.launch.start_timeout_sec, process, self._impatience(process)
                )
            try:
                self._require_drawing(name, info)
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

    @property
    def _may_begin_drawing(self) -> bool:
        return self._program is not None and not self._draws and self.launch.draws is None

    def _require_drawing(self, name: str, info: EnvInfo) -> None:
        if self._may_begin_drawing and _has_images(info):
            raise _UndrawnError(f"{name} has images, but does not draw")

    def _impatience(self, process: SupervisedProcess | None) -> Callable[[], None]:
        """Raises where a game asked for pictures that are not drawn, and then said nothing more."""
        first: list[float] = []

        def check() -> None:
            if self._may_begin_drawing and (first or _lacks_pictures(process)):
                first.append(time.monotonic())
                ended = process is None or process.status is not None
                if ended or time.monotonic() - first[0] > INTRODUCTION_SEC:
                    raise _UndrawnError("the game has no pictures, and does not introduce itself")

        return check

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


def _draws_at_once(launch: Launch) -> bool:
    if launch.show_window or launch.draws is not None:
        return launch.show_window or bool(launch.draws)
    return _what_is_played(launch) in _known_to_draw


def _what_is_played(launch: Launch) -> tuple[object, ...]:
    arguments = tuple(sorted((key, str(value)) for key, value in launch.arguments.items()))
    return str(launch.env_path), launch.scene, arguments


def _has_images(info: EnvInfo) -> bool:
    spaces = info.observation_space
    each = spaces if isinstance(spaces, list) else [spaces]
    return any(
        is_image(key, text)
        for space in each
        if isinstance(space, dict)
        for key, text in space.items()
    )


def _lacks_pictures(process: SupervisedProcess | None) -> bool:
    return process is not None and UNDRAWN.search(process.log_file.read_bytes()) is not None


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
