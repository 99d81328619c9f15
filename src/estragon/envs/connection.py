"""The connection to one running game: waiting for it, the handshake, then requests and answers."""

import contextlib
import errno
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from estragon.envs.binary_wire import BinaryWire
from estragon.envs.http_channel import HttpChannel, HttpEndpoint
from estragon.envs.json_wire import JsonWire
from estragon.envs.wire import (
    JSON,
    PARAMETERS_REPLY,
    AgentTable,
    BadMessageError,
    EnvInfo,
    StepResult,
    Wire,
    decode_json,
    handshake,
    read_agents,
)
from estragon.godot.channel import Channel, ChannelClosedError, ChannelError, ChannelTimeoutError
from estragon.godot.process import POLL_SEC, GodotError, SupervisedProcess
from estragon.support.errors import UserError
from estragon.support.parameters import ParameterSpec, Values

WIRES: dict[str, type[Wire]] = {wire.encoding: wire for wire in (BinaryWire, JsonWire)}
ACCEPT_POLL_SEC = 0.1
HANDSHAKE_TIMEOUT_SEC = 5.0
QUIT_TIMEOUT_SEC = 3.0
EXIT_TIMEOUT_SEC = 2.0
RESET_ANSWER, STEP_ANSWER = "the first observations", "the result of a step"


class _MessageType(msgspec.Struct):
    type: str = ""


MESSAGE_TYPE = msgspec.json.Decoder(_MessageType)
ENV_INFO = msgspec.json.Decoder(EnvInfo)


class GameLostError(GodotError):
    """A game crashed or hung: restarting it may help."""


def listen(port: int) -> socket.socket:
    """Listen on 127.0.0.1; port 0 picks a free one."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=16)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        if number == errno.EADDRINUSE:
            reason = "another program listens there; stop it, or use another port (0: a free one)"
        elif number == errno.EACCES:
            reason = "permission denied; use a port from 1024 on (0: a free one)"
        else:
            reason = str(error)
        raise UserError(f"cannot listen on 127.0.0.1:{port}: {reason}") from error


class HandshakeServer:
    """Accepts connections on a port until one of them completes the handshake."""

    def __init__(self, port: int, encoding: str, hint: str = "") -> None:
        """Listen; port 0 picks a free one."""
        self._listener, self._encoding, self._hint = listen(port), encoding, hint
        self.port: int = self._listener.getsockname()[1]
        self._pending: list[Channel] = []
        self._rejected: list[str] = []

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    def wait(
        self,
        timeout_sec: float,
        process: SupervisedProcess | None,
        on_poll: Callable[[], None] = lambda: None,
    ) -> tuple[Channel, EnvInfo]:
        """The game's channel and its `env_info`; calls `on_poll` ten times a second."""
        deadline = time.monotonic() + timeout_sec
        try:
            while True:
                exited = process is not None and process.status is not None
                if found := self._poll():
                    return found
                on_poll()
                if process is not None and exited:
                    raise process.error(
                        f"{process.how_it_ended()} before the handshake on port {self.port}"
                        f"{self._others()}"
                    )
                if time.monotonic() > deadline:
                    raise self._timed_out(timeout_sec, process)
        finally:
            for channel in self._pending:
                channel.close()

    def _poll(self) -> tuple[Channel, EnvInfo] | None:
        sources: list[socket.socket | Channel] = [self._listener, *self._pending]
        ready, _, _ = select.select(sources, [], [], ACCEPT_POLL_SEC)
        for source in ready:
            if not isinstance(source, Channel):
                self._accept(Channel(self._listener.accept()[0]))
            elif info := self._read_env_info(source):
                self._pending.remove(source)
                return source, info
        return None

    def _accept(self, channel: Channel) -> None:
        self._pending.append(channel)
        try:
            channel.send_framed(handshake(self._encoding), HANDSHAKE_TIMEOUT_SEC)
        except ChannelError as error:
            self._reject(channel, f"disconnected ({error})")

    def _read_env_info(self, channel: Channel) -> EnvInfo | None:
        try:
            channel.read(HANDSHAKE_TIMEOUT_SEC)
            if (frame := channel.take()) is None:
                return None
            kind = decode_json(MESSAGE_TYPE, frame).type
            if kind == "env_info":
                return self._decode_env_info(frame)
            why = f"answered with '{kind}' instead of 'env_info'"
        except ChannelError as error:
            why = f"sent {error}" if not channel.is_empty else str(error)
        except BadMessageError as error:
            why = f"sent invalid JSON: {error}"
        self._reject(channel, why)
        return None

    def _decode_env_info(self, frame: bytearray) -> EnvInfo:
        try:
            info: EnvInfo = decode_json(ENV_INFO, frame)
        except BadMessageError as error:
            raise GodotError(
                f"the game on port {self.port} does not speak protocol version 0.7: "
                f"{error}; update the addon in the game"
            ) from error
        return info

    def _reject(self, channel: Channel, why: str) -> None:
        self._pending.remove(channel)
        channel.close()
        self._rejected.append(why)

    def _others(self) -> str:
        """What else connected to the port."""
        others = [f"another client {why}" for why in self._rejected[-3:]]
        if self._pending:
            others.append(f"{len(self._pending)} connected but sent nothing")
        return f" ({'; '.join(others)})" if others else ""

    def _timed_out(self, timeout_sec: float, process: SupervisedProcess | None) -> GodotError:
        waited = (
            f"timed out after {timeout_sec:g} s waiting for a game to connect to "
            f"127.0.0.1:{self.port}{self._others()}"
        )
        if process is None:
            return GodotError(
                f"{waited}; press Play in the editor, in a scene with a Sync node in training mode "
                "and this port, or give env_path to have the game started"
            )
        hint = self._hint or "does its scene have a Sync node in training mode"
        return process.error(
            waited, f"{hint}? is it the right scene (scene=…)? start_timeout_sec allows more time"
        )


