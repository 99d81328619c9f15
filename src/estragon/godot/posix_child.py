"""A child process on Linux and macOS, in a session of its own and under a guard."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

if sys.platform == "win32":
    raise ImportError("Windows has windows_child")

GUARD = Path(__file__).with_name("guard.py")
START_TIMEOUT_SEC = 20.0
REAP_TIMEOUT_SEC = 2.0


class Child:
    """A started program; it, and all that it starts, ends no later than this process."""

    def __init__(self, words: Sequence[str], log: int, env: Mapping[str, str]) -> None:
        held, leash = os.pipe()
        report, reporting = os.pipe()
        self._leash = os.fdopen(leash, "wb", buffering=0)
        self._report = os.fdopen(report, "rb", buffering=0)
        self._reported = b""
        self._status: int | None = None
        try:
            # -I -S: the guard needs the standard library only, and starts in half the time
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *words],
                stdin=held,
                stdout=reporting,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        finally:
            os.close(held)
            os.close(reporting)
        try:
            self.pid = self._read_start()
        except BaseException:
            self.kill()
            raise

    def poll(self) -> int | None:
        """The exit status once it has ended; negative for the number of the signal."""
        if self._status is None and self._guard.poll() is not None:
            self._status = self._read_end()
        return self._status

    def terminate(self) -> None:
        """Ask it, and what it started, to end."""
        self._signal_group(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and what it started, and wait until that is so."""
        if self.poll() is not None:
            return
        self._leash.close()  # the guard kills, and reaps its child before it goes
        try:
            self._guard.wait(REAP_TIMEOUT_SEC)
        except subprocess.TimeoutExpired:
            self._signal_group(signal.SIGKILL)
            self._guard.wait()
        self.poll()

    def _signal_group(self, number: int) -> None:
        # Until it is waited for, the guard's id is not given to anyone else.
        if self._guard.poll() is None:
            os.killpg(self._guard.pid, number)

    def _read_start(self) -> int:
        deadline = time.monotonic() + START_TIMEOUT_SEC
        while b"\n" not in self._reported:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self._report], [], [], left)[0]:
                raise OSError(f"nothing happened within {START_TIMEOUT_SEC:.0f} s")
            if not (part := self._report.read(4096)):
                raise OSError("its guard ended")
            self._reported += part
        word, _, rest = self._reported.split(b"\n")[0].decode().partition(" ")
        if word != "started":
            raise OSError(rest)
        return int(rest)

    def _read_end(self) -> int:
        self._reported += self._report.read()
        self._close()
        last = self._reported.decode().splitlines()[-1:]
        if last and last[0].startswith("ended "):
            return int(last[0].removeprefix("ended "))
        # The guard was killed; what is left of the group keeps the guard's id from being reused.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._guard.pid, signal.SIGKILL)
        return -signal.SIGKILL

    def _close(self) -> None:
        self._leash.close()
        self._report.close()
