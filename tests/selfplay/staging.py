"""Runs small enough for a test, and what of two runs has to be the same."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from estragon.selfplay.config import PPOConfig, RoleChoice, Task
from estragon.selfplay.evaluation import Score, Stage
from estragon.selfplay.rollout import Players, Rollout, play
from estragon.selfplay.trainer import EmbeddedSource, Threads, Trainer, Update, embedded_trainer
from estragon.show.charts.draw import all_charts
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.rules import ROLES, Role, Rules, load_rules
from estragon.tag.variation import Variation
from tests.tag.staging import with_episode

CPU = torch.device("cpu")
LAYOUTS = "four_corners,empty"
CONFIG = PPOConfig(
    arenas=32,
    horizon=8,
    epochs=2,
    minibatch=64,
    hidden=16,
    past=0.3,
    opening=0.0,
    sparring=0.2,
    snapshot_every=2,
    remembered=3,
    critic=True,
)
STEPS_PER_UPDATE = 416
"""Of CONFIG in a league: 2 blocks of 16 arenas, in which 3 + 10 + 3 have 3 + 20 + 3 learners, for 8
decisions."""


def short_rules(rule_set: str = "seek", seconds: float = 1.0) -> Rules:
    """The game's rules, but for matches of this length."""
    return with_episode(load_rules(rules=rule_set), time_limit_sec=seconds)


def task_of(
    role: RoleChoice = "both",
    opponent: str = "league",
    *,
    rules: Rules | None = None,
    seed: int = 3,
) -> Task:
    """Something to learn on two layouts."""
    rules = rules or short_rules()
    return Task(rules, load_layouts(LAYOUTS, rules), seed, role, opponent)


def varied_task(folder: Path, **contents: Any) -> Task:
    """The same, by a parameter file with these contents."""
    path = folder / "parameters.json"
    layouts = {"layout": {"choice": LAYOUTS.split(",")}}
    path.write_text(json.dumps(contents | {"parameters": layouts | contents.get("parameters", {})}))
    task = task_of()
    variation = Variation.read(path, task.rules)
    return replace(task, layouts=variation.layouts_of(-1), variation=variation)


def trainer_of(
    task: Task | None = None,
    *,
    steps: int = 10_000,
    workers: int = 1,
    **changes: Any,
) -> Trainer:
    """A trainer with a tiny config, changed a little."""
    config = replace(CONFIG, **changes)
    return embedded_trainer(task or task_of(), config, steps, CPU, Threads(workers))


def updated(trainer: Trainer) -> Update:
    """One update of a trainer that never waits."""
    update = trainer.update()
    assert update is not None
    return update


def blocks_of(trainer: Trainer) -> list["Block"]:
    """The arenas and rollouts of an embedded trainer."""
    source = cast("EmbeddedSource", trainer.source)
    return [Block(*pair) for pair in zip(source.arenas, source.rollouts, strict=True)]


class Block(NamedTuple):
    """The arenas of one thread, and their rollout."""

    arenas: Arenas
    rollout: Rollout

    def play(self, players: Players) -> None:
        play(self.arenas, self.rollout, players)


def block_of(task: Task, config: PPOConfig = CONFIG) -> Block:
    """The first block of an embedded source."""
    source = EmbeddedSource(task, config, 10_000)
    return Block(source.arenas[0], source.rollouts[0])


def beginners(rules: Rules, seed: int = 0) -> dict[Role, FrozenPolicy]:
    """Two policies that know nothing."""
    return {
        role: FrozenPolicy.untrained(rules, role, 2 * seed + number, hidden=16)
        for number, role in enumerate(ROLES)
    }


def stage_of(name: str, rules: Rules, updates: int, *roles: Role) -> Stage:
    """A stage of policies that know nothing."""
    policies = beginners(rules, updates)
    kept: dict[Role, FrozenPolicy] = {role: policies[role] for role in roles or ROLES}
    return Stage(name, updates, 100 * updates, kept)


