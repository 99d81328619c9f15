"""VR navigation: one request per step, the four requests of the older form, and the socket.

The four requests are asked twice: by our own client, and by the `requests` library, which programs
of the older form use.

Steps a second of one rig, then agent-steps a second of eight rigs in one game. All sides take
turns, so that noise meets all alike.
"""

import contextlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import requests

from estragon.envs.gymnasium_env import GodotEnv
from estragon.godot.http import HttpConnection
from estragon.judge.bench import Figure
from estragon.spacetime.config import SCENE
from estragon.spacetime.serve import running_scene
from estragon.support import paths

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._turns import Ours, take_turns
finally:
    sys.path.pop(0)

REPEAT = 6
RIGS = 8
TIMEOUT_SEC = 60.0
RATE = "agent-steps/s"


def measure(seconds: float) -> list[Figure]:
    """One rig by `/rl/step`, by four requests, and by both wires; eight rigs by both wires."""
    one = {
        "step": (_step, "POST /rl/step, compact JSON"),
        "four_requests": (_four_requests, "observation, action, observation, state"),
        "four_by_requests": (_four_by_requests, "the same by the requests library, one session"),
        "http": (partial(_wire, "http", 1), "GodotEnv, wire http"),
        "tcp": (partial(_wire, "tcp", 1), "GodotEnv, wire tcp, binary1"),
    }
    turns = take_turns({name: opened for name, (opened, _) in one.items()}, seconds)
    figures = [
        Figure(f"navigation_{name}", turns.rate(name), RATE, 1, 1, REPEAT, note)
        for name, (_, note) in one.items()
    ]
    for above, below in (
        ("step", "four_requests"),
        ("step", "four_by_requests"),
        ("step", "tcp"),
        ("http", "tcp"),
    ):
        ratio = turns.ratio(above, below)
        name = f"navigation_{above}_over_{below}"
        figures.append(Figure(name, ratio, "×", 1, 1, REPEAT, "median of the rounds"))
    many = {wire: partial(_wire, wire, RIGS) for wire in ("http", "tcp")}
    turns = take_turns(many, seconds)
    return figures + [
        Figure(f"navigation_{wire}_rigs", turns.rate(wire), RATE, RIGS, 1, REPEAT, f"wire {wire}")
        for wire in many
    ]


Ask = Callable[[str, str, object], dict[str, Any]]
"""Method, path and body of a request → its answer."""


class Requests:
    """A game of one rig, asked over one connection."""

    agents = 1

    def __init__(self, ask: Ask, *, four: bool) -> None:
        self._ask, self._four = ask, four
        self._moves = itertools.cycle([(0.0, 1.0, 0.2), (0.5, 0.8, -0.2), (-0.5, 1.0, 0.0)])
        self._ask("POST", "/rl/reset", {})

    def play(self, steps: int) -> float:
        """Play so many steps; the seconds that it took."""
        start = time.perf_counter()
        for _ in range(steps):
            x, z, turn = next(self._moves)
            action = {
                "type": "continuous",
                "move_horizontal": x,
                "move_vertical": z,
                "rotate": turn,
            }
            if not self._four:
                self._ask("POST", "/rl/step", {"action": action, "compact": True})
                continue
            self._ask("GET", "/rl/observation", None)
            self._ask("POST", "/rl/action", action)
            self._ask("GET", "/rl/observation", None)
            if self._ask("GET", "/rl/state", None)["done"]:
                self._ask("POST", "/rl/reset", {})
        return time.perf_counter() - start


@contextlib.contextmanager
def _requests(*, four: bool) -> Iterator[Requests]:
    with running_scene(SCENE, 0) as (client, _):
        connection = HttpConnection(client.port, client.token, TIMEOUT_SEC)

        def ask(method: str, path: str, body: object) -> dict[str, Any]:
            data = b"" if body is None else msgspec.json.encode(body)
            answer = connection.request(method, path, data, timeout_sec=TIMEOUT_SEC)
            if answer.status != 200:
                raise RuntimeError(answer.error())
            return msgspec.json.decode(answer.body, type=dict[str, Any])

        with contextlib.closing(connection):
            yield Requests(ask, four=four)


@contextlib.contextmanager
def _four_by_requests() -> Iterator[Requests]:
    with running_scene(SCENE, 0) as (client, _), requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {client.token}"

        def ask(method: str, path: str, body: object) -> dict[str, Any]:
            url = f"http://127.0.0.1:{client.port}{path}"
            answer = session.request(method, url, json=body, timeout=TIMEOUT_SEC)
            answer.raise_for_status()
            found: dict[str, Any] = answer.json()
            return found

        yield Requests(ask, four=True)


_step, _four_requests = partial(_requests, four=False), partial(_requests, four=True)


@contextlib.contextmanager
def _wire(wire: str, rigs: int) -> Iterator[Ours]:
    env = GodotEnv(
        paths.godot_project(),
        scene=SCENE,
        wire=wire,
        start_timeout_sec=TIMEOUT_SEC * 2,
        arguments={"parameter.rigs": rigs},
    )
    with contextlib.closing(env):
        yield Ours(env)
