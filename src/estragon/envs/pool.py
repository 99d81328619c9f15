"""The games of one environment: started together, stepped together, restarted when lost."""

import contextlib
import os
import re
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from estragon.envs.connection import GameConnection, GameLostError, HandshakeServer
from estragon.envs.http_channel import (
    TOKEN_VARIABLE,
    HttpEndpoint,
    given_token,
    new_token,
)
from estragon.envs.launch import HTTP, GameProgram, Launch
from estragon.envs.parameter_feed import ParameterFeed
from estragon.envs.spaces import is_image
from estragon.envs.wire import LEFT, TRUNCATED, AgentTable, EnvInfo, Observations, StepResult
from estragon.godot.display import display, has_display
from estragon.godot.http import free_port
from estragon.godot.process import GodotError, RestartBudget, SupervisedProcess
from estragon.support.errors import UserError
from estragon.support.parameters import Plan

MAX_SEED = 2**32
# What Godot logs when an image is read without a renderer; our addon's sensors check first.
NO_RENDERER = re.compile(
    rb"rendering/dummy/storage/texture_storage"
    rb"|(?:a camera sensor needs|no pictures without) a renderer"
)
NO_RENDERER_GRACE_SEC = 2.0
Endpoint = HandshakeServer | HttpEndpoint

_needed_rendering: set[tuple[object, ...]] = set()
"""What needed rendering once in this process: it is rendered at once the next time."""


class _NeedsRenderingError(GodotError):
    """A game that needs rendering was started without."""


