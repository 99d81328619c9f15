"""A Godot game that advances only when asked: a plain local channel of length-prefixed frames.

Python listens on 127.0.0.1, the game connects and introduces itself; from then on every frame sent
is answered by one frame. Says nothing about what the frames mean.
"""

import json
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from estragon.godot.channel import Channel, ChannelClosedError, ChannelError, ChannelTimeoutError
from estragon.godot.find import require_godot
from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.godot.supervised import GodotError

START_TIMEOUT_SEC = 60.0
STEP_TIMEOUT_SEC = 60.0
POLL_SEC = 0.25


class Lockstep:
    """A running game and the channel to it."""

    def __init__(
        self,
        project: Path,
        options: Sequence[str],
        *,
        step_timeout_sec: float = STEP_TIMEOUT_SEC,
        folder: Path | None = None,
        engine: Sequence[str] = (),
    ) -> None:
        """Start the game headless and wait until it has introduced itself.

        Args:
            project: the Godot project.
            options: the game's own options, without `--channel`.
            step_timeout_sec: how long an answer may take.
            folder: where the game's log goes; a temporary folder if not given.
            engine: further options of Godot itself, such as another script to run.
        """
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="estragon-")
        folder = folder or Path(self._temporary.name if self._temporary else "")
        self._step_timeout_sec = step_timeout_sec
        self._channel: Channel | None = None
        godot = require_godot()
        project = import_project(project, godot=godot)
        listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        listener.settimeout(POLL_SEC)
        port = listener.getsockname()[1]
        words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60", *engine]
        self.process = GodotProcess(
            [*words, "--", f"--channel={port}", *options], folder=folder, godot=godot
        )
        try:
            with listener:
                connection = self.process.wait_for(
                    "it to connect", lambda: _accept(listener), START_TIMEOUT_SEC
                )
            self._channel = Channel(connection)
            self.hello: dict[str, Any] = json.loads(
                self._receive(self._channel, "its introduction")
            )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The channel, to be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def ask(self, frame: bytes, what: str) -> bytearray:
        """Send one frame and wait for the answer; `what` is for the message if none comes."""
        if self._channel is None:
            raise self.process.error("the channel is closed")
        try:
            self._channel.send(frame, self._step_timeout_sec)
        except ChannelError as error:
            raise self._broken(what) from error
        return self._receive(self._channel, what)

    def close(self) -> None:
        """End the game and everything that belongs to it."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        self.process.stop()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _receive(self, channel: Channel, what: str) -> bytearray:
        try:
            return channel.receive(self._step_timeout_sec)
        except ChannelClosedError as error:
            raise self._broken(what) from error
        except ChannelTimeoutError as error:
            waited = f"waited {self._step_timeout_sec:g} s for {what}, in vain"
            raise self.process.error(waited) from error
        except ChannelError as error:
            raise self.process.error(f"sent {error} for {what}") from error

    def _broken(self, what: str) -> GodotError:
        self.process.stop()
        return self.process.error(f"the game closed the channel before {what}")


def _accept(listener: socket.socket) -> socket.socket | None:
    try:
        return listener.accept()[0]
    except TimeoutError:
        return None
