"""A client as there were before `hello`: two agents, JSON, one message after the other.

Called with a port and how many seconds to play; prints agent-decisions a second.
"""

import json
import sys
import time

import numpy as np
from websockets.sync.client import connect

from estragon.tag.rules import load_rules

AGENTS = ("Agent1", "Agent2")
EPISODE = 200


def main(port: int, seconds: float) -> None:
    """Play, and say how fast."""
    size = load_rules().observation.size
    random = np.random.default_rng(0)
    looks = [random.uniform(-1.0, 1.0, size).round(4).tolist() for _ in range(64)]
    with connect(f"ws://127.0.0.1:{port}", compression=None) as server:
        start, step = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            now = {agent: looks[(step + k) % 64] for k, agent in enumerate(AGENTS)}
            after = {agent: looks[(step + 1 + k) % 64] for k, agent in enumerate(AGENTS)}
            server.send(json.dumps({"type": "act_batch", "obs": now}))
            actions = json.loads(server.recv(timeout=30.0))["actions"]
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
            server.send(json.dumps({"type": "transition_batch", "transitions": transitions}))
        print(step * len(AGENTS) / (time.perf_counter() - start))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
