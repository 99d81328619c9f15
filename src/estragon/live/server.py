"""The server of live training, in a thread of its own; docs/ws_protocol.md is what it speaks.

A client is answered one message at a time, so that one that does not read holds up nobody else and
fills no memory: its own handler waits for it, not longer than the limit, and nobody asks the desk.
"""

import asyncio
import contextlib
import errno
import itertools
import logging
import threading
import time
from concurrent.futures import Future
from typing import Self

from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from estragon.live.conversation import Conversation, Counts, RefusedError
from estragon.live.desk import Brains, Desk
from estragon.live.door import Door, quiet_logger
from estragon.live.limits import LARGEST_MESSAGE, PORT, Limits
from estragon.live.messages import write_error
from estragon.support.errors import UserError
from estragon.tag.rules import Rules, load_rules

HOST = "127.0.0.1"
START_SEC = 20.0
STOP_SEC = 20.0
POLL_SEC = 0.01
WAITING_MESSAGES = 2
"""Of a client, before it is not read from any more."""
LONGEST_REASON = 123
"""Bytes, of a close frame."""


class SlowClientError(Exception):
    """A client does not read what it is answered."""


class LiveServer:
    """Listens while its block lasts: `with LiveServer(Brains(make)) as server: …`."""

    def __init__(
        self,
        brains: Brains,
        *,
        port: int = PORT,
        log: logging.Logger | None = None,
        limits: Limits | None = None,
        rules: Rules | None = None,
    ) -> None:
        """Prepare a server; nothing happens before `start`.

        Args:
            brains: who answers; asked in the server's own thread alone.
            port: where; 0 for any that is free, which `port` then says.
            log: for a line about every client, and what goes wrong.
            limits: tighter ones, for tests.
            rules: the game whose observations are ours; by default the game's own.
        """
        self.port = port
        self.counts = Counts()
        self._brains = brains
        self._log = log or logging.getLogger("estragon.live")
        self._limits = limits or Limits()
        self._rules = rules or load_rules()
        self._desk = Desk(brains)
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
        """Raise what ended the server, if anything but `stop` did."""
        if self._ended_by is not None:
            raise self._ended_by

    def stop(self) -> None:
        """Tell all clients, and end; at once if it has ended already."""
        if self._loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it closed this very moment
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(STOP_SEC)
            if self._thread.is_alive():
                self._log.error("the server did not stop within %.0f s", STOP_SEC)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - for who started it, in another thread
            self._ended_by = error
            if self._started.done():
                self._log.exception("the server ended")
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._log_mishap)
        limits = self._limits
        try:
            server = await serve(
                self._attend,
                HOST,
                self.port,
                compression=None,
                process_request=Door(self._log).answer,
                open_timeout=limits.open_sec,
                ping_interval=limits.ping_every_sec,
                ping_timeout=limits.ping_sec,
                close_timeout=limits.close_sec,
                max_size=LARGEST_MESSAGE,
                max_queue=WAITING_MESSAGES,
                logger=quiet_logger(self._log),
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

    def _log_mishap(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        shown = error if isinstance(error, BaseException) else None
        self._log.error("%s", context["message"], exc_info=shown)

    async def _attend(self, connection: ServerConnection) -> None:
        if len(self._connections) >= self._limits.connections:
            self._log.warning("a client too many: there are %d", len(self._connections))
            await self._close(connection, CloseCode.TRY_AGAIN_LATER, "too many connections")
            return
        self.counts.connections += 1
        self._connections.add(connection)
        self._desk.clients = len(self._connections)
        conversation = Conversation(
            next(self._numbers), self._rules, self._brains, self._desk, self.counts
        )
        start = time.monotonic()
        self._log.info("client %d connected", conversation.number)
        why = "the server stops"
        try:
            why = await self._converse(connection, conversation)
        finally:
            self._connections.discard(connection)
            self._desk.clients = len(self._connections)
            self._leave(conversation.number)
            self._log.info(
                "client %d gone after %.0f s and %d decisions: %s",
                conversation.number,
                time.monotonic() - start,
                conversation.decisions,
                why,
            )

    async def _converse(self, connection: ServerConnection, conversation: Conversation) -> str:
        """Answer a client until it is gone; why it is."""
        try:
            while True:
                greeted = conversation.hello is not None
                answer = await conversation.answer(await connection.recv())
                if answer is not None:
                    await self._send(connection, answer)
                if not greeted:
                    self._log_hello(conversation)
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
        except Exception as error:  # noqa: BLE001 - whatever a brain raises
            self._log.exception("client %d: a mistake of ours", conversation.number)
            await self._close(connection, CloseCode.INTERNAL_ERROR, "a mistake of the server's")
            return f"{int(CloseCode.INTERNAL_ERROR)} {type(error).__name__}"

    async def _send(self, connection: ServerConnection, answer: str | bytes) -> None:
        """Raises SlowClientError where the client does not take it."""
        broadcast([connection], answer)  # the one way to send that never waits
        if connection.transport.get_write_buffer_size():
            await self._wait_until_taken(connection.transport)

    async def _wait_until_taken(self, transport: asyncio.WriteTransport) -> None:
        deadline = time.monotonic() + self._limits.send_sec
        while transport.get_write_buffer_size():
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
            self._brains.leave(client)
        except Exception:  # noqa: BLE001 - as above
            self._log.exception("client %d left: a mistake of ours", client)

    def _log_hello(self, conversation: Conversation) -> None:
        if (hello := conversation.hello) is not None:
            self._log.info(
                "client %d is %r: %d arenas, observations of %d, rewards %r, %s",
                conversation.number,
                hello.client[:LONGEST_REASON],
                hello.arenas,
                hello.observation_size,
                hello.rewards[:LONGEST_REASON],
                "binary" if hello.encoding == "binary" else "JSON",
            )


def _cannot_listen(port: int, error: Exception) -> UserError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return UserError(
            f"port {port} is taken, perhaps by another estragon serve: stop it, or choose another "
            "with --port"
        )
    return UserError(f"cannot listen on port {port}: {error}; choose another with --port")
