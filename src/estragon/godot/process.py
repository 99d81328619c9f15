"""Supervised programs, Godot above all: a log, a deadline for every wait, and a certain end."""

import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from estragon.godot.child import Child
from estragon.support import paths
from estragon.support.errors import UserError

Answer = TypeVar("Answer")

POLL_SEC = 0.01
MEANWHILE_SEC = 0.2
GRACE_SEC = 2.0
TAIL_LINES, TAIL_BYTES = 8, 8192
NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
USER_FOLDERS = {
    "XDG_DATA_HOME": ".local/share",
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
}


class GodotError(UserError):
    """A program that was started failed; the message has the last lines of its log."""


class SupervisedProcess:
    """A program in a process group of its own, which ends with this process however that ends.

    Args:
        words: the program and its arguments.
        name: what messages call it, and the name of its log.
        folder: where `<name>.log` is written; the log of the run before is kept beside it.
        env: its environment; this process's own if not given.
        advice: what its errors tell people to do; by default to read the log.
    """

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        name: str,
        folder: Path,
        env: Mapping[str, str] | None = None,
        advice: str | None = None,
    ) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        self._advice = advice or f"the whole log is {self.log_file}"
        self._lines_read_to = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if self.log_file.exists():
                self.log_file.replace(folder / f"{name}.previous.log")
            with self.log_file.open("ab") as log:
                self._child = Child(
                    [str(word) for word in words],
                    log.fileno(),
                    dict(os.environ if env is None else env),
                )
        except OSError as error:
            raise GodotError(f"cannot start {words[0]}: {error.strerror or error}") from error
        self.pid = self._child.pid

    def __enter__(self) -> Self:
        """The process, stopped at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def status(self) -> int | None:
        """None while it runs, then its exit status; negative for the number of a signal."""
        return self._child.poll()

    def wait_for(self, what: str, ready: Callable[[], Answer | None], timeout_sec: float) -> Answer:
        """Call `ready` until it returns something true; `what` is for the error message."""
        deadline = time.monotonic() + timeout_sec
        while True:
            ended = self.status is not None  # read first: it may answer and end at once
            if answer := ready():
                return answer
            if ended:
                raise self.error(f"{self.how_it_ended()} before {what}")
            if time.monotonic() > deadline:
                raise self.timed_out(what, timeout_sec)
            time.sleep(POLL_SEC)

    def wait_for_line(self, what: str, matches: Callable[[str], bool], timeout_sec: float) -> str:
        """Wait for a line of output after those already waited for; returns the line."""

        def find() -> str | None:
            with self.log_file.open("rb") as log:
                log.seek(self._lines_read_to)
                for line in log:
                    if not line.endswith(b"\n"):
                        break
                    self._lines_read_to += len(line)
                    if matches(text := _plain(line)):
                        return text
            return None

        return self.wait_for(what, find, timeout_sec)

    def wait(
        self, what: str, timeout_sec: float, meanwhile: Callable[[], None] = lambda: None
    ) -> int:
        """Wait for its end and return its status, calling `meanwhile` every 0.2 s."""
        next_call = 0.0

        def ended() -> bool:
            nonlocal next_call
            if time.monotonic() >= next_call:
                meanwhile()
                next_call = time.monotonic() + MEANWHILE_SEC
            return self.status is not None

        self.wait_for(what, ended, timeout_sec)
        return self.status or 0

    def stop(self, grace_sec: float = GRACE_SEC) -> None:
        """End it and everything it started: by request first, then by force."""
        self._child.terminate()
        deadline = time.monotonic() + grace_sec
        while self.status is None and time.monotonic() < deadline:
            time.sleep(POLL_SEC)
        self._child.kill()

    def tail(self, lines: int = TAIL_LINES) -> list[str]:
        """The last lines of its log, however large that is."""
        with self.log_file.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - TAIL_BYTES))
            text = [_plain(line) for line in log.read().split(b"\n")]
        return [line for line in text if line.strip()][-lines:]

    def lines(self) -> list[str]:
        """All its output so far."""
        return [_plain(line) for line in self.log_file.read_bytes().split(b"\n")]

    def error(self, problem: str, advice: str | None = None) -> GodotError:
        """An exception with the problem, the last lines of output, and what to do."""
        said = " | ".join(line.strip() for line in self.tail()) or "nothing"
        return GodotError(f"{self.name}: {problem}; it said last: {said}; {advice or self._advice}")

    def timed_out(self, what: str, timeout_sec: float) -> GodotError:
        """The error for a wait that took too long."""
        return self.error(f"timed out after {timeout_sec:g} s waiting for {what}")

    def how_it_ended(self) -> str:
        """The exit code or the signal, in words."""
        status = self.status
        if status is not None and status < 0:
            known = {int(number): number.name for number in signal.Signals}
            return f"it was ended by {known.get(-status, f'signal {-status}')}"
        return f"it ended with exit code {status}"


class GodotProcess(SupervisedProcess):
    """Godot with these arguments, for example `["--headless", "--path", project]`.

    `godot` is found, or installed, if not given. `display()` has an `env` for windows.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        folder: Path,
        name: str = "godot",
        godot: Path | None = None,
        env: Mapping[str, str] | None = None,
        advice: str | None = None,
    ) -> None:
        from estragon.godot.find import require_godot  # which asks programs for their version

        program = require_godot() if godot is None else godot
        env = usable_user_folders(os.environ if env is None else env)
        super().__init__([program, *arguments], name=name, folder=folder, env=env, advice=advice)


class RestartBudget:
    """At most `restarts` within any `window_sec`; the next one is an error."""

    def __init__(
        self,
        restarts: int = 3,
        window_sec: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.restarts, self.window_sec = restarts, window_sec
        self._clock = clock
        self._spent: deque[float] = deque()

    def spend(self, reason: GodotError) -> None:
        """Take one restart, made necessary by `reason`; raises when there is none left."""
        now = self._clock()
        while self._spent and now - self._spent[0] >= self.window_sec:
            self._spent.popleft()
        if len(self._spent) >= self.restarts:
            raise GodotError(
                f"given up after {self.restarts} restarts within {self.window_sec:g} s; {reason}"
            ) from reason
        self._spent.append(now)


def usable_user_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The environment unchanged if Godot can write its settings, else with private folders.

    Godot crashes where it cannot write them.
    """
    if sys.platform in ("win32", "darwin"):
        return dict(env)
    home = Path(env.get("HOME") or "/")
    chosen = [Path(env.get(name) or home / default) for name, default in USER_FOLDERS.items()]
    usable = all(_can_make(folder / "godot") for folder in chosen)
    return dict(env) if usable else private_user_folders(env)


def private_user_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with folders that are not the user's."""
    folder = paths.home() / "user"
    return {**env, **{name: str(folder / name.split("_")[1].lower()) for name in USER_FOLDERS}}


def _can_make(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _plain(line: bytes) -> str:
    return NOT_TEXT.sub("", line.decode(errors="replace")).rstrip()


def cpu_sec(pids: Sequence[int]) -> float | None:
    """Processor time of the main threads, to the microsecond; None where it cannot be read.

    Godot's physics and scripts run in the main thread. Only Linux tells it this exactly.
    """
    total = 0
    for pid in pids:
        try:
            total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        except (OSError, IndexError, ValueError):
            return None
    return total * 1e-9 if pids else None


def memory_mb(pids: Sequence[int]) -> float | None:
    """Resident memory; None where it cannot be read (only on Linux it can)."""
    pages = 0
    for pid in pids:
        try:
            pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 if pids else None
