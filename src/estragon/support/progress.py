"""Progress of a long job: a live bar in a terminal, a line now and then elsewhere."""

import contextlib
import functools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as Bars

QUIET_SEC = 5.0


class Progress:
    """Steps of a job, shown on standard error; standard output is for results.

    Without a terminal, a long step prints a line every `every_sec`.
    """

    def __init__(self, every_sec: float = QUIET_SEC) -> None:
        self._every_sec = every_sec
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._label = ""
        self._full = ""
        self._printed_at = 0.0
        if sys.stderr.isatty():
            self._bars = Bars(
                TextColumn("{task.description:<16}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                console=Console(stderr=True),
                redirect_stdout=sys.stdout.isatty(),  # a pipe gets only what is meant for it
            )

    def __enter__(self) -> Self:
        """Start the display."""
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """Print one line."""
        if self._bars is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._bars.console.print(text)

    def step(self, label: str, size: str = "", *, announced: bool = True) -> None:
        """Begin the next step; one that is not announced prints only if it takes long."""
        self._label = label
        self._printed_at = time.monotonic()
        if self._bars is not None:
            if self._task is not None:
                total = self._bars.tasks[-1].total or 1
                self._bars.update(self._task, completed=total, total=total, count=self._full)
            self._full = ""
            self._task = self._bars.add_task(label, total=None, count=size)
        elif announced:
            self.say(f"{label} {size}".rstrip())

    def update(self, done: float, total: float, unit: str = "") -> None:
        """Report how far the step is."""
        count = f"{done:.0f}/{total:.0f}{unit}"
        self._full = f"{total:.0f}/{total:.0f}{unit}"
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=done, total=total, count=count)
        elif time.monotonic() - self._printed_at >= self._every_sec:
            self._printed_at = time.monotonic()
            self.say(f"{self._label} {count}")


@contextlib.contextmanager
def counting(label: str, unit: str) -> Iterator[Callable[[float, float], None]]:
    """The progress of a job of one step; yields the function that reports how far it is."""
    with Progress() as progress:
        progress.step(label, announced=False)
        yield functools.partial(progress.update, unit=unit)