def observations(rules: Rules, count: int = 64, decisions: int = 20, seed: int = 5) -> np.ndarray:
    """What both agents see in the middle of matches: (count, 2, size) float32."""
    arenas = Arenas(count, rules=rules, layout=LAYOUTS, seed=seed, threads=1)
    arenas.reset()
    random = np.random.default_rng(seed)
    for _ in range(decisions):
        arenas.step(random.uniform(-1.0, 1.0, (count, 2, 3)).astype(np.float32))
    return arenas.observations.copy()


def through_a_file(contents: Any) -> Any:
    """What is left of data that was written and read again, as a checkpoint is."""
    stream = io.BytesIO()
    torch.save(contents, stream)
    stream.seek(0)
    return torch.load(stream, weights_only=True)


def bits(contents: Any, name: str = "") -> dict[str, object]:
    """Every number of nested data by its place, tensors as their bytes."""
    if isinstance(contents, torch.Tensor):
        return {name: (str(contents.dtype), contents.detach().numpy().tobytes())}
    if isinstance(contents, dict):
        items = contents.items()
    elif isinstance(contents, list | tuple):
        items = dict(enumerate(contents)).items()
    else:
        return {name: contents}
    found: dict[str, object] = {}
    for key, value in items:
        found |= bits(value, f"{name}/{key}")
    return found


def differences(one: Any, other: Any) -> list[str]:
    """The places where nested data differs by a bit."""
    left, right = bits(one), bits(other)
    return [name for name in left.keys() | right.keys() if left.get(name) != right.get(name)]


class Onlooker:
    """Watches a session, and asks it to stop after some updates."""

    def __init__(self, stop: Any = None, after: int = -1) -> None:
        self.updates: list[Update] = []
        self.stages: list[str] = []
        self._stop, self._after = stop, after

    def on_update(self, update: Update) -> None:
        self.updates.append(update)
        if len(self.updates) == self._after:
            self._stop.made = True

    def on_evaluation(self, what: str) -> None:
        assert what

    def on_stage(self, stage: Stage, scores: dict[str, Score]) -> None:
        self.stages.append(stage.name)


def policy_arrays(path: Path) -> dict[str, object]:
    """What a policy file says, not how: its header and the bytes of its arrays."""
    if path.suffix == ".pt":
        return bits(torch.load(path, weights_only=True))
    with np.load(path) as archive:
        return {name: archive[name].tobytes() for name in archive.files}


def rows_without_speed(path: Path) -> list[list[str]]:
    """A table's rows but for the one column that depends on the clock."""
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    kept = [place for place, name in enumerate(header) if name != "agent_steps_per_s"]
    return [[row[place] for place in kept] for row in (header, *rows)]


def the_run(root: Path) -> Path:
    """The only run in a root folder."""
    (run,) = (root / "trainer" / "logs" / "runs").glob("*/*")
    return run


def assert_same_runs(one: Path, other: Path) -> None:
    """Two root folders hold one finished run each, and these agree in every bit that counts."""
    names = ["policy", *(f"policy_{role}" for role in ROLES)]
    for name in (f"{name}{suffix}" for name in names for suffix in (".pt", ".npz")):
        left, right = (policy_arrays(root / "trainer" / name) for root in (one, other))
        assert left == right, name
    runs = the_run(one), the_run(other)
    # a name with a dot in front is a file that a killed run was writing
    kept = [sorted(path.name for path in (run / "checkpoints").glob("[!.]*")) for run in runs]
    assert kept[0] == kept[1]
    for name in kept[0]:
        left, right = (policy_arrays(run / "checkpoints" / name) for run in runs)
        assert left == right, name
    for name in ("metrics.csv", "strength.csv"):
        tables = [rows_without_speed(run / name) for run in runs]
        assert tables[0] == tables[1], name
    latest = one / "trainer" / "logs" / "metrics.csv"
    assert latest.read_bytes() == (runs[0] / "metrics.csv").read_bytes()
    crosses = [(run / "cross_play.json").read_text() for run in runs]
    assert crosses[0] == crosses[1]


def few_charts(runs: Any, axis: Any) -> Any:
    """Some of the charts of a run: tests/show/charts draws all of them."""
    return all_charts(runs, axis)[:4]
