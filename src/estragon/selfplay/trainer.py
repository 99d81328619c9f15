"""Self-play: both roles learn from the rollouts of a source, against each other and a league.

What is learned depends on the seed, the config, the number of torch threads and the torch build
alone: every random number comes from a generator named after the seed, the update and its purpose.
Every torch call runs on one worker thread, whichever worker makes it.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch

from estragon.selfplay.config import BLOCKS, LEAGUE, PPOConfig, Task
from estragon.selfplay.league import (
    League,
    OpponentPair,
    PastSelves,
    fixed_opponents,
    league_bots,
    split_arenas,
)
from estragon.selfplay.policy import Policy, PolicyPlayer
from estragon.selfplay.ppo import Batch, Learner, Losses, Moments
from estragon.selfplay.rollout import EpisodeStats, Players, Rollout, play
from estragon.support.parallel import available_cores
from estragon.support.parameters import Curriculum
from estragon.tag.arenas import Arenas
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import symmetries
from estragon.tag.rules import HIDER, ROLES, SEEKER, Role
from estragon.tag.variation import SUCCESS

RNG_PLAY, RNG_LEAGUE, RNG_UPDATE = range(3)
"""The purposes of random streams."""
BALANCE_UPDATES = 20
"""Over about so many updates the win rate between the current policies is averaged."""
FAIR_WIN_RATE = 0.45
"""Of the seeker, when neither role has a handicap; with 0.5, it won 50 to 62% in the end."""
LOPSIDED = 0.15
"""How far from it the handicap of the winner is full."""


class Threads(NamedTuple):
    """How many threads work.

    Two workers with one torch thread each wait for each other only twice per update, so a busy
    neighbour costs its share and no more; one torch call spread over threads waits for the slowest
    at every layer, and learns other bits.
    """

    workers: int = 1
    """Threads that play and learn side by side; they change no bit."""
    torch_threads: int = 1
    """Threads inside each torch call; what is learned depends on it."""

    @classmethod
    def of_this_machine(cls) -> Self:
        """As many workers as there is work and cores for."""
        return cls(min(BLOCKS, available_cores()))


@dataclass(frozen=True)
class Update:
    """The results of one update."""

    number: int
    agent_steps: int
    """Learned from so far, all roles together."""
    seconds: float
    episodes: EpisodeStats
    """Sums over those that ended."""
    ended: list[EpisodeStats]
    """The same as the source counts them: one by one, or summed up."""
    losses: dict[str, Losses]
    learning_rate: float


class RolloutData(Protocol):
    """A finished rollout, ready to be learned from."""

    def batch(self, role: int) -> Batch:
        """The rows of one role."""

    def moments(self, role: int) -> Moments:
        """Sums over the observations of a role."""

    def take_episodes(self) -> list[EpisodeStats]:
        """The episodes that ended."""


class RolloutSource(Protocol):
    """Where rollouts come from, and the budget of a run, which is counted there."""

    row_per_episode: bool
    """Whether the metrics have a row per episode instead of one per update."""

    @property
    def shape(self) -> str:
        """Where the steps come from, in words."""

    def collect(self, trainer: "Trainer") -> Sequence[RolloutData] | None:
        """Rollouts for an update; None when there are not enough yet."""

    def publish(self, policies: list[Policy]) -> None:
        """Called when the policies have changed."""

    def progress(self, agent_steps: int) -> float:
        """The share of the budget that is spent, 0 to 1."""

    def spent(self, agent_steps: int) -> str:
        """How much of the budget is spent, in words."""

    def seconds_left(self, seconds: float, agent_steps: int) -> float:
        """An estimate, after so many `seconds` of updates."""

    def figures(self) -> dict[str, float]:
        """Columns of its own in the metrics."""

    def save(self) -> dict[str, Any]:
        """Its state between two updates, as tensors and plain data."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Load what `save` gave."""


