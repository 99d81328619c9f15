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
    epochs=2,
    past=0.3,
    past_from=0.0,
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
    ours = _learn(setup, "ours", CONFIG, cap_sec)
    former = _learn(setup, "ours, former recipe", FORMER, cap_sec)
    bots_only = _learn(setup, "ours, bots only", replace(CONFIG, past=0.0, sparring=1.0), cap_sec)
    threads = setup.sb3_threads
    # SB3's entropy coefficient does not fall, and it has no symmetries to learn from
    constant = replace(CONFIG, entropy=FORMER.entropy, learning_rate=FORMER.learning_rate)
    with_ours = _learn_with_sb3(
        setup,
        "SB3 with ours",
        lambda role: Sb3WithOurs(role, constant, STEPS // 2, threads),
        cap_sec,
    )
    tuned = _learn_with_sb3(
        setup, "SB3 tuned", lambda role: TunedSb3(role, STEPS // 2, threads), cap_sec
    )
    goal = f"goal: {STRONG:.0%} of {MATCHES} matches each"
    league_note = f"league; {CONFIG.sparring:.0%} of the arenas against the bots that judge"
    bots_note = "every arena against the bots that judge, as SB3"
    tuned_note = "SB3's own policy; each role only against the bot that judges it"
    with_ours_note = "SB3's trainer with our config, network, frame and moves; the same opponents"
    shown = {
        "seconds_to_strength": (ours, f"{goal}; {league_note}"),
        "seconds_to_strength_former": (former, "the former recipe: two epochs, no symmetries"),
        "seconds_to_strength_bots_only": (bots_only, bots_note),
        "sb3_tuned_seconds_to_strength": (tuned, tuned_note),
        "sb3_with_ours_seconds_to_strength": (with_ours, with_ours_note),
    }
    figures = [
        _figure(name, learned.seconds, "s", f"{_told(learned)}; {note}")
        for name, (learned, note) in shown.items()
    ]
    spared = ours.seconds / former.seconds
    figures.append(_figure("seconds_to_strength_over_former", spared, "×", _doubt(ours, former)))
    for name, sb3 in (("sb3_tuned", tuned), ("sb3_with_ours", with_ours)):
        for suffix, mine in (("", ours), ("_bots_only", bots_only)):
            times = sb3.seconds / mine.seconds
            ratio = f"{name}_over_ours_seconds_to_strength{suffix}"
            figures.append(_figure(ratio, times, "×", _doubt(mine, sb3)))
    return figures


def _learn_with_sb3(
    setup: Setup, name: str, make: Callable[[Role], LearnsOneRole], cap_sec: float
) -> Learned:
    """Train a model of SB3 for each role, in turns, until both are strong."""
    models = {role: make(role) for role in ROLES}
    pupils = [
        Pupil(setup.task, model.update, lambda role=role, model=model: {role: model})
        for role, model in models.items()
    ]
    return learn_until_strong(name, pupils, cap_sec)


def _learn(setup: Setup, name: str, config: PPOConfig, cap_sec: float) -> Learned:
    """Train ours until it is strong.

    Judged in torch, as SB3 is; the policies play as they are shown, without chance.
    """
    with closing(_trainer(setup, config)) as trainer:
        both = Pupil(
            setup.task,
            trainer.update,
            lambda: {
                role: PolicyPlayer(learner.actor, None)
                for role, learner in zip(ROLES, trainer.learners, strict=True)
            },
        )
        return learn_until_strong(name, [both], cap_sec)


def _told(learned: Learned) -> str:
    return learned.shares if learned.reached else f"not reached: {learned.shares}"


def _doubt(ours: Learned, other: Learned) -> str:
    """What a ratio is worth when somebody did not get there."""
    if ours.reached and other.reached:
        return "one run each"
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


def _trainer(setup: Setup, config: PPOConfig) -> Trainer:
    return embedded_trainer(setup.task, config, STEPS, torch.device("cpu"), setup.threads)


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