class GamePool:
    """Games that wait for actions; none of them outlives this object."""

    def __init__(self, launch: Launch) -> None:
        """Start all games, and wait for their handshakes."""
        self.launch = launch
        self.restarts = 0
        self.games: list[GameConnection] = []
        self.parameter_feed: ParameterFeed | None = None
        if launch.parameters is not None:
            self.parameter_feed = ParameterFeed(Plan.of(launch.parameters), launch.seed)
        self._seed = launch.seed
        self._budget = RestartBudget(launch.restarts, launch.restart_window_sec)
        self._lost: dict[int, GameLostError] = {}
        self._to_reload: set[int] = set()
        # The finalizer must not hold a reference to this object.
        self._resources = contextlib.ExitStack()
        self._finalizer = weakref.finalize(self, _close, self.games, self._resources, os.getpid())
        try:
            self._program = None
            if not launch.from_editor:
                self._program = GameProgram(launch, *self._make_log_folder())
            self._env = dict(os.environ)
            self._token = ""
            if launch.wire == HTTP:
                self._token = given_token() if self._program is None else new_token()
            self._draws = False
            if self._program is not None and _renders_at_once(launch):
                self._enable_rendering()
            try:
                self._start_all()
            except _NeedsRenderingError:
                self._enable_rendering()
                self._start_all()
            self._check_parameters()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The pool, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @property
    def tables(self) -> list[AgentTable]:
        """The agents that are playing, game by game."""
        return [game.table for game in self.games]

    @property
    def encoding(self) -> str:
        """The encoding the games speak: binary1 or json."""
        return self.games[0].wire.encoding

    @property
    def warnings(self) -> list[str]:
        """What was noticed when the project was imported."""
        return [] if self._program is None else self._program.warnings

    def reset(self, seed: int | None = None) -> list[StepResult]:
        """Start new episodes in all games; with a seed, its first ones."""
        self._check_open()
        self._to_reload.clear()
        if seed is not None:
            self._seed = seed % MAX_SEED
        feed = self.parameter_feed
        if feed is not None:
            feed.reset(None if seed is None else self._seed)
        for index, game in enumerate(self.games):
            try:
                if game.is_waiting:
                    game.receive()  # of a step that was interrupted
                game_seed = None if seed is None else (self._seed + index) % MAX_SEED
                game.send_reset(game_seed, feed.start(index, game.table) if feed else None)
            except GameLostError as error:
                self._lost[index] = error
        return self.receive(reset=True)

    def send(self, actions: Sequence[np.ndarray]) -> None:
        """Send every game its actions: float32, agent by agent, key by key."""
        self._check_open()
        for game in self.games:
            if game.is_waiting:
                raise UserError("the last step was interrupted: call reset first")
        unsent = self.parameter_feed.take_unsent() if self.parameter_feed is not None else {}
        for index, (game, values) in enumerate(zip(self.games, actions, strict=True)):
            if index in self._to_reload:
                continue
            try:
                if index in unsent:
                    game.send_parameters(unsent[index])
                game.send_actions(values)
            except GameLostError as error:
                self._lost[index] = error

    def receive(self, *, reset: bool = False) -> list[StepResult]:
        """The answers, game by game; lost games have been restarted."""
        results: list[StepResult] = []
        for index, game in enumerate(self.games):
            if index in self._to_reload:
                results.append(self._reload(index))
                continue
            try:
                if self._lost and (error := self._lost.pop(index, None)):
                    raise error
                result = game.receive()
                if self.parameter_feed is not None and (reset or not result.uneventful):
                    self.parameter_feed.note(index, result, reset=reset)
                results.append(result)
            except GameLostError as error:
                results.append(self._restart(index, error, reset=reset))
        return results

    def reload_scene(self) -> None:
        """Load every game's scene again in the next step, in which all episodes are truncated."""
        self._check_open()
        if self.launch.wire != HTTP:
            raise UserError("reload_scene: only games with wire='http' can reload their scene")
        self._to_reload.update(range(len(self.games)))

    def restart(self) -> None:
        """Replace all games by new processes that begin as the first ones did."""
        self._check_open()
        for index, game in enumerate(self.games):
            game.kill()
            self.games[index] = self._connect(*self._start(index, self.launch.seed + index))

    def call(self, method: str) -> list[Any]:
        """Call a method of all agents; returns what it returned, agent by agent."""
        self._check_open()
        return [value for game in self.games for value in game.call(method)]

    def close(self) -> None:
        """Stop all games."""
        self._finalizer()

    def _check_open(self) -> None:
        if not self._finalizer.alive:
            raise UserError("the environment is closed; make a new one")

    def _start_all(self) -> None:
        launch = self.launch
        starts = [self._start(index, launch.seed + index) for index in range(launch.n_parallel)]
        try:
            for endpoint, process in starts:
                self.games.append(self._connect(endpoint, process))
        except BaseException as error:
            for game in self.games:
                game.kill()
            self.games.clear()
            for endpoint, process in starts:
                endpoint.close()
                if process is not None:
                    process.stop(grace_sec=0.0)
                    if isinstance(error, _NeedsRenderingError):
                        process.log_file.unlink()
            raise

    def _check_parameters(self) -> None:
        feed = self.parameter_feed
        if feed is None:
            return
        declared = self.games[0].parameters
        if declared is None:
            raise UserError(
                "the game does not take parameters: replace its addon with Estragon's; a Sync of "
                "its own must not override handle_message"
            )
        try:
            feed.check(declared)
        except UserError:
            # What is not declared may only be read when an episode starts.
            self.reset()
            feed.check(self.games[0].list_parameters() or ())

    def _restart(self, index: int, error: GameLostError, *, reset: bool) -> StepResult:
        """Restart a lost game: its agents leave, and new ones join."""
        lost, feed = self.games[index], self.parameter_feed
        played = feed.playing(index, lost.table) if feed is not None else {}
        reason: GodotError = error
        while True:
            if self._may_enable_rendering and _lacks_renderer(lost.process):
                self._enable_rendering()
            self._budget.spend(reason)
            self.restarts += 1
            # Other episodes than those it has already played.
            seed = (self._seed + index + self.launch.n_parallel * self.restarts) % MAX_SEED
            try:
                lost.kill()
                self.games[index] = self._connect(*self._start(index, seed))
                first = self._begin_anew(index, seed)
            except GodotError as again:
                if isinstance(again, _NeedsRenderingError):
                    self._enable_rendering()
                reason = again
            else:
                if reset:
                    return first
                result = _after_restart(lost.table, first, str(error))
                result.parameters.update(played)
                return result

    def _reload(self, index: int) -> StepResult:
        """Load the scene of a game again: its agents leave, and new ones join."""
        self._to_reload.discard(index)
        game, feed = self.games[index], self.parameter_feed
        played = feed.playing(index, game.table) if feed is not None else {}
        try:
            endpoint = game.endpoint
            if not isinstance(endpoint, HttpEndpoint):
                raise TypeError(f"a scene cannot be reloaded over {endpoint}")
            game.disconnect()
            endpoint.reload_scene(self.launch.start_timeout_sec)
            self.games[index] = self._connect(endpoint, game.process)
            first = self._begin_anew(index, None)
        except GodotError as error:
            return self._restart(index, GameLostError(str(error)), reset=False)
        result = _after_restart(game.table, first, "its scene was reloaded")
        result.parameters.update(played)
        return result

    def _begin_anew(self, index: int, seed: int | None) -> StepResult:
        """The first episodes of a game that was restarted, or whose scene was reloaded."""
        game, feed = self.games[index], self.parameter_feed
        game.send_reset(seed, feed.start(index, game.table) if feed else None)
        first = game.receive()
        if feed is not None:
            feed.note(index, first, reset=True)
        return first

    def _start(self, index: int, seed: int) -> tuple[Endpoint, SupervisedProcess | None]:
        endpoint = self._endpoint(self.launch.port_of(index))
        if self._program is None:
            return endpoint, None
        try:
            if self._draws and not has_display(self._env):  # none yet, or it was killed
                self._env = self._resources.enter_context(display())
            secret = {TOKEN_VARIABLE: self._token} if self._token else {}
            return endpoint, self._program.start(
                index, endpoint.port, seed % MAX_SEED, self._env | secret, draws=self._draws
            )
        except BaseException:
            endpoint.close()
            raise

    def _endpoint(self, port: int) -> Endpoint:
        hint = self._program.sync_hint if self._program else ""
        if self.launch.wire != HTTP:
            return HandshakeServer(port, self.launch.encoding, hint)
        return HttpEndpoint(port if self._program is None else free_port(port), self._token)

    def _connect(self, endpoint: Endpoint, process: SupervisedProcess | None) -> GameConnection:
        launch = self.launch
        name = f"the game on port {endpoint.port}"
        with contextlib.ExitStack() as on_error:
            if process is not None:
                on_error.callback(process.stop, grace_sec=0.0)
            with contextlib.closing(endpoint):
                check = self._renderer_check(process)
                channel, info = endpoint.wait(launch.start_timeout_sec, process, check)
            on_error.callback(channel.close)
            if self._may_enable_rendering and _has_images(info):
                raise _NeedsRenderingError(f"{name} observes images, but does not render")
            game = GameConnection(
                channel, info, process, name=name, step_timeout_sec=launch.step_timeout_sec
            )
            game.endpoint = endpoint
            on_error.pop_all()
            return game

    @property
    def _may_enable_rendering(self) -> bool:
        return self._program is not None and not self._draws and self.launch.draws is None

    def _enable_rendering(self) -> None:
        """Start games on a display from now on."""
        self._draws = True
        if not self.launch.show_window:
            _needed_rendering.add(_launch_key(self.launch))

    def _renderer_check(self, process: SupervisedProcess | None) -> Callable[[], None]:
        """Raises if a game fails to read an image, and then does not finish the handshake."""
        failed_at: float | None = None

        def check() -> None:
            nonlocal failed_at
            if not self._may_enable_rendering:
                return
            if failed_at is None and _lacks_renderer(process):
                failed_at = time.monotonic()
            if failed_at is not None:
                exited = process is None or process.status is not None
                if exited or time.monotonic() - failed_at > NO_RENDERER_GRACE_SEC:
                    raise _NeedsRenderingError("the game cannot start without rendering")

        return check

    def _make_log_folder(self) -> tuple[Path, str]:
        if self.launch.log_folder is not None:
            folder = Path(os.fspath(self.launch.log_folder))
            return folder, f"the full logs are in {folder}"
        temporary = tempfile.TemporaryDirectory(prefix="estragon-")
        return Path(self._resources.enter_context(temporary)), "log_folder=… keeps the full log"