class GameConnection:
    """A game that has completed the handshake; one request at a time, each with one answer."""

    def __init__(
        self,
        channel: Channel | HttpChannel,
        info: EnvInfo,
        process: SupervisedProcess | None,
        *,
        name: str,
        step_timeout_sec: float,
    ) -> None:
        self.process = process
        self.endpoint: HandshakeServer | HttpEndpoint | None = None
        """Where it was reached."""
        self.parameters: Sequence[ParameterSpec] | None = info.parameters
        """Those that the game has; None if it does not take any."""
        self._channel = channel
        self._name = name
        self._timeout_sec = step_timeout_sec
        self._awaited = ""
        try:
            self.wire = _make_wire(info)
        except GodotError as error:
            raise self._error(str(error)) from error

    @property
    def table(self) -> AgentTable:
        """The agents that are playing now."""
        return self.wire.table

    @property
    def is_waiting(self) -> bool:
        """Whether a request has not been answered yet."""
        return bool(self._awaited)

    def send_reset(self, seed: int | None, parameters: Sequence[Values] | None = None) -> None:
        """Request new episodes, with these parameters if any are given, agent by agent."""
        self._send(self.wire.encode_reset(seed, parameters), RESET_ANSWER)

    def send_parameters(self, agents: dict[str, Values]) -> None:
        """Send the parameters of the next episodes of some agents; there is no answer."""
        self._send(self.wire.encode_parameters(agents), "")

    def list_parameters(self) -> Sequence[ParameterSpec] | None:
        """The parameters that the game has declared or read by now."""
        if self.parameters is not None:
            self._send(self.wire.encode_parameters(None), "its parameters")
            frame = self._receive()
            try:
                self.parameters = decode_json(PARAMETERS_REPLY, frame).parameters
            except BadMessageError as error:
                raise self._error(f"it sent {error} as its parameters") from error
        return self.parameters

    def send_actions(self, actions: np.ndarray) -> None:
        """Send the actions of all agents: float32, agent by agent, key by key."""
        self._send(self.wire.encode_actions(actions), STEP_ANSWER)

    def receive(self) -> StepResult:
        """The answer to a reset or to actions."""
        reset = self._awaited == RESET_ANSWER
        frame = self._receive()
        try:
            return self.wire.decode(frame, reset=reset)
        except BadMessageError as error:
            raise self._error(f"it sent {error}") from error

    def call(self, method: str) -> list[Any]:
        """Call a method of the game's agents; returns what it returned, agent by agent."""
        self._send(self.wire.encode_call(method), f"the return values of {method}")
        frame = self._receive()
        try:
            return self.wire.decode_call(frame)
        except BadMessageError as error:
            raise self._error(f"it sent {error} as return values of {method}") from error

    def request_quit(self) -> None:
        """Ask it to quit; a game that serves others over HTTP stays."""
        if self.process is None and isinstance(self._channel, HttpChannel):
            return
        with contextlib.suppress(ChannelError):
            self._channel.send_framed(self.wire.encode_close(), QUIT_TIMEOUT_SEC)

    def disconnect(self) -> None:
        """Close the connection; the game continues."""
        self._channel.close()

    def close(self) -> None:
        """Disconnect, wait until the game has quit, and stop it if it does not."""
        self._channel.close()
        self._wait_for_exit(QUIT_TIMEOUT_SEC)
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Disconnect and kill it."""
        self._channel.close()
        if self.process is not None:
            self.process.stop(grace_sec=0.0)

    def _wait_for_exit(self, timeout_sec: float) -> None:
        deadline = time.monotonic() + timeout_sec
        while self.process and self.process.status is None and time.monotonic() < deadline:
            time.sleep(POLL_SEC)

    def _send(self, message: bytes | bytearray, awaited: str) -> None:
        if self._awaited:
            raise self._error(f"it has not sent {self._awaited} yet")
        self._awaited = awaited
        try:
            self._channel.send_framed(message, self._timeout_sec)
        except ChannelTimeoutError as error:
            raise self._hung() from error
        except ChannelClosedError:
            pass  # reading the answer finds out why

    def _receive(self) -> bytearray:
        try:
            frame = self._channel.receive(self._timeout_sec)
        except ChannelTimeoutError as error:
            raise self._hung() from error
        except ChannelClosedError as error:
            raise self._disconnected() from error
        except ChannelError as error:
            raise self._error(f"it sent {error}") from error
        self._awaited = ""
        return frame

    def _hung(self) -> GodotError:
        self.kill()
        text = f"timed out after {self._timeout_sec:g} s waiting for {self._awaited}; killed it"
        return GameLostError(str(self._error(text, "step_timeout_sec allows a step more time")))

    def _disconnected(self) -> GodotError:
        how = "it closed the connection"
        self._wait_for_exit(EXIT_TIMEOUT_SEC)
        if self.process is not None and self.process.status is not None:
            how = self.process.how_it_ended()
        self.kill()
        return GameLostError(str(self._error(f"{how} before {self._awaited}")))

    def _error(self, problem: str, advice: str | None = None) -> GodotError:
        if self.process is not None:
            return self.process.error(problem, advice)
        return GodotError(f"{self._name}: {problem}; {advice or 'see its output in the editor'}")


def _make_wire(info: EnvInfo) -> Wire:
    """The wire that the game has chosen."""
    encoding = info.encoding or JSON
    if encoding not in WIRES:
        raise GodotError(
            f"it answers in the encoding '{encoding}', which was not offered; the addon in the "
            "game is newer than this Estragon: update one of them"
        )
    return WIRES[encoding](read_agents(info))