class Trainer:
    """Both learners and their league."""

    def __init__(
        self,
        task: Task,
        config: PPOConfig,
        source: RolloutSource,
        device: torch.device,
        threads: Threads = Threads(),  # noqa: B008 - immutable
        start: Mapping[Role, FrozenPolicy] | None = None,
    ) -> None:
        """Start with untrained policies, or with those of `start`.

        Args:
            task: what is learned.
            config: how.
            source: of the rollouts.
            device: where the updates are computed.
            threads: how many.
            start: policies to continue from.
        """
        config.check()
        torch.set_num_threads(threads.torch_threads)  # of this thread, where policies are evaluated
        self.task, self.config, self.source = task, config, source
        self.updates = self.agent_steps = self.episodes = 0
        self.balance = FAIR_WIN_RATE
        """The seeker's recent win rate against the current hider."""
        self._symmetries = symmetries([], task.rules)
        if config.symmetry and task.rules.has_heading:
            layouts = task.variation.layouts if task.variation else task.layouts
            self._symmetries = symmetries(layouts, task.rules)
        self.learning = [SEEKER, HIDER] if task.role == "both" else [ROLES.index(task.role)]
        self.learners = [
            Learner(
                FrozenPolicy.untrained(
                    task.rules, role, task.seed * len(ROLES) + number, config.hidden
                ),
                task.rules,
                config,
                device,
                task.seed * len(ROLES) + number,
            )
            for number, role in enumerate(ROLES)
        ]
        for learner, role in zip(self.learners, ROLES, strict=True):
            if start and role in start:
                learner.warm_start(Policy(start[role], task.rules))
        self.league = League(config.remembered)
        self.league.add(self.policies)
        self.workers = ThreadPoolExecutor(
            threads.workers,
            thread_name_prefix="learn",
            initializer=torch.set_num_threads,
            initargs=(threads.torch_threads,),
        )
        self._waited = 0.0
        source.publish(self.policies)

    @property
    def policies(self) -> list[Policy]:
        """Seeker and hider, as they are now."""
        return [learner.policy for learner in self.learners]

    @property
    def progress(self) -> float:
        """The share of the budget that is spent, 0 to 1."""
        return self.source.progress(self.agent_steps)

    @property
    def done(self) -> bool:
        """Whether the budget is spent."""
        return self.progress >= 1.0

    def update(self) -> Update | None:
        """Collect rollouts and learn from them; None when there are not enough yet."""
        start = time.perf_counter()
        rollouts = self.source.collect(self)
        if rollouts is None:
            self._waited += time.perf_counter() - start
            return None
        number, rate = self.updates, self.learning_rate
        learned = list(
            self.workers.map(
                lambda role: self._learn(role, rollouts, rate * self.pace(role)), self.learning
            )
        )
        ended = [episode for rollout in rollouts for episode in rollout.take_episodes()]
        episodes = sum(ended, EpisodeStats())
        self._count(sum(rows for rows, _ in learned), episodes)
        self.source.publish(self.policies)
        waited, self._waited = self._waited, 0.0
        return Update(
            number,
            self.agent_steps,
            waited + time.perf_counter() - start,
            episodes,
            ended,
            {
                ROLES[role]: losses
                for role, (_, losses) in zip(self.learning, learned, strict=True)
                if losses is not None
            },
            rate,
        )

    def close(self) -> None:
        """Stop the worker threads."""
        self.workers.shutdown()

    def freeze(self) -> dict[Role, FrozenPolicy]:
        """The learning roles as they are now."""
        share = self.agent_steps // len(self.learning)
        return {
            ROLES[role]: self.learners[role].policy.freeze(
                f"{ROLES[role]} after {self.agent_steps:,} steps", share
            )
            for role in self.learning
        }

    def save(self) -> dict[str, Any]:
        """The state between two updates, as tensors and plain data."""
        return {
            "updates": self.updates,
            "agent_steps": self.agent_steps,
            "episodes": self.episodes,
            "balance": self.balance,
            "learners": [learner.save() for learner in self.learners],
            "league": [list(pair) for pair in self.league.pairs],
        } | self.source.save()

    def restore(self, saved: dict[str, Any]) -> None:
        """Load what `save` gave."""
        self.updates = int(saved["updates"])
        self.agent_steps = int(saved["agent_steps"])
        self.episodes = int(saved["episodes"])
        self.balance = float(saved.get("balance", FAIR_WIN_RATE))
        for learner, state in zip(self.learners, saved["learners"], strict=True):
            learner.restore(state)
        self.league.pairs = [(seeker, hider) for seeker, hider in saved["league"]]
        self.league.seen = 1 + self.updates // self.config.snapshot_every
        self.source.restore(saved)
        self.source.publish(self.policies)

    @property
    def learning_rate(self) -> float:
        """Adam's step size now; it decreases linearly."""
        start, end = self.config.learning_rate, self.config.final_learning_rate
        return start + min(1.0, self.progress) * (end - start)

    @property
    def entropy(self) -> float:
        """The entropy coefficient now; it decreases by equal factors in equal times."""
        start, end = self.config.entropy, self.config.final_entropy
        if min(start, end) <= 0.0:
            return start + min(1.0, self.progress) * (end - start)
        return float(start * (end / start) ** min(1.0, self.progress))

    def pace(self, role: int) -> float:
        """The factor of a role's learning rate: below 1 while it wins too often.

        A role that always loses learns little from its matches, and would never catch up.
        """
        if self.task.opponent != LEAGUE or self.progress < self.config.opening:
            return 1.0
        lead = self.balance - FAIR_WIN_RATE if role == SEEKER else FAIR_WIN_RATE - self.balance
        return 1.0 - self.config.handicap * min(1.0, max(0.0, lead / LOPSIDED))

    def opponents(self, past: PastSelves, part: int) -> list[OpponentPair]:
        """The past selves that play in the next rollout of a part of the arenas."""
        return past.players(self.league, self.rng(RNG_LEAGUE, part))

    def rng(self, purpose: int, part: int) -> np.random.Generator:
        """The generator of this update for one purpose."""
        key = (self.task.seed, self.updates, purpose, part)
        return np.random.Generator(np.random.SFC64(key))

    def _learn(
        self, role: int, rollouts: Sequence[RolloutData], learning_rate: float
    ) -> tuple[int, Losses | None]:
        """Let one role learn; returns how many rows it learned from."""
        batches = [rollout.batch(role) for rollout in rollouts]
        rows = sum(len(batch.features) for batch in batches)
        if rows < 2:  # nothing to normalise the advantages with
            return rows, None
        moments = [rollout.moments(role) for rollout in rollouts]
        rng = self.rng(RNG_UPDATE, role)
        return rows, self.learners[role].update(
            batches, moments, learning_rate, rng, self.entropy, self._symmetries
        )

    def _count(self, rows: int, episodes: EpisodeStats) -> None:
        self.updates += 1
        self.agent_steps += rows
        if self.updates % self.config.snapshot_every == 0:
            self.league.add(self.policies)
        self.episodes += episodes.count
        if episodes.count:
            win_rate = episodes.seeker_wins / episodes.count
            self.balance += (win_rate - self.balance) / BALANCE_UPDATES