class PoolProperties:
    """What every environment says about its games."""

    _pool: GamePool

    @property
    def encoding(self) -> str:
        """The encoding the games speak: binary1, or json with an older addon."""
        return self._pool.encoding

    @property
    def restarts(self) -> int:
        """How many times a game was lost and restarted."""
        return self._pool.restarts

    @property
    def pids(self) -> list[int]:
        """Process ids of the games that were started here."""
        return [game.process.pid for game in self._pool.games if game.process is not None]

    @property
    def http_endpoint(self) -> HttpEndpoint | None:
        """The HTTP API of the first game; None with another wire."""
        endpoint = self._pool.games[0].endpoint
        return endpoint if isinstance(endpoint, HttpEndpoint) else None

    @property
    def parameter_feed(self) -> ParameterFeed | None:
        """The parameters that are sent to the games; None without the option `parameters`."""
        return self._pool.parameter_feed


def _after_restart(before: AgentTable, first: StepResult, reason: str) -> StepResult:
    """A result in which every episode is truncated, and the new game's agents join."""
    table = before.extend(first.table.agents)
    gone = len(before)
    values = np.zeros(int(before.obs_offsets[-1]), np.float32)
    images = np.zeros(int(before.image_offsets[-1]), np.uint8)
    masks = None
    if first.masks is not None:
        masks = np.concatenate([np.ones(int(before.mask_offsets[-1]), np.uint8), first.masks])
    return StepResult(
        table=table,
        num_joined=len(first.table),
        rewards=np.concatenate([np.zeros(gone, np.float32), first.rewards]),
        flags=np.concatenate([np.full(gone, TRUNCATED | LEFT, np.uint8), first.flags & LEFT]),
        obs=Observations(
            table,
            np.concatenate([values, first.obs.values]),
            np.concatenate([images, first.obs.images]),
        ),
        masks=masks,
        infos=[{"game_lost": reason} for _ in range(gone)]
        + [first.info(row) for row in range(len(first.table))],
        lost_reason=reason,
    )


def _renders_at_once(launch: Launch) -> bool:
    needed = _launch_key(launch) in _needed_rendering
    return launch.show_window or (needed if launch.draws is None else launch.draws)


def _launch_key(launch: Launch) -> tuple[object, ...]:
    arguments = tuple(sorted((key, str(value)) for key, value in launch.arguments.items()))
    return str(launch.env_path), launch.scene, arguments


def _has_images(info: EnvInfo) -> bool:
    spaces = info.observation_space
    each = spaces if isinstance(spaces, list) else [spaces]
    known = [space for space in each if isinstance(space, dict)]
    return any(is_image(key, text) for space in known for key, text in space.items())


def _lacks_renderer(process: SupervisedProcess | None) -> bool:
    return process is not None and NO_RENDERER.search(process.log_file.read_bytes()) is not None


def _close(games: list[GameConnection], resources: contextlib.ExitStack, owner: int) -> None:
    """Close all games together, then what they were started with."""
    if os.getpid() != owner:
        return  # a fork of the trainer exits, not the trainer
    try:
        for game in games:
            game.request_quit()
        for game in games:
            game.close()
    finally:
        resources.close()
