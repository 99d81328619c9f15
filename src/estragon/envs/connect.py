"""Waiting until a game has connected to a port and introduced itself; whoever else is told off."""

import errno
import select
import socket
import time
from collections.abc import Callable

import msgspec

from estragon.envs.messages import EnvInfo, decode, encode, handshake
from estragon.envs.outcome import BadMessageError
from estragon.godot.channel import Channel, ChannelError
from estragon.godot.process import GodotError, SupervisedProcess
from estragon.support.errors import UserError

POLL_SEC = 0.1
SEND_TIMEOUT_SEC = 5.0
KNOWN = "env_info"
INTRODUCTION = msgspec.json.Decoder(EnvInfo)


class _Kind(msgspec.Struct):
    type: str = ""


KIND = msgspec.json.Decoder(_Kind)


def listen(port: int) -> socket.socket:
    """Listen on 127.0.0.1; port 0 is any that is free."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=16)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            reason = "another program listens there; end it, or give another port (0: any free one)"
        elif number == errno.EACCES:
            reason = "only the administrator may; give one from 1024 on (0: any free one)"
        else:
            reason = str(error)
        raise UserError(f"cannot listen on 127.0.0.1:{port}: {reason}") from error


class Visitors:
    """All who connect to one port, until one of them turns out to be a game."""

    def __init__(self, listener: socket.socket, encoding: str, doubt: str = "") -> None:
        self._listener, self._encoding, self._doubt = listener, encoding, doubt
        self._port = listener.getsockname()[1]
        self._waiting: list[Channel] = []
        self._strangers: list[str] = []

    def wait(
        self,
        timeout_sec: float,
        process: SupervisedProcess | None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> tuple[Channel, EnvInfo]:
        """The game's channel, and what it says of itself; calls `meanwhile` now and then."""
        deadline = time.monotonic() + timeout_sec
        try:
            while True:
                ended = process is not None and process.status is not None
                if found := self._look():
                    return found
                meanwhile()
                if process is not None and ended:
                    raise process.error(f"{process.how_it_ended()} before it {self._due()}")
                if time.monotonic() > deadline:
                    raise self._in_vain(timeout_sec, process)
        finally:
            for channel in self._waiting:
                channel.close()

    def _look(self) -> tuple[Channel, EnvInfo] | None:
        everybody: list[socket.socket | Channel] = [self._listener, *self._waiting]
        ready, _, _ = select.select(everybody, [], [], POLL_SEC)
        for who in ready:
            if isinstance(who, Channel):
                if info := self._listen_to(who):
                    self._waiting.remove(who)
                    return who, info
            else:
                self._greet(Channel(self._listener.accept()[0]))
        return None

    def _greet(self, channel: Channel) -> None:
        self._waiting.append(channel)
        try:
            channel.send(encode(handshake(self._encoding)), SEND_TIMEOUT_SEC)
            channel.send(encode({"type": KNOWN}), SEND_TIMEOUT_SEC)
        except ChannelError as error:
            self._turn_away(channel, f"hung up ({error})")

    def _listen_to(self, channel: Channel) -> EnvInfo | None:
        try:
            channel.read(SEND_TIMEOUT_SEC)
            frame = channel.take()
        except ChannelError as error:
            self._turn_away(channel, f"sent {error}" if not channel.is_empty else str(error))
            return None
        if frame is None:
            return None
        try:
            kind = decode(KIND, frame).type
        except BadMessageError as error:
            self._turn_away(channel, f"sent no JSON: {error}")
            return None
        if kind != KNOWN:
            self._turn_away(channel, f"answered with '{kind}' instead of '{KNOWN}'")
            return None
        try:
            info: EnvInfo = decode(INTRODUCTION, frame)
        except BadMessageError as error:
            raise GodotError(
                f"the game on port {self._port} speaks another version of the protocol than 0.7: "
                f"{error}; update the addon in the game"
            ) from error
        return info

    def _turn_away(self, channel: Channel, why: str) -> None:
        self._waiting.remove(channel)
        channel.close()
        self._strangers.append(why)

    def _due(self) -> str:
        return f"introduced itself on port {self._port}{self._told()}"

    def _told(self) -> str:
        silent = f"{len(self._waiting)} connected and said nothing" if self._waiting else ""
        told = [*(f"somebody {why}" for why in self._strangers[-3:]), *([silent] if silent else [])]
        return f" ({'; '.join(told)})" if told else ""

    def _in_vain(self, timeout_sec: float, process: SupervisedProcess | None) -> GodotError:
        waited = f"waited {timeout_sec:g} s for a game to connect to 127.0.0.1:{self._port}"
        if process is None:
            return GodotError(
                f"{waited}, in vain{self._told()}; press Play in the editor, in a scene with a "
                "Sync node in training mode and this port, or give env_path to have it started"
            )
        return process.error(
            f"{waited}, in vain{self._told()}",
            f"{self._doubt or 'does its scene have a Sync node in training mode'}? is another "
            "scene the right one (scene=…)? start_timeout_sec lets it take longer",
        )
