"""Sessions: commands that were started from the page, each in a process of its own.

They are kept in `sessions.json` of the project, with a folder each for log, lock and exit code, so
a controller that was killed finds them again. One session of a queue runs at a time.
"""

import contextlib
import dataclasses
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from estragon.controller.detached import EXIT, LOCK, PID
from estragon.controller.project import LOCK_TIMEOUT_SEC, Project
from estragon.godot.process import NOT_TEXT
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import locked, read_json, write_json
from estragon.support.runs import create_unique, timestamps
from estragon.trainers.controller import Controller, slug, utc_now

Status = Literal["queued", "running", "finished", "stopped", "failed", "died"]
PATIENCE_SEC = 20.0
"""How long a stop file, then an interrupt, may take before the next, harder way."""
START_SEC = 20.0
"""A process that has not begun after this has died."""
TAIL_BYTES = 65536
LONGEST_LINE = 2000
MOST_SESSIONS = 200


class Session(msgspec.Struct, frozen=True):
    """A command, as `sessions.json` has it."""

    id: str
    name: str
    words: list[str]
    """The arguments of `estragon`."""
    created: str
    queued: bool = False
    """Whether it waits until no other of the project runs."""
    config: dict[str, Any] = {}
    """Written to `training_config.json` when it starts."""

    @property
    def command(self) -> str:
        """What a person would type."""
        return shlex.join(["estragon", *self.words])

    @property
    def heeds_stop_file(self) -> bool:
        """Whether its command ends when the project's stop file exists."""
        return self.words[:1] == ["train"] and self.words[:2] != ["train", "tag"]


@dataclasses.dataclass
class _Stop:
    """How a session is asked to end."""

    number: int | None = None
    """The signal that was sent; None: the stop file."""
    due: float = dataclasses.field(default_factory=lambda: time.monotonic() + PATIENCE_SEC)
    """When to use the next, harder way."""


