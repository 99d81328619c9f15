"""`estragon live`: Godot plays, Python learns, and you may watch."""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from estragon.judge.debug_bundle import collect
from estragon.live.limits import PORT
from estragon.live.rounds import Round, alternating, rounds_of
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable, locked
from estragon.support.interrupts import StopRequest, deferred_interrupts
from estragon.support.options import from_environment, optional
from estragon.support.runs import create_unique, timestamps
from estragon.tag.rules import Role

if TYPE_CHECKING:
    from estragon.live.games import Games
    from estragon.live.server import LiveServer
    from estragon.live.session import LiveSession
    from estragon.selfplay.config import Task

SECONDS = 600.0
FOR_EVER_SEC = 1e9
SWITCH_SEC = 0.0005
"""How long the learning thread may keep the server's thread from answering."""
OPEN_BY_HAND = (
    "no Godot is started ({why}). The server stays up: open godot/project.godot in Godot 4.4 or "
    "newer, set training_mode of the node RLEnv, and run the main scene"
)


@dataclasses.dataclass(frozen=True)
class Live:
    """Train in real Godot, over a WebSocket, from nothing or from what was trained before."""

    mode: Annotated[Literal["seeker", "hider", "self-play"], tyro.conf.Positional] = "self-play"
    """Who the first agent is when an episode begins; self-play changes that every round. Both
    roles learn in each."""
    seconds: Annotated[float | None, optional("SECONDS")] = None
    """How long, all in all; by default AI_TRAIN_DURATION, else 600, and for self-play the rounds
    together."""
    rounds: Annotated[int | None, optional("N")] = None
    """Of self-play; by default SELF_PLAY_ROUNDS, else 4."""
    round_seconds: Annotated[float | None, optional("SECONDS")] = None
    """Of self-play, where nothing says how long all in all; by default SELF_PLAY_DURATION, else
    180."""
    arenas: int = 16
    """Side by side in one Godot."""
    update_rows: int = 8192
    """Agent-steps that an update learns from: fewer learn sooner, more learn steadier."""
    watch: bool = False
    """Open a window and play in real time, in one arena."""
    warm_start: Annotated[Path | None, optional("FILE")] = None
    """Policies to go on from, such as trainer/policy.pt of make train."""
    resume: bool = False
    """Go on with the latest live run from its last save."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """As for train tag."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek or transfer; by default as in rules.json."""
    rewards: Annotated[str | None, optional("NAME")] = None
    """A reward profile of rules.json: default or classic; by default as in rules.json."""
    seed: int = 0
    """Of spawns and of what is drawn."""
    port: int = PORT
    """Where the server listens, on this machine only; 0 for any free port."""
    godot: bool = True
    """Start Godot; without, only the server, for a game that you start yourself."""
    output: Path = Path()
    """The folder for trainer/, charts/ and debug/."""

    def run(self) -> int:
        """Serve, play, learn, and leave everything where it can be found."""
        roles, seconds = self._plan()
        folder = create_unique(self.output / "debug", timestamps())
        try:
            with contextlib.ExitStack() as alone:
                session = self._session(seconds, alone)
                rounds = rounds_of(roles, session.seconds_left)
                return self._train(session, rounds, folder)
        finally:
            collect(folder, {}, root=self.output)
            print(f"logs, metrics and policies are in {folder}", file=sys.stderr)

    def _plan(self) -> tuple[list[Role], float]:
        """Who begins as the seeker in which round, and how long all of them last."""
        if self.arenas < 1:
            raise UserError(f"--arenas: expected 1 or more, got {self.arenas}")
        count = from_environment(self.rounds, "SELF_PLAY_ROUNDS", 4, int)
        each = from_environment(self.round_seconds, "SELF_PLAY_DURATION", 180.0, float)
        usual = count * each if self.mode == "self-play" else SECONDS
        seconds = from_environment(self.seconds, "AI_TRAIN_DURATION", usual, float)
        for name, value in (("rounds", count), ("round-seconds", each), ("seconds", seconds)):
            if not 0 < value <= FOR_EVER_SEC:
                raise UserError(f"--{name}: expected more than 0, got {value}")
        if self.mode != "self-play":
            return [self.mode], seconds
        first = os.environ.get("SELF_PLAY_START_ROLE", "seeker")
        if first not in ("seeker", "hider"):
            raise UserError(f"SELF_PLAY_START_ROLE: expected seeker or hider, got {first}")
        return alternating("seeker" if first == "seeker" else "hider", count), seconds

    def _session(self, seconds: float, alone: contextlib.ExitStack) -> "LiveSession":
        from estragon.live.session import APPROACH, CONFIG, LiveSession, start_live_session
        from estragon.selfplay.checkpoint import TagRun

        ensure_writable(self.output / "trainer" / "policy.pt")
        if self.resume:
            folder = TagRun.find(self.output, "latest")
            alone.enter_context(locked(folder.lock, timeout_sec=0.0))
            if folder.path.parent.name != APPROACH:
                raise UserError(f"--resume: the latest run, {folder.path}, is not a live one")
            return LiveSession.resume(folder, None)
        config = dataclasses.replace(CONFIG, **self._update_size(CONFIG.horizon))
        session = start_live_session(
            self.output, self._task(), config, max(1, round(seconds)), self.warm_start
        )
        alone.enter_context(locked(session.folder.lock, timeout_sec=0.0))
        session.write_metadata({"mode": self.mode, "layout": self.layout})
        session.folder.mark_latest()
        return session

    def _update_size(self, horizon: int) -> dict[str, int]:
        """Arenas and decisions whose product is what an update learns from."""
        if not 256 <= self.update_rows <= 2**20:
            raise UserError(f"--update-rows: expected 256 to {2**20}, got {self.update_rows}")
        horizon = min(horizon, self.update_rows // 16)
        return {"arenas": self.update_rows // horizon // 2 * 2, "horizon": horizon}

    def _task(self) -> "Task":
        from estragon.selfplay.config import LEAGUE, Task
        from estragon.tag.layout import load_layouts
        from estragon.tag.rules import load_rules

        rules = load_rules(rules=self.rules, rewards=self.rewards)
        layouts = load_layouts(self.layout or rules.layout, rules)
        return Task(rules, layouts, self.seed, "both", LEAGUE)

    def _train(self, session: "LiveSession", rounds: list[Round], folder: Path) -> int:
        from estragon.live.learners import learning_brains
        from estragon.live.logs import logging_to
        from estragon.live.server import HOST, LiveServer
        from estragon.selfplay.display import Display
        from estragon.show.training_end import finish

        sys.setswitchinterval(SWITCH_SEC)
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(logging_to(folder / "server.log", shown=False))
            brains = stack.enter_context(learning_brains(session.trainer, self.output))
            server = LiveServer(brains, port=self.port, log=log, rules=session.task.rules)
            stack.enter_context(server)
            display = stack.enter_context(Display(session))
            stop = stack.enter_context(deferred_interrupts(display.say))
            display.say(f"listening on ws://{HOST}:{server.port}; logs are in {folder}")
            games = self._games(session, rounds, folder, server.port, display.say)

            def begin() -> None:
                session.trainer.start_clock()
                if games is not None and not stop.made:
                    stack.enter_context(games)
                    session.games = f"{1 if self.watch else self.arenas} arenas in Godot"

            finished = session.run(display, Until(stop, server, games), begin)
        server.check()
        if games is not None and games.error is not None:
            raise games.error
        if not finished and stop.made:
            print(
                f"stopped after {session.spent}; everything is saved: --resume goes on",
                file=sys.stderr,
            )
            return INTERRUPTED
        if not len(session.metrics):
            raise UserError(
                f"nothing was learned in {session.spent}: no game played long enough; "
                f"{folder / 'server.log'} tells who was there"
            )
        finish(session, film=False, probe_steps=0)
        return 0

    def _games(
        self,
        session: "LiveSession",
        rounds: list[Round],
        folder: Path,
        port: int,
        say: Callable[[str], None],
    ) -> "Games | None":
        """Godot with the game that the run was begun with."""
        from estragon.live.games import Games
        from estragon.live.server import HOST

        options = [
            "--live=1",
            f"--server=ws://{HOST}:{port}",
            f"--arenas={1 if self.watch else self.arenas}",
            f"--seed={session.task.seed}",
            f"--rules={session.task.rules.rules}",
            f"--rewards={session.task.rules.rewards}",
        ]
        about = json.loads(session.folder.metadata.read_text(encoding="utf-8"))
        options += [f"--layout={about['layout']}"] if about["layout"] else []
        if not self.godot:
            say(OPEN_BY_HAND.format(why="--no-godot"))
            return None
        try:
            return Games(rounds, options, folder, watch=self.watch, say=say)
        except UserError as error:
            say(OPEN_BY_HAND.format(why=error))
            return None


class Until(StopRequest):
    """Stop when somebody asks for it, when nobody plays any more, or when the server is gone."""

    def __init__(self, asked: StopRequest, server: "LiveServer", games: "Games | None") -> None:
        self._asked, self._server, self._games = asked, server, games

    @property
    def made(self) -> bool:  # type: ignore[override]
        """Whether it is time."""
        over = self._games is not None and self._games.over
        return self._asked.made or over or self._server.ended
