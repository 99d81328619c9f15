"""The server's log: lines for people, and everything in a file."""

import contextlib
import logging
import logging.handlers
import sys
from collections.abc import Iterator
from pathlib import Path

from estragon.support.files import ensure_writable

LARGEST_LOG = 4 * 2**20
"""Bytes; then a new one is begun, and one old one is kept."""


@contextlib.contextmanager
def logging_to(path: Path, *, shown: bool = True) -> Iterator[logging.Logger]:
    """A log that is kept in a file together with tracebacks, its lines shown as well or not."""
    ensure_writable(path)
    log = logging.getLogger("estragon.live")
    handlers: list[logging.Handler] = []
    if shown:
        handlers.append(logging.StreamHandler(sys.stderr))
        handlers[0].setFormatter(_OneLine("%(asctime)s %(message)s", "%H:%M:%S"))
    kept = logging.handlers.RotatingFileHandler(
        path, maxBytes=LARGEST_LOG, backupCount=1, encoding="utf-8"
    )
    kept.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.setLevel(logging.INFO)
    log.propagate = False
    log.handlers = [*handlers, kept]
    try:
        yield log
    finally:
        log.handlers = []
        kept.close()


class _OneLine(logging.Formatter):
    """Leaves tracebacks to the file."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; of an error, also what kind it was."""
        error = record.exc_info[1] if record.exc_info else None
        line = f"{self.formatTime(record, self.datefmt)} {record.getMessage()}"
        return f"{line}: {type(error).__name__}: {error}" if error else line
