"""Games that are reached over HTTP: the same messages, each a request to `/rl/wire`.

The game listens, unlike on the socket of `connection.py`: here we connect, and try again until it
has started.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Callable

import msgspec

from estragon.envs.wire import BINARY, BadMessageError, EnvInfo, decode_json, handshake
from estragon.godot.channel import LENGTH, ChannelClosedError, ChannelError, ChannelTimeoutError
from estragon.godot.http import BINARY_TYPE, HOST, JSON_TYPE, NO_CONTENT, HttpConnection
from estragon.godot.process import GodotError, SupervisedProcess
from estragon.support.errors import UserError

HTTP_PORT = 8080
TOKEN_VARIABLE = "API_TOKEN"  # noqa: S105 - the name of a variable
WIRE_PATH = "/rl/wire"
RETRY_SEC = 0.05
REQUEST_SEC = 5.0
OK, UNAUTHORIZED, CONFLICT, UNAVAILABLE = 200, 401, 409, 503
ENV_INFO = msgspec.json.Decoder(EnvInfo)


def new_token() -> str:
    """A token for games that we start."""
    return secrets.token_urlsafe(32)


def given_token() -> str:
    """The token of a game that was started elsewhere."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise UserError(
            f"{TOKEN_VARIABLE} is not set: the game prints its token when it starts; set the "
            "variable to that, or start both with the same one"
        )
    return token


class HttpChannel:
    """Carries framed messages as HTTP requests; what `godot.channel.Channel` is to a socket."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def send_framed(self, data: bytes | bytearray | memoryview, timeout_sec: float) -> None:
        """Send messages that begin with their length."""
        at = 0
        with memoryview(data) as view:
            while at < len(view):
                start = at + LENGTH.size
                at = start + LENGTH.unpack_from(view, at)[0]
                kind = JSON_TYPE if view[start] == ord("{") else BINARY_TYPE
                self._connection.send(
                    "POST",
                    WIRE_PATH,
                    view[start:at],
                    content_type=kind,
                    timeout_sec=timeout_sec,
                )

    def receive(self, timeout_sec: float) -> bytearray:
        """The next message; requests that have none are answered with 204."""
        while True:
            answer = self._connection.receive(timeout_sec)
            if answer.status == OK:
                return answer.body
            if answer.status != NO_CONTENT:
                raise ChannelError(answer.error())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class HttpEndpoint:
    """Where a game listens, or will listen."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def close(self) -> None:
        """Nothing is open before the handshake."""

    def wait(
        self,
        timeout_sec: float,
        process: SupervisedProcess | None,
        on_poll: Callable[[], None] = lambda: None,
    ) -> tuple[HttpChannel, EnvInfo]:
        """Connect, retrying until the scene is loaded; the channel and the game's `env_info`."""
        deadline = time.monotonic() + timeout_sec
        problem = ""
        while True:
            exited = process is not None and process.status is not None
            try:
                return self._connect()
            except (ChannelClosedError, ChannelTimeoutError) as error:
                problem = str(error)
            on_poll()
            if process is not None and exited:
                raise process.error(
                    f"{process.how_it_ended()} before it listened on {HOST}:{self.port}"
                )
            if time.monotonic() > deadline:
                raise self._timed_out(timeout_sec, process, problem)
            time.sleep(RETRY_SEC)

    def reload_scene(self, timeout_sec: float) -> None:
        """Load the game's scene again, and wait until it is there."""
        try:
            with contextlib.closing(HttpConnection(self.port, self.token, REQUEST_SEC)) as http:
                answer = http.request("POST", "/scene/reload", b"{}", timeout_sec=timeout_sec)
                deadline = time.monotonic() + timeout_sec
                while answer.status == OK and time.monotonic() < deadline:
                    time.sleep(RETRY_SEC)
                    answer = http.request("GET", "/scene", timeout_sec=timeout_sec)
                    if msgspec.json.decode(answer.body).get("status") == "loaded":
                        return
        except (ChannelError, msgspec.DecodeError) as error:
            raise GodotError(f"cannot reload the scene on {HOST}:{self.port}: {error}") from error
        raise GodotError(f"cannot reload the scene on {HOST}:{self.port}: {answer.error()}")

    def _connect(self) -> tuple[HttpChannel, EnvInfo]:
        connection = HttpConnection(self.port, self.token, REQUEST_SEC)
        with contextlib.ExitStack() as on_error:
            on_error.callback(connection.close)
            channel = HttpChannel(connection)
            channel.send_framed(handshake(BINARY), REQUEST_SEC)
            answer = connection.receive(REQUEST_SEC)
            if answer.status in (CONFLICT, UNAVAILABLE):
                raise ChannelClosedError(answer.error())
            if answer.status == UNAUTHORIZED:
                raise GodotError(
                    f"the game on {HOST}:{self.port} has another token; set {TOKEN_VARIABLE} to "
                    "the one that it printed"
                )
            if answer.status != NO_CONTENT:
                raise GodotError(f"{HOST}:{self.port} answered the handshake: {answer.error()}")
            try:
                info: EnvInfo = decode_json(ENV_INFO, channel.receive(REQUEST_SEC))
            except BadMessageError as error:
                raise GodotError(f"the game on {HOST}:{self.port} sent {error}") from error
            on_error.pop_all()
            return channel, info

    def _timed_out(
        self, timeout_sec: float, process: SupervisedProcess | None, problem: str
    ) -> GodotError:
        waited = (
            f"timed out after {timeout_sec:g} s waiting for a game to answer on "
            f"{HOST}:{self.port} ({problem})"
        )
        if process is None:
            return GodotError(
                f"{waited}; start it with --http-api --http-port={self.port}, or give env_path to "
                "have it started"
            )
        return process.error(waited, "does the scene have an HttpApi node? is it the right scene?")
