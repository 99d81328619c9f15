"""Ctrl-C handled cleanly, also while kernels are being compiled.

An exception raised inside the compiler's callbacks is swallowed there and corrupts its state, so an
interrupt that arrives then is retried until the compilation is over.
"""

import contextlib
import dataclasses
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

COMPILERS = ("llvmlite", "numba")
RETRY_SEC = 0.05
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def clean_interrupts() -> Iterator[None]:
    """In this block an interrupt raises KeyboardInterrupt, but never inside a compiler."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if not _is_compiling(frame):
            signal.default_int_handler(number, frame)
        if not told:
            told = True
            print("estragon: stopping after compilation", file=sys.stderr)
        retry = threading.Timer(RETRY_SEC, signal.raise_signal, [number])
        retry.daemon = True
        retry.start()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in COMPILERS:
            return True
        frame = frame.f_back
    return False


@dataclasses.dataclass
class StopRequest:
    """Whether a stop was requested; work continues until nothing is lost."""

    made: bool = False


@contextlib.contextmanager
def deferred_interrupts(
    say: Callable[[str], None], signals: Sequence[int] = (signal.SIGINT,)
) -> Iterator[StopRequest]:
    """In this block the first interrupt requests a stop; a second one stops immediately."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not request.made:
            request.made = True
            say("stopping after this update; Ctrl-C again stops at once")
        elif callable(handler := before[number]):
            handler(number, frame)
        else:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
