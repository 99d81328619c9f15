"""A client as there were before `hello`: two agents, JSON, one message after the other.

Called with a port and how many seconds to play; prints agent-decisions a second.
"""

import socket
import sys
import time

import msgspec
import numpy as np
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from estragon.tag.rules import load_rules

AGENTS = ("Agent1", "Agent2")
EPISODE = 200


TIMEOUT_SEC = 30.0


class Wire:
    """A WebSocket with nothing around it: what is measured is the server."""

    def __init__(self, port: int) -> None:
        self._protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{port}"))
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SEC)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._protocol.send_request(self._protocol.connect())
        self._flush()
        self._receive()

    def send(self, message: object) -> None:
        """Send one message."""
        self._protocol.send_text(msgspec.json.encode(message))
        self._flush()

    def take(self) -> bytes:
        """The next message."""
        while True:
            event = self._receive()
            if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                return bytes(event.data)

    def _receive(self) -> object:
        while not (events := self._protocol.events_received()):
            self._protocol.receive_data(self._socket.recv(65536))
            self._flush()
        return events[0]

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            self._socket.sendall(data)


def main(port: int, seconds: float) -> None:
    """Play, and say how fast."""
    size = load_rules().observation.size
    random = np.random.default_rng(0)
    looks = [random.uniform(-1.0, 1.0, size).round(4).tolist() for _ in range(64)]
    server = Wire(port)
    start, step = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        now = {agent: looks[(step + k) % 64] for k, agent in enumerate(AGENTS)}
        after = {agent: looks[(step + 1 + k) % 64] for k, agent in enumerate(AGENTS)}
        server.send({"type": "act_batch", "obs": now})
        actions = msgspec.json.decode(server.take())["actions"]
        step += 1
        transitions = [
            {
                "obs": now[agent],
                "action": actions[agent],
                "reward": 0.01,
                "next_obs": after[agent],
                "done": step % EPISODE == 0,
                "info": {"agent": agent, "role": role, "steps_in_episode": step % EPISODE},
            }
            for agent, role in zip(AGENTS, ("seeker", "hider"), strict=True)
        ]
        server.send({"type": "transition_batch", "transitions": transitions})
    print(step * len(AGENTS) / (time.perf_counter() - start))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
