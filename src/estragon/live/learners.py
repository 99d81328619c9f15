"""Brains that learn: ours, and one for every other size of observation that somebody sends."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from estragon.live.brain import Brain, Decision, Hello, Outcome
from estragon.live.desk import Brains
from estragon.live.learning import LearningBrain
from estragon.live.limits import PROTOCOL
from estragon.live.session import CONFIG, FOR_EVER_SEC
from estragon.live.trainer import LiveTrainer
from estragon.selfplay.checkpoint import load_checkpoint, save_checkpoint
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import AGENTS, ROLES, TERMS

SAVE_EVERY_SEC = 10.0
STOP_SEC = 30.0
CPU = torch.device("cpu")


@contextlib.contextmanager
def learning_brains(trainer: LiveTrainer, root: Path) -> Iterator[Brains]:
    """Brains for the clients of one server.

    Args:
        trainer: learns from observations of our own size.
        root: the folder that has `trainer/`, where foreign policies are kept.
    """
    _warm_up(trainer)
    with contextlib.ExitStack() as pairs:

        def make(size: int) -> Brain:
            if size == trainer.task.rules.observation.size:
                return LearningBrain(trainer)
            folder = root / "trainer" / "foreign" / f"obs_{size}"
            return LearningBrain(pairs.enter_context(learn_foreign(trainer, size, folder)))

        yield Brains(make)


@contextlib.contextmanager
def learn_foreign(like: LiveTrainer, size: int, folder: Path) -> Iterator[LiveTrainer]:
    """A trainer for observations of another size, at work in a thread of its own."""
    task = replace(like.task, rules=like.task.rules.seen_by_another_game(size))
    config = replace(CONFIG, past=0.0, sparring=0.0)
    trainer = LiveTrainer(task, config, FOR_EVER_SEC, CPU)
    state = folder / "state.pt"
    if state.is_file():
        trainer.restore(load_checkpoint(state)["trainer"])
    stopping = threading.Event()
    log = logging.getLogger("estragon.live")

    def work() -> None:
        saved_at = time.monotonic()
        try:
            while not stopping.is_set():
                trainer.update()
                if time.monotonic() - saved_at > SAVE_EVERY_SEC:
                    _save(trainer, folder)
                    saved_at = time.monotonic()
            _save(trainer, folder)
        except Exception:
            log.exception("observations of size %d are not learned from any more", size)

    thread = threading.Thread(target=work, name=f"learn obs_{size}", daemon=True)
    thread.start()
    try:
        yield trainer
    finally:
        stopping.set()
        thread.join(STOP_SEC)


def _save(trainer: LiveTrainer, folder: Path) -> None:
    """Keep everything, the policies where players would look for them."""
    if not trainer.updates:
        return
    policies = trainer.freeze()
    rules = trainer.task.rules
    for suffix in (".pt", ".npz"):
        save_policies(folder / f"policy{suffix}", {role: policies[role] for role in ROLES}, rules)
        for role in ROLES:
            save_policies(folder / f"policy_{role}{suffix}", {role: policies[role]}, rules)
    save_checkpoint(folder / "state.pt", {"trainer": trainer.save()})


def _warm_up(trainer: LiveTrainer) -> None:
    """Compile every kernel before somebody waits for an answer."""
    config = replace(CONFIG, arenas=16, horizon=8, minibatch=16)
    spare = LiveTrainer(trainer.task, config, FOR_EVER_SEC, CPU)
    brain = LearningBrain(spare)
    rules, arenas = trainer.task.rules, config.arenas
    hello = Hello(PROTOCOL, rules.observation.size, arenas=arenas, rules=rules.rules)
    brain.join(0, hello)
    seen = np.zeros((arenas, AGENTS, rules.observation.size), dtype=np.float32)
    nothing = np.zeros(arenas, dtype=np.int8)
    outcome = Outcome(
        rewards=np.zeros((arenas, AGENTS), dtype=np.float32),
        terms=np.zeros((arenas, AGENTS, len(TERMS))),
        distances=np.zeros(arenas),
        ticks=np.zeros(arenas, dtype=np.int32),
        ends=nothing,
        winners=nothing,
        last=seen[:0],
    )
    for seq in range(config.horizon + 1):
        brain.decide([(0, Decision(seq, outcome if seq else None, nothing, seen))])
    spare.update()
