"""Processes that share out the pictures of a film, and end with the process that began them."""

import collections
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from estragon.support.parallel import available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 3
"""Items given to each worker before the first result is asked for."""


@contextlib.contextmanager
def workers(prepare: Callable[..., None], *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """As many processes as there are cores, each after `prepare(*arguments)`."""
    pool = ProcessPoolExecutor(
        available_cores(),
        # a fork would copy the locks of threads that are not there any more, and open files
        multiprocessing.get_context("spawn"),
        _begin,
        (prepare, arguments),
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def in_order(
    pool: ProcessPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """The results of all items in their order, with only a few of them in memory."""
    waiting: collections.deque[Future[Result]] = collections.deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > AHEAD * available_cores():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _begin(prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to stop
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
