"""Godot, kept playing: started for every round, started again when it dies, ended for certain."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from estragon.godot.display import display
from estragon.godot.find import require_godot
from estragon.godot.process import GodotError, GodotProcess, RestartBudget
from estragon.godot.project import import_project
from estragon.live.rounds import Round, RoundLog
from estragon.support import paths

POLL_SEC = 0.1
STOP_SEC = 30.0


class Games:
    """Plays the rounds one after the other, in a thread of its own."""

    def __init__(
        self,
        rounds: list[Round],
        options: list[str],
        folder: Path,
        *,
        watch: bool = False,
        say: Callable[[str], None],
        budget: RestartBudget | None = None,
    ) -> None:
        """Find Godot, or install it, and prepare the project.

        Args:
            rounds: what to play.
            options: of the game.
            folder: for the logs.
            watch: open a window, and play in real time.
            say: tells people what happens.
            budget: of restarts.
        """
        self._rounds, self._options, self._folder = rounds, options, folder
        self._watch, self._say = watch, say
        self._budget = budget or RestartBudget()
        self._godot = require_godot()
        self._project = import_project(paths.godot_project(), godot=self._godot)
        self._log = RoundLog(folder / "self_play_rounds.csv")
        self._stopping = threading.Event()
        self.restarts = 0
        self.pid: int | None = None
        """Of the game that plays now."""
        self.error: Exception | None = None
        """Why no game is played any more, if it is not because all rounds are over."""
        self._thread = threading.Thread(target=self._run, name="games", daemon=True)

    def __enter__(self) -> Self:
        """Begin to play."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever plays."""
        self._stopping.set()
        self._thread.join(STOP_SEC)

    @property
    def over(self) -> bool:
        """Whether nothing will be played any more."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with self._environment() as env:
                for each in self._rounds:
                    if not self._stopping.is_set():
                        self._play(each, env)
        except Exception as error:  # noqa: BLE001 - for who reads `error`, in another thread
            self.error = error

    @contextlib.contextmanager
    def _environment(self) -> Iterator[dict[str, str]]:
        with contextlib.ExitStack() as stack:
            env = stack.enter_context(display()) if self._watch else dict(os.environ)
            env.pop("AI_TRAIN_DURATION", None)  # of the whole run, which is counted here
            yield env | {"AI_TRAINING_MODE": env.get("AI_TRAINING_MODE", "1")}

    def _play(self, each: Round, env: dict[str, str]) -> None:
        """One round, by as many processes as it takes."""
        start, deadline = time.time(), time.monotonic() + each.seconds
        name = f"godot_round{each.index}"
        try:
            while time.monotonic() < deadline and not self._stopping.is_set():
                try:
                    self._play_once(each, env, name, deadline)
                except GodotError as error:
                    self._budget.spend(error)
                    self.restarts += 1
                    self._say(f"{name} is started again: {error}")
        finally:
            self.pid = None
            self._log.add(each, start, self._folder / f"{name}.log")

    def _play_once(self, each: Round, env: dict[str, str], name: str, deadline: float) -> None:
        words: list[str | Path] = ["--path", self._project]
        if self._watch:
            words += ["--rendering-driver", "opengl3"]
        else:
            words += ["--headless", "--fixed-fps", "60"]
        mine = env | {"AI_IS_IT": "1" if each.role == "seeker" else "0"}
        with GodotProcess(
            [*words, "--", *self._options],
            folder=self._folder,
            name=name,
            godot=self._godot,
            env=mine,
        ) as game:
            self.pid = game.pid
            while time.monotonic() < deadline and not self._stopping.is_set():
                if (status := game.status) is not None:
                    if status == 0 and self._watch:
                        self._stopping.set()  # somebody closed the window
                        return
                    raise game.error(game.how_it_ended())
                time.sleep(POLL_SEC)
