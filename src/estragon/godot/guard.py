"""The guard of one child process: whoever asked for it may die in any way, the child dies too.

A program of its own, run by `posix_child` and never imported. Its standard input is a pipe that
only the owner holds: when that closes, the child and its whole process group are killed. The
kernel's PR_SET_PDEATHSIG alone would not do: it exists on Linux only, and it fires when the
*thread* that started the child ends. Here it is the second line: it takes the child along when
the guard itself is killed, and the guard has one thread. The third is the parent's id, for an
owner that forked and so left the pipe open in others.

Arguments: the owner's process id, then the command. On standard output it reports
`started PID` or `failed REASON`, and at last `ended STATUS` (negative: the signal's number).
The child writes to the guard's standard error.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from types import FrameType

if sys.platform == "win32":
    raise ImportError("Windows has jobs instead")

OWNER_CHECK_SEC = 0.5
PR_SET_PDEATHSIG = 1


def main(owner: int, words: list[str]) -> None:
    """Start the command, watch it and its owner, and leave nothing behind."""
    # Handlers, not SIG_IGN: a child would inherit being deaf.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, _survive)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    try:
        child = _start(words)
    except OSError as error:
        _report(f"failed {error.strerror or error}")
        return
    try:
        _report(f"started {child.pid}")
        while child.poll() is None and os.getppid() == owner:
            ready, _, _ = select.select([0, woken], [], [], OWNER_CHECK_SEC)
            if woken in ready:
                os.read(woken, 64)
            if 0 in ready and not os.read(0, 64):
                break
        if child.poll() is None:
            child.kill()
        _report(f"ended {child.wait()}")
    finally:
        os.killpg(os.getpgrp(), signal.SIGKILL)  # what the child started, and the guard


def _start(words: list[str]) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    guard = os.getpid()

    def die_with_the_guard() -> None:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(1)

    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        stderr=sys.stderr.fileno(),
        preexec_fn=die_with_the_guard,  # noqa: PLW1509 - the guard has one thread
    )


def _report(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(1, f"{line}\n".encode())


def _survive(_number: int, _frame: FrameType | None) -> None:
    """The guard ends last."""


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
