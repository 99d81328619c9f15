"""The WebSocket server of live play, in a thread of its own; docs/ws_protocol.md is its protocol.

A client is answered one message at a time: one that does not read blocks only its own handler, for
no longer than the limit, and fills no memory.
"""

import asyncio
import contextlib
import errno
import itertools
import logging
import logging.handlers
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from http import HTTPStatus
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from estragon.live.batcher import Actors, RequestBatcher
from estragon.live.client import ClientHandler, Counts, RefusedError
from estragon.live.protocol import LARGEST_MESSAGE, PORT, Limits, write_error
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.tag.rules import Rules, load_rules

PAGE = """\
This is the live training server of Estragon. It speaks WebSocket, not HTTP: there is nothing to
see in a browser. A game connects to ws://{host} and requests what its agents should do;
docs/ws_protocol.md says how.
"""
ELSEWHERE = "Pages from elsewhere may not talk to this server.\n"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
LONGEST_SHOWN = 100
HOST = "127.0.0.1"
START_SEC = 20.0
STOP_SEC = 20.0
POLL_SEC = 0.01
WAITING_MESSAGES = 2
"""Of a client that are read ahead."""
LONGEST_REASON = 123
"""Bytes, of a close frame."""


class SlowClientError(Exception):
    """A client does not read its answers."""