class Sessions:
    """The sessions of one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.file = project.folder / "sessions.json"
        self._mine: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: dict[str, Status] = {}
        """Those whose exit code was read: it does not change."""
        self._stopping: dict[str, _Stop] = {}

    def folder(self, session: Session) -> Path:
        """Its log, lock and exit code."""
        return self.project.folder / "sessions" / session.id

    def log(self, session: Session) -> Path:
        """All output of its process."""
        return self.folder(session) / "log.txt"

    def all(self) -> list[Session]:
        """The latest first; a UserError if the file is damaged."""
        if not self.file.exists():
            return []
        return read_json(self.file, list[Session])[::-1]

    def add(
        self,
        name: str,
        words: list[str],
        *,
        queued: bool = False,
        config: dict[str, Any] | None = None,
    ) -> Session:
        """Start a command, now or when the queue gets to it."""
        if not self.project.path.is_dir():
            raise UserError(f"the folder {self.project.path} is missing; restore it")
        folder = create_unique(
            self.project.folder / "sessions", (f"{each}_{slug(name)}" for each in timestamps())
        )
        session = Session(folder.name, name, words, utc_now(), queued, config or {})
        try:
            self._change(lambda kept: [*kept, session])
            if not queued:
                self._start(session)
        except UserError:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(UserError):
                self.remove(session)
            raise
        return session

    def remove(self, session: Session) -> None:
        """Take it from the list; its run stays."""
        self._change(lambda kept: [each for each in kept if each.id != session.id])

    def _change(self, change: Callable[[list[Session]], list[Session]]) -> None:
        with locked(self.project.folder / "settings.lock", timeout_sec=LOCK_TIMEOUT_SEC):
            kept = change(self.all()[::-1])[-MOST_SESSIONS:]
            write_json(self.file, msgspec.to_builtins(kept))

    def status(self, session: Session) -> Status:
        """What its process does, or how it ended."""
        if session.id in self._ended:
            return self._ended[session.id]
        folder = self.folder(session)
        own = self._mine.get(session.id)
        if own is not None and own.poll() is None:
            return "running"
        if not (folder / LOCK).exists():
            return "queued" if session.queued and own is None else "died"
        try:
            code = int(read_json(folder / EXIT, dict[str, int])["code"])
        except (UserError, KeyError):
            return "running" if self._lives(folder) else "died"
        stopped = code == INTERRUPTED or (folder / "stopped").exists()
        self._ended[session.id] = "stopped" if stopped else "failed" if code else "finished"
        return self._ended[session.id]

    def running(self) -> list[Session]:
        """Those whose process lives."""
        return [each for each in self.all() if self.status(each) == "running"]

    def pid(self, session: Session) -> int | None:
        """Of its process; None if it has not begun."""
        try:
            return int((self.folder(session) / PID).read_text())
        except (OSError, ValueError):
            return None

    def tick(self) -> None:
        """Start what is due in the queue, and go on with stops."""
        states = {each.id: (each, self.status(each)) for each in self.all()}
        busy = any(status == "running" for _, status in states.values())
        for session, status in reversed(states.values()):
            if status == "queued" and not busy:
                self._start(session)
                busy = True
        for name, stop in list(self._stopping.items()):
            stopping, status = states.get(name, (None, "died"))
            if stopping is None or status != "running":
                del self._stopping[name]
                Controller(self.project.folder).clear_stop()
            elif stop.due <= time.monotonic():
                self._stop_harder(stopping, stop)
            elif stop.number is None:
                Controller(self.project.folder).stop_file.touch()  # a run that starts removes it

    def stop(self, session: Session) -> None:
        """Ask it to end, so that it saves what it has; harder if it does not. See `tick`."""
        status = self.status(session)
        if status == "queued":
            self.remove(session)
        if status != "running":
            return
        (self.folder(session) / "stopped").touch()
        if stop := self._stopping.get(session.id):
            self._stop_harder(session, stop)
            return
        stop = self._stopping[session.id] = _Stop()
        if [each for each in self.running() if each.heeds_stop_file] != [session]:
            self._stop_harder(session, stop)  # the file would end the others, too
        else:
            Controller(self.project.folder).stop_file.touch()

    def _stop_harder(self, session: Session, stop: "_Stop") -> None:
        """An interrupt, then force; each once, since a second interrupt does not save."""
        if stop.number is None:
            stop.number = signal.SIGINT
        elif stop.due <= time.monotonic():
            stop.number = signal.SIGKILL if os.name == "posix" else signal.SIGTERM
        stop.due = time.monotonic() + PATIENCE_SEC
        self._signal(session, stop.number)

    def _start(self, session: Session) -> None:
        if session.config:
            self.project.write_training_config(session.config)
        folder = self.folder(session)
        words = [sys.executable, "-m", "estragon.controller.detached", str(folder), *session.words]
        # New session: neither the controller's end nor a Ctrl-C in its terminal reaches it.
        apart: dict[str, object] = {"start_new_session": True}
        if sys.platform == "win32":
            apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / LOCK).touch(exist_ok=False)  # another controller may start it just now
            with self.log(session).open("ab") as log:
                self._mine[session.id] = subprocess.Popen(  # type: ignore[call-overload]
                    words,
                    cwd=self.project.path,
                    env=os.environ | {"PYTHONUNBUFFERED": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    **apart,
                )
        except FileExistsError:
            return
        except OSError as error:
            (folder / LOCK).unlink(missing_ok=True)
            raise UserError(f"cannot start {session.name}: {error.strerror or error}") from error

    def _lives(self, folder: Path) -> bool:
        """Whether its process holds the lock, or is about to."""
        if _is_locked(folder / LOCK):
            return True
        begun = (folder / PID).exists()
        return not begun and time.time() - (folder / LOCK).stat().st_mtime < START_SEC

    def _signal(self, session: Session, number: int) -> None:
        """To its process; if by force, to all that it started."""
        pid = self.pid(session)
        if pid is None or self.status(session) != "running":
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix" and number == signal.SIGKILL:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)


def read_log(path: Path, offset: int | None = None) -> tuple[list[str], int]:
    """The whole lines after an offset, or the last ones; and the next offset."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            begin = max(0, size - TAIL_BYTES)
            begin = begin if offset is None or offset > size else max(offset, begin)
            stream.seek(begin)
            data = stream.read(TAIL_BYTES)
    except OSError:
        return [], 0
    whole = data.rfind(b"\n") + 1
    lines = data[:whole].decode(errors="replace").split("\n")[:-1]
    shown = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return [NOT_TEXT.sub("", line)[:LONGEST_LINE] for line in shown], begin + whole


def _is_locked(path: Path) -> bool:
    try:
        with locked(path, timeout_sec=0.0):
            return False
    except UserError:
        return True
