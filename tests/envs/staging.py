"""What the counter game must answer, worked out beside it; processes and ports."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.envs.peers.counter import Agent


class Expected:
    """One agent of the counter game, with a game's seed."""

    def __init__(self, number: int, seed: int, *, old: bool = False) -> None:
        self.agent, self.old = Agent(number, seed), old
        if old:
            self.agent.begin(None)  # an old game counts the reset

    def sees(self) -> list[float]:
        return self.agent.sees()

    def step(self, numbers: list[float]) -> dict[str, Any]:
        """Reward, terminated, truncated, what is seen last if the episode is over, and next."""
        before = self.agent.sees()
        reward, over = self.agent.act(numbers)
        last = None
        if over:
            last = before if self.old else self.agent.sees()
            self.agent.next_episode()
        return {
            "reward": reward,
            "terminated": bool(over) if self.old else over == 1,
            "truncated": over == 2 and not self.old,
            "last": last,
            "next": self.agent.sees(),
            "seed": self.agent.episode_seed,
        }


def flat(action: Any, order: tuple[str, ...] = ()) -> list[float]:
    """The numbers of an action, in the order of the game's keys."""
    if isinstance(action, dict):
        return [float(number) for key in order for number in np.ravel(action[key])]
    return [float(number) for number in np.ravel(action)]


def pids(env: Any) -> list[int]:
    return [game.process.pid for game in env._pool.games if game.process is not None]


def children(pid: int) -> list[int]:
    found = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(word) for word in found.stdout.split()]


def games_of(pid: int) -> list[int]:
    """The games that a process started, behind those who guard them."""
    return [game for guard in children(pid) for game in children(guard)]


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def assert_gone(numbers: list[int], within_sec: float = 5.0) -> None:
    deadline = time.monotonic() + within_sec
    while any(map(is_running, numbers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, numbers))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
