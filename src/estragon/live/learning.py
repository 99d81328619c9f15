"""Actors that learn: they answer with the newest policies and deliver rollouts to a trainer."""

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from estragon.live.batcher import Actor, Actors
from estragon.live.json_agents import JsonAgents
from estragon.live.protocol import PROTOCOL, ActionRequest, Decision, Experience, Hello, Outcome
from estragon.live.source import CPU, FOREVER_SEC, LIVE_CONFIG, LiveRollout, LiveSource
from estragon.selfplay.checkpoint import load_checkpoint, save_checkpoint
from estragon.selfplay.league import (
    ArenaSplit,
    OpponentPair,
    PastSelves,
    league_bots,
    split_arenas,
)
from estragon.selfplay.policy import Policy, PolicyPlayer, blank_policies
from estragon.selfplay.ppo import Moments
from estragon.selfplay.rollout import ActRequest, EpisodeStats, Players, Rollout, act_together
from estragon.selfplay.trainer import Trainer
from estragon.support.errors import UserError
from estragon.tag.arenas import Results
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import AGENTS, HIDER, ROLES, SEEKER, TERMS

SAVE_EVERY_SEC = 10.0
STOP_SEC = 30.0


class LearningActor:
    """Plays for one trainer, in the server's thread."""

    learning = True

    def __init__(self, trainer: Trainer, source: LiveSource) -> None:
        """Play the policies that `trainer` publishes; deliver to its `source`."""
        self._trainer, self._source = trainer, source
        rules = trainer.task.rules
        self._policies = blank_policies(rules, trainer.config.hidden)
        self._rng = np.random.default_rng((trainer.task.seed, len(ROLES)))
        self._players: list[PolicyPlayer] = []
        self._version = self._load_newest()
        self._clients: dict[int, ClientArenas] = {}
        self._json_agents = JsonAgents(self._players, trainer.task, trainer.config, source)
        self._bots = league_bots(rules) if rules.has_heading else OpponentPair(None, None)

    def describe(self) -> str:
        """What it is, in a few words."""
        return f"learning, {self._trainer.agent_steps:,} steps so far"

    def join(self, client: int, hello: Hello) -> None:
        """Prepare for a client that sends decisions."""
        rules = self._trainer.task.rules
        if not rules.has_heading:
            raise UserError(f"observation_size {hello.observation_size}: use encoding json")
        if hello.rules != rules.rules:
            raise UserError(f"rules {hello.rules}; this server learns {rules.rules}")
        self._clients[client] = ClientArenas(client, hello, self._trainer)

    def decide(self, asked: Sequence[tuple[int, Decision]]) -> list[np.ndarray]:
        """Actions (arenas, 2, 3) float32 for the decisions of these clients."""
        self._refresh()
        requests = []
        for client, decision in asked:
            arenas = self._clients[client]
            arenas.observe(decision)
            if arenas.rollout.full:
                self._source.deliver(arenas.take_rollout(self._policies))
            requests.append(arenas.request(self._players, self._bots))
        return act_together(requests)

    def act(self, requests: Sequence[ActionRequest]) -> np.ndarray:
        """Actions (requests, 3) float32."""
        self._refresh()
        return self._json_agents.act(requests)

    def learn(self, experiences: Sequence[Experience]) -> int:
        """Record outcomes; returns how many of them could be used."""
        return self._json_agents.learn(experiences)

    def leave(self, client: int) -> None:
        """Forget a client, with what it has not delivered."""
        self._clients.pop(client, None)
        self._json_agents.leave(client)

    def _refresh(self) -> None:
        if self._source.version != self._version:
            self._version = self._load_newest()

    def _load_newest(self) -> int:
        version = self._source.load_newest(self._policies)
        self._players[:] = [PolicyPlayer(policy, self._rng) for policy in self._policies]
        return version


