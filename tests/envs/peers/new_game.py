"""A game that speaks `binary1`; written from docs/godot_rl_protocol.md, not from our code.

Options as old_game.py; further `leave` and `join`: at that step the first agent leaves, and a new
one joins. A fault may also be a way to break a frame. `takes=1`: it takes parameters;
`wins=1`: the info always has `won`, true where the gravity is below 10.
"""

import json
import os
import socket
import struct
import sys
import time
from typing import Any, NamedTuple

from tests.envs.peers.counter import ACTIONS, Agent, action_space, observation_space, options


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def floats(numbers: list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


DECLARED = [
    {"name": "gravity", "default": 9.8, "low": 0.0, "high": 20.0, "unit": "m/s²", "choices": []},
    {"name": "map", "default": "small", "choices": ["small", "large"]},
]


class Row(NamedTuple):
    """What one agent is told."""

    agent: Agent
    reward: float = 0.0
    state: int = 0
    last: list[float] = []
    last_picture: bytes = b""
    info: dict[str, Any] = {}


class Game:
    def __init__(self) -> None:
        self.given = given = options()
        self.kind = given.get("kind", "box")
        self.fault, self.at = given.get("fault", ""), int(given.get("at", "0"))
        self.leave, self.join = int(given.get("leave", "0")), int(given.get("join", "0"))
        self.seed = int(given["env_seed"])
        self.agents = [Agent(i, self.seed) for i in range(int(given.get("agents", "2")))]
        self.newest = len(self.agents)
        self.steps = 0
        self.begun = False
        self.values: dict[int, Any] = {}
        self.next: dict[int, Any] = {}
        self.won = False
        self.wire = socket.create_connection(("127.0.0.1", int(given["port"])))
        print("new game connected", flush=True)

    def receive(self) -> bytes:
        data = b""
        while len(data) < 4:
            data += self.wire.recv(4 - len(data)) or sys.exit("trainer gone")
        (length,) = struct.unpack("<I", data)
        text = b""
        while len(text) < length:
            text += self.wire.recv(length - len(text)) or sys.exit("trainer gone")
        return text

    def send(self, data: bytes) -> None:
        self.wire.sendall(struct.pack("<I", len(data)) + data)

    def mask(self) -> dict[str, int]:
        return {"choose": 4} if self.kind == "masked" else {}

    def introduce(self) -> None:
        answer = {
            "type": "env_info",
            "observation_space": [observation_space(self.kind) for _ in self.agents],
            "action_space": [action_space(self.kind) for _ in self.agents],
            "n_agents": len(self.agents),
            "agent_policy_names": [f"policy{agent.id % 2}" for agent in self.agents],
            "encoding": "binary9" if self.fault == "encoding" else "binary1",
            "agent_ids": [agent.id for agent in self.agents],
            "action_mask": [self.mask() for _ in self.agents],
        }
        if "takes" in self.given:
            answer["parameters"] = DECLARED
        self.send(json.dumps(answer).encode())

    def told(self, agent: Agent) -> dict[str, Any]:
        """What is told of an episode that starts."""
        values = self.values.get(agent.id)
        told = {"seed": agent.episode_seed} | ({"parameters": values} if values else {})
        return told | ({"won": self.won} if "wins" in self.given else {})

    def numbers(self, agent: Agent) -> list[float]:
        return agent.sees() + ([agent.near()] if self.kind == "image" else [])

    def picture(self, agent: Agent) -> bytes:
        return agent.picture() if self.kind == "image" else b""

    def answer(self, kind: int, rows: list[Row], joined: list[Agent]) -> None:
        flags = (1 if joined else 0) | (4 if self.mask() else 0)
        infos = [row.info for row in rows]
        flags |= 2 if any(infos) else 0
        data = struct.pack("<BBHI", kind, flags, 0, len(rows))
        if joined:
            text = json.dumps(
                [
                    {
                        "id": agent.id,
                        "policy": f"policy{agent.id % 2}",
                        "observation_space": observation_space(self.kind),
                        "action_space": action_space(self.kind),
                        "action_mask": self.mask(),
                    }
                    for agent in joined
                ]
            ).encode()
            data += padded(struct.pack("<I", len(text)) + text)
        data += floats([row.reward for row in rows])
        data += padded(bytes(row.state for row in rows))
        seen = [self.numbers(row.agent) for row in rows]
        if self.fault == "nan" and self.steps == self.at:
            seen[-1][3] = float("inf")
        data += b"".join(floats(numbers) for numbers in seen)
        data += b"".join(floats(row.last) for row in rows if row.state & 4)
        data += padded(b"".join(self.picture(row.agent) for row in rows))
        data += padded(b"".join(row.last_picture for row in rows if row.state & 4))
        if self.mask():
            data += padded(b"".join(bytes(row.agent.allowed()) for row in rows))
        if any(infos):
            text = json.dumps(infos).encode()
            data += struct.pack("<I", len(text)) + text
        self.send(self.broken(data) if self.steps == self.at else data)

    def broken(self, data: bytes) -> bytes:
        return {
            "short": data[:-4],
            "long": data + b"12345678",
            "kind": b"Q" + data[1:],
            "flags": data[:1] + b"\xf0" + data[2:],
            "rows": data[:4] + b"\xff\xff\xff\xff" + data[8:],
            "empty": b"",
            "state": data[:8] + data[8:].replace(b"\x00\x00\x00\x00", b"\x40\x40\x40\x40", 1),
            "json": b'{"type":"step"}',
        }.get(self.fault, data)

    def reset(self, message: dict[str, Any]) -> None:
        if "seed" in message:
            self.seed = message["seed"]
        for agent in self.agents:
            if self.begun or "seed" in message:
                agent.begin(message.get("seed"))
        self.begun = True
        ids = [agent.id for agent in self.agents]
        given = message.get("parameters", [{} for _ in ids])
        self.values, self.next = dict(zip(ids, given, strict=True)), {}
        rows = [Row(agent, info=self.told(agent)) for agent in self.agents]
        self.answer(0x52, rows, [])

    def step(self, data: bytes) -> None:
        kind, zeros, count = struct.unpack_from("<B3sI", data)
        assert kind == 0x41
        assert zeros == b"\0\0\0"
        assert count == len(self.agents), f"{count} actions for {len(self.agents)} agents"
        width = sum(size if how == "continuous" else 1 for how, size in ACTIONS[self.kind].values())
        actions = struct.unpack_from(f"<{count * width}f", data, 8)
        assert len(data) == 8 + 4 * count * width
        self.steps += 1
        if self.fault == "leak" and self.steps == self.at:
            self.leaked = b"x" * (64 << 20)
        if self.fault == "hang" and self.steps == self.at:
            print("sleeping now", flush=True)
            time.sleep(3600)
        if self.fault == "die" and self.steps == self.at:
            print("out of luck", flush=True)
            os._exit(9)
        rows: list[Row] = []
        for place, agent in enumerate(self.agents):
            reward, state = agent.act(list(actions[place * width : (place + 1) * width]))
            row = Row(agent, reward, 8 if self.steps == self.leave and place == 0 else 0)
            if state:
                row = row._replace(
                    state=row.state | state | 4,
                    last=self.numbers(agent),
                    last_picture=self.picture(agent),
                )
                agent.next_episode()
                self.won = (self.values.get(agent.id) or {}).get("gravity", 0.0) < 10.0
                self.values[agent.id] = self.next.pop(agent.id, self.values.get(agent.id))
                told = {"ended_by": ["", "end", "time"][state]}
                row = row._replace(info=self.told(agent) | told)
            rows.append(row)
        joined = []
        if self.steps == self.join:
            joined = [Agent(self.newest, self.seed)]
            self.newest += 1
            self.values[joined[0].id] = self.values.get(self.agents[0].id)
            rows.append(Row(joined[0], info=self.told(joined[0])))
        self.answer(0x53, rows, joined)
        self.agents = [row.agent for row in rows if not row.state & 8]

    def play(self) -> None:
        while True:
            data = self.receive()
            if not data.startswith(b"{"):
                self.step(data)
                continue
            message = json.loads(data)
            if message["type"] == "handshake":
                assert message["encodings"] == ["binary1"]
            elif message["type"] == "env_info":
                self.introduce()
            elif message["type"] == "reset":
                self.reset(message)
            elif message["type"] == "call":
                returned = [f"{message['method']} of {agent.id}" for agent in self.agents]
                self.send(json.dumps({"type": "call", "returns": returned}).encode())
            elif message["type"] == "parameters" and "agents" in message:
                for agent, values in message["agents"].items():
                    assert int(agent) in {one.id for one in self.agents}
                    self.next[int(agent)] = values
            elif message["type"] == "parameters":
                self.send(json.dumps({"type": "parameters", "parameters": DECLARED}).encode())
            elif message["type"] == "close":
                print("goodbye", flush=True)
                return


Game().play()
