"""How fast Godot plays live, each decision answered over the wire, beside the game without a wire.

The server is in this process, as in `estragon live`; Godot, and the client that speaks JSON as
older ones do, are others. The sides take turns, so that noise meets all alike.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from estragon.godot.process import GodotProcess
from estragon.godot.project import import_project
from estragon.judge.bench import Figure
from estragon.live.batcher import Actors, RandomActor
from estragon.live.learning import learning_actors
from estragon.live.live_session import SWITCH_SEC
from estragon.live.server import LiveServer
from estragon.live.source import CPU, FOREVER_SEC, LIVE_CONFIG, LiveSource
from estragon.selfplay.config import LEAGUE, Task
from estragon.selfplay.trainer import Trainer
from estragon.support import paths
from estragon.tag.layout import load_layouts
from estragon.tag.rules import load_rules

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks.godot import AGENTS, play_bare
finally:
    sys.path.pop(0)

ARENAS = (1, 4, 16, 32)
ROUNDS = 3
"""That the sides take; one, and one arena, where there is no time to measure anything anyway."""
START_SEC = 60.0
WARM_UP_SEC = 0.5
REPEAT = 3
RATE = "agent-decisions/s"
Server = Callable[[], contextlib.AbstractContextManager[LiveServer]]


def measure(seconds: float) -> list[Figure]:
    """For every arena count: without a wire, at random, with inference, learning; then JSON."""
    sys.setswitchinterval(SWITCH_SEC)
    project = import_project(paths.godot_project())
    with _serving_learner():
        pass  # everything is compiled now
    rounds, counts = (ROUNDS, ARENAS) if seconds >= 1.0 else (1, ARENAS[:1])
    figures = []
    for arenas in counts:
        figures += _beside_bare(project, arenas, rounds, seconds / rounds)
    return figures + _json(seconds)


def _beside_bare(project: Path, arenas: int, rounds: int, seconds: float) -> list[Figure]:
    rates: dict[str, list[float]] = {"bare": [], "random": [], "inference": [], "learning": []}
    for _ in range(rounds):
        rates["bare"].append(play_bare(project, arenas, seconds)["game"])
        sides: dict[str, tuple[Server, bool]] = {
            "random": (_serving_at_random, True),
            "inference": (_serving_learner, False),
            "learning": (_serving_learner, True),
        }
        for name, (serving, training) in sides.items():
            rates[name].append(_play_live(project, arenas, seconds, serving, training=training))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    notes = {
        "bare": "no wire",
        "random": "server at random",
        "inference": "newest policies, rivals and bots",
        "learning": "the same, and learning",
    }
    names = {name: f"live_{name}_{arenas}" for name in rates}
    figures = [
        Figure(names[name], middle[name], RATE, arenas, AGENTS, REPEAT, notes[name])
        for name in rates
    ]
    for above, below in (("inference", "bare"), ("learning", "inference")):
        ratio = middle[above] / middle[below]
        name = f"live_{above}_over_{below}_{arenas}"
        figures.append(Figure(name, ratio, "×", arenas, AGENTS, REPEAT, ""))
    return figures


def _json(seconds: float) -> list[Figure]:
    """A client of two agents that speaks JSON, every decision asked for and learned from."""
    program = Path(__file__).with_name("_json_client.py")
    with _serving_learner() as server:
        words = [sys.executable, str(program), str(server.port), str(seconds)]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    note = "act_batch and transition_batch, both observations in each; learned from"
    return [Figure("live_json", float(done.stdout), RATE, 1, AGENTS, REPEAT, note)]


@contextlib.contextmanager
def _serving_at_random() -> Iterator[LiveServer]:
    with LiveServer(Actors(lambda _: RandomActor(0)), port=0) as server:
        yield server


@contextlib.contextmanager
def _serving_learner() -> Iterator[LiveServer]:
    """A server as `estragon live` has it, its learner at work in another thread."""
    rules = load_rules()
    task = Task(rules, load_layouts(rules.layout, rules), 0, "both", LEAGUE)
    source = LiveSource(task, LIVE_CONFIG, FOREVER_SEC)
    trainer = Trainer(task, LIVE_CONFIG, source, CPU)
    over = threading.Event()

    def learn() -> None:
        while not over.is_set():
            trainer.update()

    thread = threading.Thread(target=learn, daemon=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        learning_actors(trainer, source, Path(folder)) as actors,
        LiveServer(actors, port=0) as server,
    ):
        thread.start()
        try:
            yield server
        finally:
            over.set()
            thread.join()


def _play_live(
    project: Path, arenas: int, seconds: float, serving: Server, *, training: bool
) -> float:
    env = os.environ | {"AI_TRAINING_MODE": str(int(training))}
    words: list[str | Path] = ["--headless", "--path", project, "--fixed-fps", "60", "--"]
    with (
        tempfile.TemporaryDirectory() as folder,
        serving() as server,
        GodotProcess(
            [*words, "--live=1", f"--server=ws://127.0.0.1:{server.port}", f"--arenas={arenas}"],
            folder=Path(folder),
            env=env,
        ) as game,
    ):
        game.wait_for_line("the server", lambda line: "connected: " in line, START_SEC)
        time.sleep(WARM_UP_SEC)
        before, start = server.counts.decisions, time.perf_counter()
        time.sleep(seconds)
        return (server.counts.decisions - before) / (time.perf_counter() - start)
