"""One running game: told what to do, asked what came of it, and its end told in words."""

import contextlib
import time
from typing import Any

import msgspec
import numpy as np

from estragon.envs.binary_wire import BinaryWire
from estragon.envs.json_wire import JsonWire
from estragon.envs.messages import EnvInfo, Returned, check_depth, decode, encode, read_roster
from estragon.envs.outcome import BadMessageError, Outcome
from estragon.envs.roster import Roster
from estragon.godot.channel import Channel, ChannelClosedError, ChannelError, ChannelTimeoutError
from estragon.godot.process import POLL_SEC, GodotError, SupervisedProcess

QUIT_SEC = 3.0
DEATH_SEC = 2.0
RETURNS = msgspec.json.Decoder(Returned)


class GameLostError(GodotError):
    """A game that died or hung: to start it again may help."""


Wire = BinaryWire | JsonWire


class Game:
    """A game that has connected."""

    def __init__(
        self,
        channel: Channel,
        info: EnvInfo,
        process: SupervisedProcess | None,
        *,
        name: str,
        step_timeout_sec: float,
    ) -> None:
        self.process = process
        self._channel = channel
        self._name = name
        self._timeout_sec = step_timeout_sec
        self._awaited = ""
        try:
            self.wire = _agree(info)
        except GodotError as error:
            raise self._error(str(error)) from error

    @property
    def roster(self) -> Roster:
        """Who plays now."""
        return self.wire.roster

    @property
    def is_awaited(self) -> bool:
        """Whether an answer is still due."""
        return bool(self._awaited)

    def send_reset(self, seed: int | None) -> None:
        """Ask for new episodes."""
        self._send(self.wire.reset(seed), "the first observations")

    def send_actions(self, numbers: np.ndarray) -> None:
        """Tell all agents what to do: float32, agent by agent, key by key."""
        self._send(self.wire.actions(numbers), "what came of the actions")

    def receive(self) -> Outcome:
        """The answer to what was sent."""
        reset = self._awaited == "the first observations"
        frame = self._receive()
        try:
            return self.wire.read(frame, reset=reset)
        except BadMessageError as error:
            raise self._error(f"it sent {error}") from error

    def call(self, method: str) -> list[Any]:
        """Call a method of the game's agents; what it returned, agent by agent."""
        text = encode({"type": "call", "method": method})
        self._send(len(text).to_bytes(4, "little") + text, f"what {method} returns")
        frame = self._receive()
        try:
            returned: Returned = decode(RETURNS, frame)
            check_depth(returned.returns)
        except BadMessageError as error:
            raise self._error(f"it sent {error} for what {method} returns") from error
        return returned.returns

    def say_goodbye(self) -> None:
        """Tell it to quit."""
        with contextlib.suppress(ChannelError):
            self._channel.send(encode({"type": "close"}), QUIT_SEC)

    def close(self) -> None:
        """See to it that it quits; best after a goodbye."""
        self._channel.close()
        if self.process is not None:
            deadline = time.monotonic() + QUIT_SEC
            while self.process.status is None and time.monotonic() < deadline:
                time.sleep(POLL_SEC)
            self.process.stop()

    def kill(self) -> None:
        """End it without a word."""
        self._channel.close()
        if self.process is not None:
            self.process.stop(grace_sec=0.0)

    def _send(self, framed: bytes | bytearray, awaited: str) -> None:
        if self._awaited:
            raise self._error(f"{self._awaited} did not come yet")
        self._awaited = awaited
        try:
            self._channel.send_framed(framed, self._timeout_sec)
        except ChannelTimeoutError as error:
            raise self._hung() from error
        except ChannelClosedError:
            pass  # whoever is gone is found out when the answer is read, with its reason

    def _receive(self) -> bytearray:
        try:
            frame = self._channel.receive(self._timeout_sec)
        except ChannelTimeoutError as error:
            raise self._hung() from error
        except ChannelClosedError as error:
            raise self._gone() from error
        except ChannelError as error:
            raise self._error(f"it sent {error}") from error
        self._awaited = ""
        return frame

    def _hung(self) -> GodotError:
        self.kill()
        text = f"waited {self._timeout_sec:g} s for {self._awaited}, in vain, and ended it"
        return GameLostError(str(self._error(text, "step_timeout_sec lets a step take longer")))

    def _gone(self) -> GodotError:
        awaited = self._awaited
        how = "it closed the connection"
        if self.process is not None:
            deadline = time.monotonic() + DEATH_SEC
            while self.process.status is None and time.monotonic() < deadline:
                time.sleep(POLL_SEC)
            if self.process.status is not None:
                how = self.process.how_it_ended()
        self.kill()
        return GameLostError(str(self._error(f"{how} before {awaited}")))

    def _error(self, problem: str, advice: str | None = None) -> GodotError:
        if self.process is not None:
            return self.process.error(problem, advice)
        advice = advice or "see its output in the editor"
        return GodotError(f"{self._name}: {problem}; {advice}")


def _agree(info: EnvInfo) -> Wire:
    """The wire that a game's introduction asks for."""
    if info.encoding is None:
        return JsonWire(read_roster(info))
    if info.encoding == BinaryWire.encoding:
        return BinaryWire(read_roster(info))
    raise GodotError(
        f"it answers in the encoding '{info.encoding}', which was not offered; the addon in the "
        "game is newer than this Estragon: update one of them"
    )
