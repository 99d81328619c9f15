"""The HTTP API of a running SpaceTime game, from Python."""

import os
from typing import Any, Self

import msgspec

from estragon.godot.channel import ChannelClosedError, ChannelError
from estragon.godot.http import HttpAnswer, HttpConnection
from estragon.spacetime.config import PORT
from estragon.support.errors import UserError

TIMEOUT_SEC = 10.0


class GodotAPIClient:
    """Scenes, performance and health; the token comes from `API_TOKEN` if it is not given."""

    def __init__(
        self, port: int = PORT, token: str | None = None, timeout_sec: float = TIMEOUT_SEC
    ) -> None:
        self.port, self.timeout_sec = port, timeout_sec
        self.token = os.environ.get("API_TOKEN", "") if token is None else token
        self._connection: HttpConnection | None = None

    def __enter__(self) -> Self:
        """The client, closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def health_check(self) -> bool:
        """Whether a game answers."""
        try:
            return self._exchange("GET", "/health", None).status == 200
        except UserError:
            return False

    def load_scene(self, scene_path: str) -> dict[str, Any]:
        """Load a scene of the whitelist; it is there when `get_scene_state` says loaded."""
        return self.request("POST", "/scene", {"scene_path": scene_path})

    def validate_scene(self, scene_path: str) -> dict[str, Any]:
        """Whether a scene could be loaded."""
        return self.request("PUT", "/scene", {"scene_path": scene_path})

    def reload_scene(self) -> dict[str, Any]:
        """Load the current scene again."""
        return self.request("POST", "/scene/reload", {})

    def get_scene_state(self) -> dict[str, Any]:
        """`scene_name`, `scene_path`, `status`."""
        return self.request("GET", "/scene")

    def get_performance_metrics(self) -> dict[str, Any]:
        """`timestamp`, `memory`, `engine`."""
        return self.request("GET", "/performance")

    def get_status(self) -> dict[str, Any]:
        """What `GET /status` returns."""
        return self.request("GET", "/status")

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Any endpoint; UserError for anything but success."""
        answer = self._exchange(method, path, body)
        if not 200 <= answer.status < 300:
            raise UserError(f"{method} {path}: {answer.error()}")
        try:
            return msgspec.json.decode(answer.body or b"{}", type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UserError(f"{method} {path}: the answer is not JSON: {error}") from error

    def _exchange(self, method: str, path: str, body: Any) -> HttpAnswer:
        data = b"" if body is None else msgspec.json.encode(body)
        for last in (self._connection is None, True):
            try:
                if self._connection is None:
                    self._connection = HttpConnection(self.port, self.token, self.timeout_sec)
                return self._connection.request(method, path, data, timeout_sec=self.timeout_sec)
            except ChannelError as error:
                self.close()
                # The game closes connections that were idle; a new one then works.
                if last or not isinstance(error, ChannelClosedError):
                    raise UserError(
                        f"cannot reach the game on 127.0.0.1:{self.port}: {error}; is it running "
                        "with --http-api? (estragon spacetime run)"
                    ) from error
        raise AssertionError("unreachable")
