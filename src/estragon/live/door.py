"""Who is let in: what a browser is shown, and how little is logged of a failed handshake."""

import logging
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

PAGE = """\
This is the live training server of Estragon. It speaks WebSocket, not HTTP: there is nothing to
see in a browser. A game connects to ws://{host} and asks what its agents should do;
docs/ws_protocol.md says how.
"""
ELSEWHERE = "Pages from elsewhere may not talk to this server.\n"
HERE = ("localhost", "127.0.0.1", "::1")
LONGEST_SHOWN = 100


class Door:
    """Answers the request that opens a connection, where it is not a WebSocket's."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """A page for whoever is no WebSocket client, None for who may come in."""
        path = request.path[:LONGEST_SHOWN]
        if "websocket" not in ", ".join(request.headers.get_all("Upgrade")).lower():
            self._log.info("a browser asked for %r and was told what this is", path)
            host, port = connection.local_address[:2]
            return connection.respond(HTTPStatus.OK, PAGE.format(host=f"{host}:{port}"))
        for origin in request.headers.get_all("Origin"):
            if _host(origin) not in HERE:
                self._log.warning("refused a page of %r", origin[:LONGEST_SHOWN])
                return connection.respond(HTTPStatus.FORBIDDEN, ELSEWHERE)
        return None


def _host(origin: str) -> str | None:
    try:
        return urlsplit(origin).hostname
    except ValueError:
        return None


def quiet_logger(log: logging.Logger) -> logging.Logger:
    """Where the library may complain: into our log, in one line, without a traceback."""
    quiet = log.getChild("websockets")
    quiet.setLevel(logging.ERROR)
    quiet.filters = [_without_traceback]
    return quiet


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = record.exc_text = None
    return True