class LiveServer:
    """Listens while its block lasts: `with LiveServer(Actors(make)) as server: …`."""

    def __init__(
        self,
        actors: Actors,
        *,
        port: int = PORT,
        log: logging.Logger | None = None,
        limits: Limits | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Prepare a server; nothing happens before `start`.

        `actors` are called in its thread only. Port 0 is any free one, which `port` then holds.
        """
        self.port = port
        self.counts = Counts()
        self._actors = actors
        self._log = log or logging.getLogger("estragon.live")
        self._limits = limits or Limits()
        self._rules = rules or load_rules()
        self._batcher = RequestBatcher(actors)
        self._numbers = itertools.count(1)
        self._connections: set[ServerConnection] = set()
        self._started: Future[int] = Future()
        self._ended_by: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="live server", daemon=True)

    def __enter__(self) -> Self:
        """The server, listening."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def clients(self) -> int:
        """How many are connected now."""
        return len(self._connections)

    @property
    def ended(self) -> bool:
        """Whether it has stopped, for whatever reason."""
        return self._ended_by is not None or not self._thread.is_alive()

    def start(self) -> None:
        """Listen; raises UserError where that is not possible."""
        self._thread.start()
        self.port = self._started.result(timeout=START_SEC)

    def check(self) -> None:
        """Raise the error that ended the server, if any."""
        if self._ended_by is not None:
            raise self._ended_by

    def stop(self) -> None:
        """Close all connections and end; returns at once if it has ended already."""
        if self._loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it closed this very moment
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SEC)
            if self._thread.is_alive():
                self._log.error("the server did not stop within %.0f s", STOP_SEC)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised in the starting thread
            self._ended_by = error
            if self._started.done():
                self._log.exception("the server ended")
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._log_error)
        limits = self._limits
        try:
            server = await serve(
                self._handle,
                HOST,
                self.port,
                compression=None,
                process_request=self._check_request,
                open_timeout=limits.open_sec,
                ping_interval=limits.ping_every_sec,
                ping_timeout=limits.ping_sec,
                close_timeout=limits.close_sec,
                max_size=LARGEST_MESSAGE,
                max_queue=WAITING_MESSAGES,
                logger=_library_logger(self._log),
            )
        except (OSError, OverflowError) as error:
            raise _cannot_listen(self.port, error) from error
        self._started.set_result(server.sockets[0].getsockname()[1])
        await self._stopping.wait()
        await self._shut(server)

    async def _shut(self, server: Server) -> None:
        server.close()  # tells every client 1001
        try:
            async with asyncio.timeout(2.0 * self._limits.close_sec):
                await server.wait_closed()
        except TimeoutError:
            for connection in self._connections:
                connection.transport.abort()
            async with asyncio.timeout(self._limits.open_sec):
                await server.wait_closed()

    def _check_request(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer browsers with a page, refuse foreign origins; None lets a client in."""
        path = request.path[:LONGEST_SHOWN]
        if "websocket" not in ", ".join(request.headers.get_all("Upgrade")).lower():
            self._log.info("answered an HTTP request for %r", path)
            host, port = connection.local_address[:2]
            return connection.respond(HTTPStatus.OK, PAGE.format(host=f"{host}:{port}"))
        for origin in request.headers.get_all("Origin"):
            if _host(origin) not in LOCAL_HOSTS:
                self._log.warning("refused origin %r", origin[:LONGEST_SHOWN])
                return connection.respond(HTTPStatus.FORBIDDEN, ELSEWHERE)
        return None

    def _log_error(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        shown = error if isinstance(error, BaseException) else None
        self._log.error("%s", context["message"], exc_info=shown)

    async def _handle(self, connection: ServerConnection) -> None:
        if len(self._connections) >= self._limits.connections:
            self._log.warning("refused a connection: %d are open", len(self._connections))
            await self._close(connection, CloseCode.TRY_AGAIN_LATER, "too many connections")
            return
        self.counts.connections += 1
        self._connections.add(connection)
        self._batcher.clients = len(self._connections)
        handler = ClientHandler(
            next(self._numbers), self._rules, self._actors, self._batcher, self.counts
        )
        start = time.monotonic()
        self._log.info("client %d connected", handler.number)
        why = "server stopped"
        try:
            why = await self._answer_messages(connection, handler)
        finally:
            self._connections.discard(connection)
            self._batcher.clients = len(self._connections)
            self._leave(handler.number)
            self._log.info(
                "client %d disconnected after %.0f s and %d decisions: %s",
                handler.number,
                time.monotonic() - start,
                handler.decisions,
                why,
            )

    async def _answer_messages(self, connection: ServerConnection, handler: ClientHandler) -> str:
        """Answer a client until it disconnects; returns why."""
        try:
            while True:
                greeted = handler.hello is not None
                answer = await handler.answer(await connection.recv())
                if answer is not None:
                    await self._send(connection, answer)
                if not greeted:
                    self._log_hello(handler)
        except ConnectionClosed as closed:
            frame = closed.rcvd or closed.sent
            return f"{frame.code} {frame.reason[:LONGEST_REASON]!r}" if frame else "connection lost"
        except SlowClientError as slow:
            connection.transport.abort()
            return str(slow)
        except RefusedError as refused:
            if refused.by_message:
                broadcast([connection], write_error(str(refused)))
            await self._close(connection, refused.code, str(refused))
            return f"{int(refused.code)} {refused}"
        except Exception as error:  # noqa: BLE001 - whatever an actor raises
            self._log.exception("client %d: internal error", handler.number)
            await self._close(connection, CloseCode.INTERNAL_ERROR, "internal error of the server")
            return f"{int(CloseCode.INTERNAL_ERROR)} {type(error).__name__}"

    async def _send(self, connection: ServerConnection, answer: str | bytes) -> None:
        """Raises SlowClientError where the client does not take it."""
        broadcast([connection], answer)  # the one way to send that never waits
        deadline = time.monotonic() + self._limits.send_sec
        while connection.transport.get_write_buffer_size():
            if time.monotonic() > deadline:
                raise SlowClientError(f"took no answer for {self._limits.send_sec:.0f} s")
            await asyncio.sleep(POLL_SEC)

    async def _close(self, connection: ServerConnection, code: CloseCode, reason: str) -> None:
        short = reason.encode()[:LONGEST_REASON].decode(errors="ignore")
        try:
            async with asyncio.timeout(2.0 * self._limits.close_sec):
                await connection.close(code, short)
        except TimeoutError:
            connection.transport.abort()

    def _leave(self, client: int) -> None:
        try:
            self._actors.leave(client)
        except Exception:  # noqa: BLE001 - as above
            self._log.exception("client %d left: internal error", client)

    def _log_hello(self, handler: ClientHandler) -> None:
        if (hello := handler.hello) is not None:
            self._log.info(
                "client %d is %r: %d arenas, observations of %d, rewards %r, %s",
                handler.number,
                hello.client[:LONGEST_REASON],
                hello.arenas,
                hello.observation_size,
                hello.rewards[:LONGEST_REASON],
                "binary" if hello.encoding == "binary" else "JSON",
            )


def _cannot_listen(port: int, error: Exception) -> UserError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return UserError(
            f"port {port} is in use, perhaps by another estragon serve; stop it, or choose another "
            "with --port"
        )
    return UserError(f"cannot listen on port {port}: {error}; choose another with --port")


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None


def _library_logger(log: logging.Logger) -> logging.Logger:
    """A logger for the websockets library: errors only, without tracebacks."""
    quiet = log.getChild("websockets")
    quiet.setLevel(logging.ERROR)
    quiet.filters = [_without_traceback]
    return quiet


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = record.exc_text = None
    return True


LARGEST_LOG = 4 * 2**20
"""Bytes; one older file is kept."""


@contextlib.contextmanager
def logging_to(path: Path, *, shown: bool = True) -> Iterator[logging.Logger]:
    """Log to a file, with tracebacks, and to standard error if `shown`, without."""
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
    """Without tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        """The message, and the type and text of an error."""
        error = record.exc_info[1] if record.exc_info else None
        line = f"{self.formatTime(record, self.datefmt)} {record.getMessage()}"
        return f"{line}: {type(error).__name__}: {error}" if error else line
