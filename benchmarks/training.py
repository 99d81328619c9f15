"""How fast training goes, and how soon it is any good: ours beside Stable-Baselines3's PPO."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

from estragon.commands.train_tag import STEPS
from estragon.judge.bench import Figure
from estragon.selfplay.config import LEAGUE, PPOConfig, Task
from estragon.selfplay.policy import PolicyPlayer
from estragon.selfplay.trainer import Threads, Trainer, embedded_trainer
from estragon.support import paths
from estragon.tag.layout import load_layouts
from estragon.tag.rules import ROLES, Role, load_rules

sys.path.insert(0, str(paths.checkout()))
try:
    from benchmarks._sb3 import (
        SB3_CONFIG,
        DefaultSb3,
        LearnsOneRole,
        Sb3WithOurs,
        TunedSb3,
        faster_threads,
    )
    from benchmarks._strength import MATCHES, STRONG, Learned, Pupil, learn_until_strong
finally:
    sys.path.pop(0)

CONFIG = PPOConfig()
FORMER = replace(
    CONFIG,
    arenas=2048,
    minibatch=1792,
    epochs=2,
    past=0.3,
    opening=0.0,
    sparring=0.3,
    handicap=0.0,
    symmetry=False,
    learning_rate=2e-3,
    final_learning_rate=5e-5,
    entropy=0.01,
    final_entropy=0.01,
)
"""The recipe until November 2026, but for its waiting winner."""
AGENTS, REPEAT = 2, load_rules().episode.step_tick_interval
GROWTH = (256, 1024, 4096)
ROUNDS = 5
"""Figures that are compared take turns, this often; each is the median of its turns."""
SHORTEST_TURN_SEC = 0.1
"""A run too short for that has fewer rounds: a turn is a whole update at least."""
WARM_UP_UPDATES = 3
LONGEST_SEC, LONGEST_TIMES = 900.0, 90.0
"""When to give up on strength: after so long, or so many times the seconds of a figure."""
MEMORY_UPDATES = 5
SEEDS = (0, 1, 2)
Learns = Callable[[int], Learned]
"""Trains with a seed until it is strong."""


class Setup(NamedTuple):
    """What is trained, and on which threads."""

    task: Task
    threads: Threads
    """Ours."""
    sb3_threads: int
    """Of torch in SB3."""


def measure(seconds: float) -> list[Figure]:
    """All figures of training."""
    rules = load_rules()
    task = Task(rules, load_layouts(rules.layout, rules), 0, "both", LEAGUE)
    torch_threads = torch.get_num_threads()
    try:
        setup = Setup(task, Threads.of_this_machine(), faster_threads(CONFIG))
        figures = _beside_sb3(setup, seconds) + _growth(setup, seconds)
        # After the rates: by now everything is compiled, on both sides.
        figures += _strength(setup, min(LONGEST_SEC, LONGEST_TIMES * seconds))
    finally:
        torch.set_num_threads(torch_threads)
    return figures + _memory(setup)


def _beside_sb3(setup: Setup, seconds: float) -> list[Figure]:
    """Our trainer, SB3 as its users begin, and SB3 with everything that it can take from us."""
    with ExitStack() as stack:
        trainer = stack.enter_context(closing(_trainer(setup, CONFIG)))
        default = stack.enter_context(closing(DefaultSb3(setup.sb3_threads)))
        tuned = TunedSb3("seeker", STEPS // 2, setup.sb3_threads)
        with_ours = Sb3WithOurs("seeker", CONFIG, STEPS // 2, setup.sb3_threads)
        sides = {"default": default.update, "tuned": tuned.update, "with_ours": with_ours.update}
        for update in sides.values():
            update()  # one is enough to be warm: hundreds of decisions and gradient steps
        rates = _take_turns({"ours": _updates(trainer), **sides}, seconds)
    workers, each = setup.threads
    own = f"{CONFIG.arenas} × {AGENTS} × {REPEAT}, {workers} workers, torch threads: {each}"
    default_note = f"MlpPolicy, DummyVecEnv, Box actions, torch threads: {setup.sb3_threads}"
    tuned_note = f"MlpPolicy, Box actions, our arenas, torch threads: {setup.sb3_threads}"
    with_ours_note = f"our config, network, moves, arenas, torch threads: {setup.sb3_threads}"
    return [
        _rate("train_agent_steps_per_s", rates["ours"], CONFIG.arenas, f"{own}, learners only"),
        _rate("sb3_default_agent_steps_per_s", rates["default"], 1, default_note),
        _rate("sb3_tuned_agent_steps_per_s", rates["tuned"], SB3_CONFIG.arenas, tuned_note),
        _rate("sb3_with_ours_agent_steps_per_s", rates["with_ours"], CONFIG.arenas, with_ours_note),
        _figure("train_over_sb3_default", rates["ours"] / rates["default"], "×"),
        _figure("train_over_sb3_tuned", rates["ours"] / rates["tuned"], "×"),
        _figure("train_over_sb3_with_ours", rates["ours"] / rates["with_ours"], "×"),
    ]


def _growth(setup: Setup, seconds: float) -> list[Figure]:
    """Our rate with few and with many arenas."""
    with ExitStack() as stack:
        sides = {
            arenas: _updates(stack.enter_context(closing(_trainer(setup, config))))
            for arenas, config in ((count, replace(CONFIG, arenas=count)) for count in GROWTH)
        }
        rates = _take_turns(sides, seconds)
    few, many = GROWTH[0], GROWTH[-1]
    growth = _figure(f"train_growth_{few}_to_{many}", rates[many] / rates[few], "×", arenas=many)
    figures = [_rate(f"train_agent_steps_per_s_{count}", rates[count], count) for count in GROWTH]
    return [*figures, growth]


def _strength(setup: Setup, cap_sec: float) -> list[Figure]:
    """Seconds of training until the seeker and the hider beat the bots that play against them."""
    threads = setup.sb3_threads

    def ours(name: str, config: PPOConfig) -> Learns:
        return lambda seed: _learn(setup, f"{name}, seed {seed}", config, cap_sec, seed)

    def sb3(name: str, make: Callable[[Role, int], LearnsOneRole]) -> Learns:
        return lambda seed: _learn_with_sb3(setup, f"{name}, seed {seed}", make, cap_sec, seed)

    # SB3's entropy coefficient does not fall
    constant = replace(CONFIG, entropy=FORMER.entropy, learning_rate=FORMER.learning_rate)
    bots_only = replace(CONFIG, past=0.0, sparring=1.0, opening=0.0)
    goal = f"goal: {STRONG:.0%} of {MATCHES} matches each"
    sides = {
        "seconds_to_strength": (ours("ours", CONFIG), SEEDS, f"{goal}; league"),
        "seconds_to_strength_former": (
            ours("ours, former recipe", FORMER),
            SEEDS,
            "the former recipe: two epochs, no symmetries",
        ),
        "seconds_to_strength_bots_only": (
            ours("ours, bots only", bots_only),
            SEEDS[:1],
            "every arena against bots, as SB3",
        ),
        "sb3_with_ours_seconds_to_strength": (
            sb3(
                "SB3 with ours",
                lambda role, seed: Sb3WithOurs(role, constant, STEPS // 2, threads, seed),
            ),
            SEEDS,
            "SB3's trainer with our config, network, frame and moves; against the bots that judge",
        ),
        "sb3_tuned_seconds_to_strength": (
            sb3(
                "SB3 tuned",
                lambda role, seed: TunedSb3(role, STEPS // 2, threads, seed=seed),
            ),
            SEEDS[:1],
            "SB3's own policy; each role only against the bot that judges it",
        ),
    }
    runs: dict[str, list[Learned]] = {name: [] for name in sides}
    for seed in SEEDS:  # in turns, so that noise meets all alike
        for name, (learn, seeds, _) in sides.items():
            if seed in seeds:
                runs[name].append(learn(seed))
    middle = {name: sorted(found)[len(found) // 2] for name, found in runs.items()}
    figures = [
        _figure(name, middle[name].seconds, "s", f"{_told(runs[name])}; {note}")
        for name, (_, _, note) in sides.items()
    ]
    mine = middle["seconds_to_strength"]
    former = middle["seconds_to_strength_former"]
    spared = mine.seconds / former.seconds
    figures.append(_figure("seconds_to_strength_over_former", spared, "×", _doubt(mine, former)))
    for name in ("sb3_tuned", "sb3_with_ours"):
        other = middle[f"{name}_seconds_to_strength"]
        for suffix in ("", "_bots_only"):
            mine = middle[f"seconds_to_strength{suffix}"]
            ratio = f"{name}_over_ours_seconds_to_strength{suffix}"
            times = other.seconds / mine.seconds
            figures.append(_figure(ratio, times, "×", _doubt(mine, other)))
    return figures


def _learn_with_sb3(
    setup: Setup,
    name: str,
    make: Callable[[Role, int], LearnsOneRole],
    cap_sec: float,
    seed: int,
) -> Learned:
    """Train a model of SB3 for each role, in turns, until both are strong."""
    models = {role: make(role, seed) for role in ROLES}
    pupils = [
        Pupil(setup.task, model.update, lambda role=role, model=model: {role: model})
        for role, model in models.items()
    ]
    return learn_until_strong(name, pupils, cap_sec)


def _learn(setup: Setup, name: str, config: PPOConfig, cap_sec: float, seed: int) -> Learned:
    """Train ours until it is strong.

    Judged in torch, as SB3 is; the policies play as they are shown, without chance.
    """
    with closing(_trainer(setup, config, seed)) as trainer:
        both = Pupil(
            setup.task,
            trainer.update,
            lambda: {
                role: PolicyPlayer(learner.actor, None)
                for role, learner in zip(ROLES, trainer.learners, strict=True)
            },
        )
        return learn_until_strong(name, [both], cap_sec)


def _told(runs: list[Learned]) -> str:
    """The seconds of all runs, of which the median counts."""
    return "seeds: " + ", ".join(
        f"{each.seconds:.1f} s" if each.reached else f"not within {each.seconds:.0f} s"
        for each in runs
    )


def _doubt(ours: Learned, other: Learned) -> str:
    """What a ratio is worth when somebody did not get there."""
    if ours.reached and other.reached:
        return ""
    if ours.reached:
        return "at least: the other did not get there"
    return "at most: ours did not get there" if other.reached else "neither got there"


def _memory(setup: Setup) -> list[Figure]:
    """The peak of a process that does nothing but train; Windows does not tell it."""
    if sys.platform == "win32":
        return []
    program = Path(__file__).with_name("_train_a_little.py")
    words = [sys.executable, program, *map(str, (MEMORY_UPDATES, *setup.threads))]
    done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
    note = f"resident, in a process of its own, {MEMORY_UPDATES} updates"
    return [_figure("train_peak_memory_mb", float(done.stdout), "MB", note)]


def _trainer(setup: Setup, config: PPOConfig, seed: int = 0) -> Trainer:
    task = replace(setup.task, seed=seed)
    return embedded_trainer(task, config, STEPS, torch.device("cpu"), setup.threads)


def _updates(trainer: Trainer) -> Callable[[], int]:
    """A function that plays and learns once, warmed up; it returns the agent-steps learned from."""

    def update() -> int:
        before = trainer.agent_steps
        trainer.update()
        return trainer.agent_steps - before

    for _ in range(WARM_UP_UPDATES):
        update()
    return update


def _take_turns(
    sides: dict[str, Callable[[], int]] | dict[int, Callable[[], int]], seconds: float
) -> dict:
    """Agent-steps a second of each side, measured in alternation so that noise meets all alike."""
    rounds = min(ROUNDS, max(1, int(seconds / SHORTEST_TURN_SEC)))
    rates = {name: [] for name in sides}
    for _ in range(rounds):
        for name, update in sides.items():
            steps, start = 0, time.perf_counter()
            while (spent := time.perf_counter() - start) < seconds / rounds:
                steps += update()
            rates[name].append(steps / spent)
    return {name: median(values) for name, values in rates.items()}


def _rate(name: str, value: float, arenas: int, note: str = "") -> Figure:
    return _figure(name, value, "agent-steps/s", note, arenas)


def _figure(
    name: str, value: float, unit: str, note: str = "", arenas: int = CONFIG.arenas
) -> Figure:
    return Figure(name, value, unit, arenas, AGENTS, REPEAT, note)
