"""VR navigation: one request per step, the four requests of the older form, and the socket.

Steps a second of one rig, then agent-steps a second of eight rigs in one game. All sides take
turns, so that noise meets all alike.
"""

import contextlib
import itertools
import sys
import time
from collections.abc import Iterator
from functools import partial

import msgspec

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
        "four_requests": (_four_requests, "action, observation, state, observation"),
        "http": (partial(_wire, "http", 1), "GodotEnv, wire http"),
        "tcp": (partial(_wire, "tcp", 1), "GodotEnv, wire tcp, binary1"),
    }
    turns = take_turns({name: opened for name, (opened, _) in one.items()}, seconds)
    figures = [
        Figure(f"navigation_{name}", turns.rate(name), RATE, 1, 1, REPEAT, note)
        for name, (_, note) in one.items()
    ]
    for above, below in (("step", "four_requests"), ("step", "tcp"), ("http", "tcp")):
        ratio = turns.ratio(above, below)
        name = f"navigation_{above}_over_{below}"
        figures.append(Figure(name, ratio, "×", 1, 1, REPEAT, "median of the rounds"))
    many = {wire: partial(_wire, wire, RIGS) for wire in ("http", "tcp")}
    turns = take_turns(many, seconds)
    return figures + [
        Figure(f"navigation_{wire}_rigs", turns.rate(wire), RATE, RIGS, 1, REPEAT, f"wire {wire}")
        for wire in many
    ]


class Requests:
    """A game of one rig, asked over one connection."""

    agents = 1

    def __init__(self, connection: HttpConnection, *, four: bool) -> None:
        self._connection, self._four = connection, four
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
            self._ask("GET", "/rl/observation")
            self._ask("POST", "/rl/action", action)
            self._ask("GET", "/rl/observation")
            if self._ask("GET", "/rl/state")["done"]:
                self._ask("POST", "/rl/reset", {})
        return time.perf_counter() - start

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        data = b"" if body is None else msgspec.json.encode(body)
        answer = self._connection.request(method, path, data, timeout_sec=TIMEOUT_SEC)
        if answer.status != 200:
            raise RuntimeError(answer.error())
        return msgspec.json.decode(answer.body, type=dict[str, object])


@contextlib.contextmanager
def _requests(*, four: bool) -> Iterator[Requests]:
    with running_scene(SCENE, 0) as (client, _):
        connection = HttpConnection(client.port, client.token, TIMEOUT_SEC)
        with contextlib.closing(connection):
            yield Requests(connection, four=four)


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