class ClientArenas:
    """The arenas of one client, in lockstep with its game."""

    def __init__(self, client: int, hello: Hello, trainer: Trainer) -> None:
        """Prepare for what `hello` announces."""
        task, config = trainer.task, trainer.config
        self._client, self._trainer, self._training = client, trainer, hello.training
        if all(hello.controlled):
            split = split_arenas(
                hello.arenas, task.role, task.opponent, config.past, config.sparring
            )
        else:
            first, second = (hello.arenas * own for own in hello.controlled)
            split = ArenaSplit(first, 0, second)
        self.rollout = Rollout(task.rules, split, config)
        self._ended: list[EpisodeStats] = []
        self._last_seq: int | None = None
        arenas, size = hello.arenas, task.rules.observation.size
        self._observations = np.zeros((arenas, AGENTS, size), dtype=np.float32)
        self._seekers = np.zeros(arenas, dtype=np.int64)
        self._results = Results(
            observations=self._observations,
            rewards=np.zeros((arenas, AGENTS), dtype=np.float32),
            terms=np.zeros((arenas, AGENTS, len(TERMS)), dtype=np.float32),
            ends=np.zeros(arenas, dtype=np.int8),
            winners=np.zeros(arenas, dtype=np.int8),
            ticks=np.zeros(arenas, dtype=np.int64),
            distances=np.zeros(arenas),
            final_observations=self._observations,
        )
        self._rng = np.random.default_rng((task.seed, client))
        self._past = PastSelves(task.rules, config.hidden)
        self._opponents = trainer.opponents(self._past, client)

    def observe(self, decision: Decision) -> None:
        """Record the outcome of the last decision, and what agents see now."""
        if decision.seq == self._last_seq:
            return  # asked again, because the request of another client failed
        self._seekers[:] = decision.seekers
        if decision.outcome is not None and self._last_seq is not None and self._training:
            for name in ("rewards", "terms", "ends", "winners", "ticks", "distances"):
                getattr(self._results, name)[...] = getattr(decision.outcome, name)
            self.rollout.record(self._results, self._seekers)
            self._ended += self.rollout.episodes.just_ended()
        self._observations[...] = decision.observations
        self._last_seq = decision.seq

    def take_rollout(self, policies: list[Policy]) -> LiveRollout:
        """The finished rollout; starts the next one, with new opponents."""
        rollout, roles = self.rollout, (SEEKER, HIDER)
        rollout.finish(self._observations, self._seekers, policies)
        batches = [rollout.batch(role) for role in roles]
        moments = [
            Moments(rows, sums.copy(), squares.copy())
            for rows, sums, squares in map(rollout.moments, roles)
        ]
        ended, self._ended = self._ended, []
        rollout.episodes.take()
        rollout.begin()
        self._opponents = self._trainer.opponents(self._past, self._client)
        return LiveRollout(batches, moments, ended)

    def request(self, players: list[PolicyPlayer], bots: OpponentPair) -> ActRequest:
        """The request for the next actions."""
        policies = [player.policy for player in players]
        arrays = [player.arrays for player in players]
        acting = Players(policies, self._opponents, bots, self._rng, arrays)
        return ActRequest(self.rollout, self._observations, self._seekers, acting)


@contextlib.contextmanager
def learning_actors(trainer: Trainer, source: LiveSource, root: Path) -> Iterator[Actors]:
    """Actors for the clients of one server; `root` is for policies of other observation sizes."""
    _warm_up(trainer)
    with contextlib.ExitStack() as stack:

        def make(size: int) -> Actor:
            if size == trainer.task.rules.observation.size:
                return LearningActor(trainer, source)
            folder = root / "trainer" / "foreign" / f"obs_{size}"
            return stack.enter_context(foreign_actor(trainer, size, folder))

        yield Actors(make)


@contextlib.contextmanager
def foreign_actor(like: Trainer, size: int, folder: Path) -> Iterator[LearningActor]:
    """An actor for observations of another size, with a trainer at work in its own thread."""
    task = replace(like.task, rules=like.task.rules.seen_by_another_game(size))
    config = replace(LIVE_CONFIG, past=0.0, sparring=0.0)
    source = LiveSource(task, config, FOREVER_SEC)
    trainer = Trainer(task, config, source, CPU)
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
            log.exception("learning from observations of size %d failed", size)

    thread = threading.Thread(target=work, name=f"learn obs_{size}", daemon=True)
    thread.start()
    try:
        yield LearningActor(trainer, source)
    finally:
        stopping.set()
        thread.join(STOP_SEC)
        trainer.close()


def _save(trainer: Trainer, folder: Path) -> None:
    """Write the policies and the checkpoint."""
    if not trainer.updates:
        return
    policies = trainer.freeze()
    rules = trainer.task.rules
    for suffix in (".pt", ".npz"):
        save_policies(folder / f"policy{suffix}", {role: policies[role] for role in ROLES}, rules)
        for role in ROLES:
            save_policies(folder / f"policy_{role}{suffix}", {role: policies[role]}, rules)
    save_checkpoint(folder / "state.pt", {"trainer": trainer.save()})


def _warm_up(trainer: Trainer) -> None:
    """Compile every kernel before a client waits for an answer."""
    config = replace(LIVE_CONFIG, arenas=16, horizon=8, minibatch=16)
    source = LiveSource(trainer.task, config, FOREVER_SEC)
    spare = Trainer(trainer.task, config, source, CPU)
    actor = LearningActor(spare, source)
    rules, arenas = trainer.task.rules, config.arenas
    hello = Hello(PROTOCOL, rules.observation.size, arenas=arenas, rules=rules.rules)
    actor.join(0, hello)
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
        actor.decide([(0, Decision(seq, outcome if seq else None, nothing, seen))])
    spare.update()
    spare.close()
