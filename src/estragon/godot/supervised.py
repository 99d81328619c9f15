"""A supervised program: a log, a deadline for every wait, and an end that is certain."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from estragon.support.errors import UserError

if sys.platform == "win32":
    from estragon.godot.windows_child import Child
else:
    from estragon.godot.posix_child import Child

Answer = TypeVar("Answer")

POLL_SEC = 0.01
MEANWHILE_SEC = 0.2
GRACE_SEC = 2.0
TAIL_LINES, TAIL_BYTES = 8, 8192
NOT_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


class GodotError(UserError):
    """A program that was started did not do what was asked of it; says what it said last."""


class SupervisedProcess:
    """A program in a process group of its own, ending with this process however that ends.

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
        """The process, to be stopped at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def status(self) -> int | None:
        """None while it runs, then its exit status; negative for the number of a signal."""
        return self._child.poll()

    def wait_for(self, what: str, ready: Callable[[], Answer | None], timeout_sec: float) -> Answer:
        """Ask `ready` until it answers with something true; `what` is for the message if not."""
        deadline = time.monotonic() + timeout_sec
        while True:
            ended = self.status is not None  # asked first: the answer may come with its last breath
            if answer := ready():
                return answer
            if ended:
                raise self.error(f"{self.how_it_ended()} before {what}")
            if time.monotonic() > deadline:
                raise self.error(f"waited {timeout_sec:g} s for {what}, in vain")
            time.sleep(POLL_SEC)

    def wait_for_line(self, what: str, matches: Callable[[str], bool], timeout_sec: float) -> str:
        """Wait for a line of its output, after those already waited for; returns the line."""

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
        """Wait for its end and return its status, calling `meanwhile` now and then."""
        deadline = time.monotonic() + timeout_sec
        next_call = time.monotonic()
        while (status := self.status) is None:
            if (now := time.monotonic()) > deadline:
                raise self.error(f"waited {timeout_sec:g} s for {what}, in vain")
            if now >= next_call:
                meanwhile()
                next_call = now + MEANWHILE_SEC
            time.sleep(POLL_SEC)
        return status

    def stop(self, grace_sec: float = GRACE_SEC) -> None:
        """End it: politely first, then by force, with everything it started."""
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
        """All it has said so far."""
        return [_plain(line) for line in self.log_file.read_bytes().split(b"\n")]

    def error(self, problem: str, advice: str | None = None) -> GodotError:
        """An exception that tells what happened, its last words, and what to do."""
        said = " | ".join(line.strip() for line in self.tail()) or "nothing"
        return GodotError(f"{self.name}: {problem}; it said last: {said}; {advice or self._advice}")

    def how_it_ended(self) -> str:
        """The exit code or the signal, in words."""
        status = self.status
        if status is not None and status < 0:
            known = {int(number): number.name for number in signal.Signals}
            return f"it was ended by {known.get(-status, f'signal {-status}')}"
        return f"it ended with exit code {status}"


def _plain(line: bytes) -> str:
    return NOT_TEXT.sub("", line.decode(errors="replace")).rstrip()