class EmbeddedSource:
    """Rollouts of the embedded engine; the budget is agent-steps."""

    row_per_episode = False

    def __init__(self, task: Task, config: PPOConfig, steps: int) -> None:
        """Prepare the arenas for a run of `steps` agent-steps, both roles together."""
        config.check()
        self._task, self._config, self._steps = task, config, steps
        self.curriculum = Curriculum(task.variation.plan) if task.variation else None
        count = config.arenas // BLOCKS
        self.arenas = []
        self.rollouts: list[Rollout] = []
        self._divide_arenas(0.0)
        for block in range(BLOCKS):
            arenas = Arenas(
                count,
                rules=task.rules,
                layout=task.layouts,
                seed=task.seed,
                first_arena=block * count,
                threads=1,
                variation=task.variation,
            )
            arenas.reset()
            self.arenas.append(arenas)
        self._fixed: OpponentPair | None = None
        if task.opponent != LEAGUE:
            # policies of a file play in torch too, on the thread that asks
            pair = fixed_opponents(task.opponent, task.role, task.rules)
            seeker, hider = (
                PolicyPlayer(Policy(opponent, task.rules), None)
                if isinstance(opponent, FrozenPolicy)
                else opponent
                for opponent in pair
            )
            self._fixed = OpponentPair(seeker, hider)
        self._bots = league_bots(task.rules)
        self._past = [PastSelves(task.rules, config.hidden) for _ in range(BLOCKS)]

    @property
    def shape(self) -> str:
        """Where the steps come from, in words."""
        repeat = self._task.rules.episode.step_tick_interval
        return f"{self._config.arenas} arenas × 2 agents × {repeat} ticks"

    def collect(self, trainer: Trainer) -> list[Rollout]:
        """Play the next rollout of every block of arenas."""
        self._divide_arenas(trainer.progress)
        list(trainer.workers.map(lambda block: self._play(block, trainer), range(BLOCKS)))
        if self.curriculum is not None:
            self._teach(self.curriculum, trainer.progress)
        return self.rollouts

    def figures(self) -> dict[str, float]:
        """The lesson, and the mean of every rule number that varies."""
        if self._task.variation is None:
            return {}
        names = sorted(set().union(*self._task.variation.plan.samplers))
        values = np.concatenate([arenas.values for arenas in self.arenas])
        means = {f"parameter_{name}": float(values[name].mean()) for name in names}
        return {"lesson": self.arenas[0].lesson} | means

    def publish(self, policies: list[Policy]) -> None:
        """The learners' own policies play."""

    def progress(self, agent_steps: int) -> float:
        """The share of the steps that were learned from."""
        return agent_steps / self._steps

    def spent(self, agent_steps: int) -> str:
        """How much of the budget is spent, in words."""
        return f"{agent_steps / 1e6:.1f} of {self._steps / 1e6:.1f} M steps"

    def seconds_left(self, seconds: float, agent_steps: int) -> float:
        """An estimate from the whole run so far."""
        done = self.progress(agent_steps)
        return seconds * (1.0 - done) / done if 0.0 < done < 1.0 else 0.0

    def save(self) -> dict[str, Any]:
        """The arenas, the running episodes in them, and against whom."""
        curriculum = {} if self.curriculum is None else {"curriculum": self.curriculum.save()}
        return curriculum | {
            "past": [past.save() for past in self._past],
            "arenas": [_tensors(arenas.save()) for arenas in self.arenas],
            "tallies": [_tensors(rollout.episodes.save()) for rollout in self.rollouts],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Load what `save` gave."""
        self._divide_arenas(self.progress(int(saved["agent_steps"])))
        for arenas, state in zip(self.arenas, saved["arenas"], strict=True):
            arenas.restore(_arrays(state))
        for rollout, state in zip(self.rollouts, saved["tallies"], strict=True):
            rollout.episodes.restore(_arrays(state))
        for past, state in zip(self._past, saved.get("past", ()), strict=False):
            past.restore(state)
        if self.curriculum is not None:
            self.curriculum.restore(saved["curriculum"])

    def _divide_arenas(self, progress: float) -> None:
        """Make the rollout buffers for those who play in the arenas at this point of the run."""
        task, config = self._task, self._config
        count, shares = config.arenas // BLOCKS, (config.past, config.sparring)
        opening = progress < config.opening
        split = split_arenas(count, task.role, task.opponent, *shares, opening=opening)
        if not self.rollouts or self.rollouts[0].split != split:
            self.rollouts = [Rollout(task.rules, split, config) for _ in range(BLOCKS)]

    def _teach(self, curriculum: Curriculum, progress: float) -> None:
        """Count the episodes that ended; those after a change of lesson do not count."""
        curriculum.progress = progress
        for win in (win for rollout in self.rollouts for win in rollout.episodes.wins):
            if curriculum.add(0.0, {SUCCESS: win}):
                for arenas in self.arenas:
                    arenas.teach(curriculum.lesson)
                return

    def _play(self, block: int, trainer: Trainer) -> None:
        opponents = [self._fixed] if self._fixed else trainer.opponents(self._past[block], block)
        policies = [learner.actor for learner in trainer.learners]
        critics = [learner.critic for learner in trainer.learners if self._config.critic]
        rng = trainer.rng(RNG_PLAY, block)
        players = Players(policies, opponents, self._bots, rng, critics=critics)
        play(self.arenas[block], self.rollouts[block], players)


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def embedded_trainer(
    task: Task,
    config: PPOConfig,
    steps: int,
    device: torch.device,
    threads: Threads = Threads(BLOCKS),  # noqa: B008 - immutable
    start: Mapping[Role, FrozenPolicy] | None = None,
) -> Trainer:
    """A trainer on the embedded engine."""
    return Trainer(task, config, EmbeddedSource(task, config, steps), device, threads, start)
