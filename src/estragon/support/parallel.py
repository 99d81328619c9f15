"""The cores of this machine, and kernels run on them: one contiguous span of rows per thread.

Kernels release the interpreter's lock, so plain threads run them side by side. What a span computes
must not depend on where it was cut.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

SMALLEST_SPAN = 256
"""Below this many rows a thread costs more than it brings."""

_pool: ThreadPoolExecutor | None = None
_pool_owner = 0


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel_for(kernel: Callable[..., None], rows: int, threads: int, *arguments: Any) -> None:
    """Run `kernel(first, last, *arguments)` over `rows` rows on up to `threads` threads."""
    spans = max(1, min(threads, rows // SMALLEST_SPAN))
    edges = [rows * span // spans for span in range(spans + 1)]
    waiting = [
        _workers().submit(kernel, edges[span], edges[span + 1], *arguments)
        for span in range(1, spans)
    ]
    kernel(edges[0], edges[1], *arguments)
    for future in waiting:
        future.result()


def _workers() -> ThreadPoolExecutor:
    """The pool, made when first needed, and again in a forked child (threads do not survive it)."""
    global _pool, _pool_owner  # noqa: PLW0603
    if _pool is None or _pool_owner != os.getpid():
        _pool = ThreadPoolExecutor(max(1, available_cores()), thread_name_prefix="arenas")
        _pool_owner = os.getpid()
    return _pool
