"""A live run: the server, the learner, and a Godot process per round, restarted when it fails."""

import contextlib
import csv
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

from estragon.godot.display import display
from estragon.godot.find import require_godot
from estragon.godot.process import GodotError, GodotProcess, RestartBudget
from estragon.godot.project import import_project
from estragon.live.learning import learning_actors
from estragon.live.server import HOST, LiveServer, logging_to
from estragon.live.source import FOREVER_SEC, LIVE_CONFIG, LiveSource
from estragon.selfplay.config import PPOConfig
from estragon.selfplay.console import Display
from estragon.selfplay.session import Session
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import write_whole
from estragon.support.interrupts import StopRequest, deferred_interrupts
from estragon.support.options import from_environment
from estragon.tag.rules import ROLES, Role

ROUND_COLUMNS = ("round_index", "role", "start_ts", "end_ts", "log_path")


TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
POLL_SEC = 0.1
STOP_SEC = 30.0
SECONDS = 600.0
SWITCH_SEC = 0.0005
"""How long the learning thread may keep the server's thread from answering."""
OPEN_BY_HAND = (
    "Godot was not started ({why}). The server is running: open godot/project.godot in Godot 4.4 "
    "or newer, set training_mode of the node RLEnv, and run the main scene"
)


class Games:
    """Plays one round after the other, each by one Godot, in a thread of its own."""

    def __init__(
        self,
        roles: list[Role],
        seconds: float,
        options: list[str],
        folder: Path,
        *,
        watch: bool,
        say: Callable[[str], None],
    ) -> None:
        """Find Godot, or install it, and prepare the project.

        Args:
            roles: of the first agent in each round.
            seconds: of all rounds together.
            options: of the game.
            folder: for the logs.
            watch: open a window, and play in real time.
            say: prints a line.
        """
        self._roles, self._round_sec = roles, seconds / len(roles)
        self._options, self._folder, self._watch, self._say = options, folder, watch, say
        self._budget = RestartBudget()
        self._godot = require_godot()
        self._project = import_project(paths.godot_project(), godot=self._godot)
        self._finished_rounds: list[tuple[object, ...]] = []
        self._stopping = threading.Event()
        self.restarts = 0
        self.pid: int | None = None
        """Of the game that plays now."""
        self.error: Exception | None = None
        """Why the games ended before their rounds were over."""
        self._thread = threading.Thread(target=self._run, name="games", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the game."""
        self._stopping.set()
        self._thread.join(STOP_SEC)

    @property
    def over(self) -> bool:
        """Whether all games are over."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with self._environment() as env:
                for index, role in enumerate(self._roles, 1):
                    if not self._stopping.is_set():
                        is_it = {"AI_IS_IT": "1" if role == "seeker" else "0"}
                        self._play(index, role, env | is_it)
        except Exception as error:  # noqa: BLE001 - read in another thread
            self.error = error

    @contextlib.contextmanager
    def _environment(self) -> Iterator[dict[str, str]]:
        with contextlib.ExitStack() as stack:
            env = stack.enter_context(display()) if self._watch else dict(os.environ)
            env.pop("AI_TRAIN_DURATION", None)  # the time of the whole run is counted here
            yield env | {"AI_TRAINING_MODE": env.get("AI_TRAINING_MODE", "1")}

    def _play(self, index: int, role: Role, env: dict[str, str]) -> None:
        """Play one round, restarting the game when it fails."""
        start, deadline = time.strftime(TIME_FORMAT), time.monotonic() + self._round_sec
        name = f"godot_round{index}"
        try:
            while time.monotonic() < deadline and not self._stopping.is_set():
                try:
                    self._play_once(env, name, deadline)
                except GodotError as error:
                    self._budget.spend(error)
                    self.restarts += 1
                    self._say(f"{name} restarted: {error}")
        finally:
            self.pid = None
            row = (index, role, start, time.strftime(TIME_FORMAT), f"{name}.log")
            self._finished_rounds.append(row)
            self._write_rounds()

    def _write_rounds(self) -> None:
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([ROUND_COLUMNS, *self._finished_rounds])
        write_whole(self._folder / "self_play_rounds.csv", stream.getvalue().encode())

    def _play_once(self, env: dict[str, str], name: str, deadline: float) -> None:
        words: list[str | Path] = ["--path", self._project]
        if self._watch:
            words += ["--rendering-driver", "opengl3"]
        else:
            words += ["--headless", "--fixed-fps", "60"]
        with GodotProcess(
            [*words, "--", *self._options],
            folder=self._folder,
            name=name,
            godot=self._godot,
            env=env,
        ) as game:
            self.pid = game.pid
            while time.monotonic() < deadline and not self._stopping.is_set():
                if (status := game.status) is not None:
                    if status == 0 and self._watch:
                        self._stopping.set()  # the window was closed
                        return
                    raise game.error(game.how_it_ended())
                time.sleep(POLL_SEC)


def plan_rounds(
    mode: str, rounds: int | None, round_seconds: float | None, seconds: float | None
) -> tuple[list[Role], float]:
    """The first agent's role in each round, and how long all of them last together.

    None stands for the environment variable, else the default.
    """
    count = from_environment(rounds, "SELF_PLAY_ROUNDS", 4, int)
    each = from_environment(round_seconds, "SELF_PLAY_DURATION", 180.0, float)
    default = count * each if mode == "self-play" else SECONDS
    total = from_environment(seconds, "AI_TRAIN_DURATION", default, float)
    for name, value in (("rounds", count), ("round-seconds", each), ("seconds", total)):
        if not 0 < value <= FOREVER_SEC:
            raise UserError(f"--{name}: expected more than 0, got {value}")
    first = os.environ.get("SELF_PLAY_START_ROLE", "seeker") if mode == "self-play" else mode
    if first not in ROLES:
        raise UserError(f"SELF_PLAY_START_ROLE: expected seeker or hider, got {first}")
    start = ROLES.index(first)
    return [ROLES[(start + i) % 2] for i in range(count if mode == "self-play" else 1)], total


def update_size(rows: int) -> PPOConfig:
    """The config of a live run whose updates take about `rows` agent-steps."""
    if not 256 <= rows <= 2**20:
        raise UserError(f"--update-rows: expected 256 to {2**20}, got {rows}")
    horizon = min(LIVE_CONFIG.horizon, rows // 16)
    return replace(LIVE_CONFIG, arenas=rows // horizon // 2 * 2, horizon=horizon)


def train_live(
    session: Session,
    roles: list[Role],
    folder: Path,
    *,
    port: int,
    arenas: int,
    watch: bool,
    start_godot: bool,
) -> bool:
    """Serve, play and learn until the budget is spent; False when interrupted.

    Args:
        session: of a live run.
        roles: of the first agent in each round.
        folder: for the logs.
        arenas: in one Godot.
        watch: open a window, and play in real time.
    """
    source = cast("LiveSource", session.source)
    sys.setswitchinterval(SWITCH_SEC)
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(logging_to(folder / "server.log", shown=False))
        root = session.folder.root
        actors = stack.enter_context(learning_actors(session.trainer, source, root))
        server = LiveServer(actors, port=port, log=log, rules=session.task.rules)
        stack.enter_context(server)
        display = stack.enter_context(Display(session))
        stop = stack.enter_context(deferred_interrupts(display.say))
        display.say(f"listening on ws://{HOST}:{server.port}; logs are in {folder}")
        games = None
        try:
            if start_godot:
                options = _game_options(session, server.port, arenas)
                seconds = session.seconds_left
                games = Games(roles, seconds, options, folder, watch=watch, say=display.say)
            else:
                display.say(OPEN_BY_HAND.format(why="--no-godot"))
        except UserError as error:
            display.say(OPEN_BY_HAND.format(why=error))

        def begin() -> None:
            source.start_clock()
            if games is not None and not stop.made:
                stack.enter_context(games)
                source.games = f"{arenas} arenas in Godot"

        finished = session.run(display, StopLive(stop, server, games), begin)
    server.check()
    if games is not None and games.error is not None:
        raise games.error
    if not finished and stop.made:
        return False
    if not len(session.metrics):
        raise UserError(
            f"nothing was learned in {session.spent}: no game played long enough; connections are "
            f"listed in {folder / 'server.log'}"
        )
    return True


def _game_options(session: Session, port: int, arenas: int) -> list[str]:
    """The game's options for the task of a run."""
    task = session.task
    layout = json.loads(session.folder.metadata.read_text(encoding="utf-8"))["layout"]
    return [
        "--live=1",
        f"--server=ws://{HOST}:{port}",
        f"--arenas={arenas}",
        f"--seed={task.seed}",
        f"--rules={task.rules.rules}",
        f"--rewards={task.rules.rewards}",
        *([f"--layout={layout}"] if layout else []),
    ]


class StopLive(StopRequest):
    """Stop on request, when all games are over, or when the server has ended."""

    def __init__(self, stop: StopRequest, server: LiveServer, games: Games | None) -> None:
        self._stop, self._server, self._games = stop, server, games

    @property
    def made(self) -> bool:  # type: ignore[override]
        """Whether to stop."""
        over = self._games is not None and self._games.over
        return self._stop.made or over or self._server.ended
