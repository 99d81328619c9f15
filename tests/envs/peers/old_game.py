"""A game that speaks version 0.7 and nothing else; written from the contract, not from our code.

Options: `kind` of counter.py, `agents`, `form` list or single (one dict for all, no names, no
info), and a fault: `fault` at step `at`.
"""

import json
import os
import socket
import struct
import sys
import time
from typing import Any

from tests.envs.peers.counter import Agent, action_space, observation_space, options


def main() -> None:
    given = options()
    kind, form = given.get("kind", "box"), given.get("form", "list")
    fault, at = given.get("fault", ""), int(given.get("at", "0"))
    if fault == "crash":
        print("the roof fell", flush=True)
        sys.exit(3)
    agents = [Agent(i, int(given["env_seed"])) for i in range(int(given.get("agents", "2")))]
    wire = socket.create_connection(("127.0.0.1", int(given["port"])))
    print("old game connected", flush=True)

    def receive() -> Any:
        data = b""
        while len(data) < 4:
            data += wire.recv(4 - len(data)) or sys.exit("trainer gone")
        (length,) = struct.unpack("<I", data)
        text = b""
        while len(text) < length:
            text += wire.recv(length - len(text)) or sys.exit("trainer gone")
        return json.loads(text)

    def send(message: dict[str, Any]) -> None:
        text = json.dumps(message).encode()
        wire.sendall(struct.pack("<I", len(text)) + text)

    def all_see() -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = [{"obs": agent.sees()} for agent in agents]
        if kind == "image":
            for agent, each in zip(agents, seen, strict=True):
                each["near"] = agent.near()
                each["camera_2d"] = agent.picture().hex()
        return seen

    steps = 0
    while True:
        message = receive()
        if message["type"] == "handshake":
            assert (message["major_version"], message["minor_version"]) == ("0", "7")
        elif message["type"] == "env_info":
            sees, does = observation_space(kind), action_space(kind)
            if kind == "image":
                sees["camera_2d"]["size"] = [3, 36, 40]  # as the old addon says it, wrongly
            answer: dict[str, Any] = {"type": "env_info", "n_agents": len(agents)}
            if form == "single":
                answer |= {"observation_space": sees, "action_space": does}
            else:
                answer |= {
                    "observation_space": [sees] * len(agents),
                    "action_space": [does] * len(agents),
                    "agent_policy_names": [f"policy{agent.id % 2}" for agent in agents],
                }
            if fault == "version":
                answer["observation_space"] = 7
            if fault == "space":
                answer["action_space"] = {"move": {"size": "big", "action_type": "continuous"}}
            send(answer)
        elif message["type"] == "reset":
            for agent in agents:
                agent.begin(None)
            answer = {"type": "reset", "obs": all_see()}
            send(answer if form == "single" else answer | {"info": [{} for _ in agents]})
        elif message["type"] == "action":
            steps += 1
            rewards, dones = [], []
            for agent, action in zip(agents, message["action"], strict=True):
                flat = [
                    n
                    for value in action.values()
                    for n in (value if isinstance(value, list) else [value])
                ]
                reward, over = agent.act(flat)
                if over:
                    agent.next_episode()
                rewards.append(reward)
                dones.append(bool(over))
            seen = all_see()
            if steps == at:
                if fault == "hang":
                    print("sleeping now", flush=True)
                    time.sleep(3600)
                if fault == "die":
                    print("out of luck", flush=True)
                    os._exit(9)
                if fault == "nan":
                    seen[-1]["obs"][3] = float("nan")
                if fault == "null":
                    seen[-1]["obs"][3] = None
                if fault == "short":
                    seen[-1]["obs"].pop()
                if fault == "missing":
                    del seen[0]["obs"]
                if fault == "text":
                    seen[0]["obs"] = "deadbeef"
                if fault == "few":
                    rewards.pop()
            answer = {"type": "step", "obs": seen, "reward": rewards, "done": dones}
            send(
                answer if form == "single" else answer | {"info": [{"n": a.count} for a in agents]}
            )
        elif message["type"] == "call":
            returned = [f"{message['method']} of {agent.id}" for agent in agents]
            send({"type": "call", "returns": returned})
        elif message["type"] == "close":
            print("goodbye", flush=True)
            return


main()
