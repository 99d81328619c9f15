"""What games bring over the wire is learned from as if it had been played here."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from estragon.live.learning import LearningActor
from estragon.live.protocol import ActionRequest, Decision, Experience, Hello, Outcome
from estragon.live.source import LiveRollout, LiveSource
from estragon.selfplay.config import PPOConfig, Task
from estragon.selfplay.league import league_bots, split_arenas
from estragon.selfplay.policy import Policy, blank_policies
from estragon.selfplay.ppo import Batch, compute_gae
from estragon.selfplay.rollout import EpisodeCounter, EpisodeStats, Players, Rollout
from estragon.selfplay.trainer import Trainer
from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas, Results
from estragon.tag.rules import HIDER, ROLES, SEEKER, Rules
from tests.selfplay.staging import (
    CONFIG,
    CPU,
    Block,
    beginners,
    differences,
    observations,
    short_rules,
    task_of,
    through_a_file,
)

ARENAS = 8
ROWS = CONFIG.arenas * CONFIG.horizon
CLIENT = 4


class KeepingSource(LiveSource):
    """Keeps what is delivered instead of passing it on."""

    def __init__(self, task: Task, config: PPOConfig, seconds: int = 1000) -> None:
        super().__init__(task, config, seconds)
        self.delivered: list[LiveRollout] = []

    def deliver(self, rollout: LiveRollout) -> None:
        self.delivered.append(rollout)


def keeping(task: Task, **changes: Any) -> tuple[Trainer, KeepingSource]:
    """A trainer that learns nothing, and its source."""
    config = replace(CONFIG, **changes)
    source = KeepingSource(task, config)
    return Trainer(task, config, source, CPU), source


def newest(source: LiveSource, rules: Rules) -> list[Policy]:
    """The published policies."""
    policies = blank_policies(rules, CONFIG.hidden)
    source.load_newest(policies)
    return policies


def hello_of(rules: Rules, arenas: int = ARENAS, **changes: Any) -> Hello:
    size = rules.observation.size
    return Hello(protocol=1, observation_size=size, arenas=arenas, rules=rules.rules, **changes)


def arenas_of(task: Task, count: int = ARENAS) -> Arenas:
    arenas = Arenas(count, rules=task.rules, layout=task.layouts, seed=task.seed, threads=1)
    arenas.reset()
    return arenas


def outcome_of(results: Results) -> Outcome:
    """What a game would tell; copies, since the arenas write into the same memory again."""
    last = results.final_observations[results.ends != 0].copy()
    return Outcome(
        results.rewards.copy(),
        results.terms.astype(np.float64),
        results.distances.copy(),
        results.ticks.astype(np.int32),
        results.ends.copy(),
        results.winners.copy(),
        last,
    )


def play(actor: LearningActor, arenas: Arenas, decisions: int, client: int = CLIENT) -> None:
    """Play a game by what the actor says, from its first decision on."""
    outcome = None
    for seq in range(decisions + 1):
        seekers = arenas.arenas["seeker"].astype(np.int8)
        decision = Decision(seq, outcome, seekers, arenas.observations.copy())
        (actions,) = actor.decide([(client, decision)])
        outcome = outcome_of(arenas.step(actions))


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_the_rows_are_those_of_the_embedded_engine(rule_set: str) -> None:
    task = task_of(rules=short_rules(rule_set, seconds=2.0))
    config = replace(CONFIG, past=0.0)
    trainer, source = keeping(task, past=0.0)
    actor = LearningActor(trainer, source)
    actor.join(CLIENT, hello_of(task.rules))
    play(actor, arenas_of(task), 3 * config.horizon)

    split = split_arenas(ARENAS, "both", "league", config.past, config.sparring)
    block = Block(arenas_of(task), Rollout(task.rules, split, config))
    policies = newest(source, task.rules)
    random = np.random.default_rng((task.seed, CLIENT))
    arrays = [policy.arrays() for policy in policies]
    bots = league_bots(task.rules)
    players = Players(policies, [], bots, random, arrays)
    assert len(source.delivered) == 3
    for rollout in source.delivered:
        block.play(players)
        for role in (SEEKER, HIDER):
            expected = block.rollout.batch(role)
            for mine, its in zip(rollout.batches[role], expected, strict=True):
                assert np.array_equal(mine, its)
            moments = block.rollout.moments(role)
            assert rollout.moments(role).rows == moments.rows
            assert np.array_equal(rollout.moments(role).sums, moments.sums)


def test_chances_belong_to_what_was_seen_and_done() -> None:
    task = task_of(rules=short_rules(seconds=2.0))
    trainer, source = keeping(task)
    actor = LearningActor(trainer, source)
    actor.join(CLIENT, hello_of(task.rules))
    play(actor, arenas_of(task), 2 * CONFIG.horizon)
    for rollout in source.delivered:
        for role in (SEEKER, HIDER):
            batch, policy = rollout.batches[role], newest(source, task.rules)[role]
            assert len(batch.features)
            assert np.allclose(batch.log_probs, log_probs(policy, batch), atol=1e-4)
            scores = policy.outputs(torch.from_numpy(batch.features)).detach().numpy()
            assert np.allclose(batch.values, scores[:, -1], atol=1e-5)


def log_probs(policy: Policy, batch: Batch) -> np.ndarray:
    """By the formula, with torch."""
    scores = policy.outputs(torch.from_numpy(batch.features)).detach()
    choices = len(policy.moves)
    moves = torch.log_softmax(scores[:, :choices], dim=1).numpy()
    jump, jumps = scores[:, choices].numpy(), batch.actions[:, 1]
    of_jumps = -np.logaddexp(0.0, np.where(jumps, -jump, jump))
    chances: np.ndarray = moves[np.arange(len(jumps)), batch.actions[:, 0]] + of_jumps
    return chances


@pytest.mark.parametrize(("counts", "looks_wanted"), [((4, 6), 0), ((70, 90), len(ROLES))])
def test_clients_are_kept_apart_and_answered_together(
    counts: tuple[int, int], looks_wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many arenas by one look into each policy for all clients, few by none of torch's."""
    task = task_of()
    trainer, source = keeping(task, past=0.0, sparring=0.0)
    alone = LearningActor(trainer, source)
    arenas = [arenas_of(task, counts[0]), arenas_of(replace(task, seed=9), counts[1])]
    together = LearningActor(trainer, source)
    looks = 0
    outputs = Policy.outputs

    def counted(self: Policy, features: torch.Tensor) -> torch.Tensor:
        nonlocal looks
        looks += 1
        return outputs(self, features)

    for actor in (alone, together):
        for client, own in enumerate(arenas):
            actor.join(client, hello_of(task.rules, own.count))
    asked = [
        (client, Decision(0, None, own.arenas["seeker"].astype(np.int8), own.observations))
        for client, own in enumerate(arenas)
    ]
    separate = [alone.decide([question])[0].copy() for question in asked]
    monkeypatch.setattr(Policy, "outputs", counted)
    both = together.decide(asked)
    assert looks == looks_wanted
    for mine, other in zip(both, separate, strict=True):
        assert np.array_equal(mine, other)


def test_only_what_the_server_plays_is_learned() -> None:
    task = task_of()
    for controlled in ((True, False), (False, True)):
        trainer, source = keeping(task)
        actor = LearningActor(trainer, source)
        actor.join(CLIENT, hello_of(task.rules, controlled=controlled))
        play(actor, arenas_of(task), CONFIG.horizon)
        learned = [len(batch.features) > 0 for batch in source.delivered[0].batches]
        assert learned == list(controlled)


def test_a_question_that_is_asked_again_counts_once() -> None:
    """The server does so when one of several clients could not be answered."""
    task = task_of()
    pairs = [keeping(task), keeping(task)]
    for (trainer, source), times in zip(pairs, (1, 2), strict=True):
        actor = LearningActor(trainer, source)
        actor.join(CLIENT, hello_of(task.rules))
        arenas = arenas_of(task)
        outcome = None
        for seq in range(CONFIG.horizon + 1):
            seekers = arenas.arenas["seeker"].astype(np.int8)
            decision = Decision(seq, outcome, seekers, arenas.observations.copy())
            for _ in range(times):
                (actions,) = actor.decide([(CLIENT, decision)])
            outcome = outcome_of(arenas.step(actions))
    once, twice = (len(source.delivered) for _, source in pairs)
    assert once == twice == 1


def test_another_game_has_to_speak_json() -> None:
    task = task_of()
    task = replace(task, rules=task.rules.seen_by_another_game(7))
    actor = LearningActor(*keeping(task))
    with pytest.raises(UserError, match="json"):
        actor.join(CLIENT, hello_of(task.rules))


def test_without_training_nothing_is_learned() -> None:
    task = task_of()
    trainer, source = keeping(task)
    actor = LearningActor(trainer, source)
    actor.join(CLIENT, hello_of(task.rules, training=False))
    play(actor, arenas_of(task), 3 * CONFIG.horizon)
    assert not source.delivered


def test_episodes_are_told_one_by_one() -> None:
    """Together they are what embedded training counts."""
    task = task_of(rules=short_rules("transfer", seconds=1.0))
    arenas = arenas_of(task, 16)
    split = split_arenas(16, "both", "league", 0.3, 0.2)
    counter = EpisodeCounter(split)
    random = np.random.default_rng(0)
    told: list[EpisodeStats] = []
    for _ in range(100):
        seekers = arenas.arenas["seeker"].copy()
        results = arenas.step(random.uniform(-1.0, 1.0, (16, 2, 3)).astype(np.float32))
        counter.add(results, seekers)
        told += counter.just_ended()
    assert len(told) > 20
    assert all(episode.count == 1 for episode in told)
    added, expected = sum(told, EpisodeStats()), counter.take()
    for name in ("count", "decisions", "ticks", "seeker_wins", "tags"):
        assert getattr(added, name) == getattr(expected, name)
    assert added.distance == pytest.approx(expected.distance)
    assert np.allclose(added.terms, expected.terms)


def live_trainer() -> tuple[Trainer, LiveSource]:
    source = LiveSource(task_of(), CONFIG, 1000)
    return Trainer(task_of(), CONFIG, source, CPU), source


def play_rollouts(trainer: Trainer, source: LiveSource, count: int) -> None:
    """Let a game play until so many rollouts are delivered."""
    actor = LearningActor(trainer, source)
    actor.join(CLIENT, hello_of(trainer.task.rules))
    play(actor, arenas_of(trainer.task), count * CONFIG.horizon)


def test_an_update_waits_for_enough() -> None:
    trainer, source = live_trainer()
    assert trainer.update() is None
    play_rollouts(trainer, source, 1)
    assert trainer.update() is None
    play_rollouts(trainer, source, 3)
    update = trainer.update()
    assert update is not None
    assert update.agent_steps == trainer.agent_steps >= ROWS
    assert set(update.losses) == set(ROLES)
    assert update.episodes == sum(update.ended, EpisodeStats())
    assert trainer.update() is None


def test_what_cannot_be_learned_in_time_is_forgotten() -> None:
    trainer, source = live_trainer()
    play_rollouts(trainer, source, 40)
    assert source.dropped_rows > 0
    update = trainer.update()
    assert update is not None
    assert update.agent_steps < 6 * ROWS


def test_what_comes_before_the_clock_starts_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr("estragon.live.source.time.monotonic", lambda: now)
    trainer, source = live_trainer()
    assert trainer.progress == 0.0
    now += 600.0
    source.start_clock()
    assert trainer.progress == 0.0
    now += 250.0
    assert trainer.progress == 0.25


def test_players_get_the_newest_policies() -> None:
    trainer, source = live_trainer()
    policies = blank_policies(trainer.task.rules, CONFIG.hidden)
    version = source.load_newest(policies)
    play_rollouts(trainer, source, 4)
    assert source.version == version
    assert trainer.update() is not None
    assert source.version == version + 1
    old = [{name: value.clone() for name, value in p.state_dict().items()} for p in policies]
    source.load_newest(policies)
    for policy, before, learner in zip(policies, old, trainer.learners, strict=True):
        assert differences(policy.state_dict(), before)
        assert not differences(policy.state_dict(), learner.policy.state_dict())


def test_it_goes_on_from_what_was_saved() -> None:
    trainer, source = live_trainer()
    play_rollouts(trainer, source, 4)
    trainer.update()
    saved = through_a_file(trainer.save())
    other, other_source = live_trainer()
    other.restore(saved)
    assert not differences(through_a_file(other.save()), saved)
    assert other_source.version > source.version - 1
    published = newest(other_source, other.task.rules)
    for policy, learner in zip(published, trainer.learners, strict=True):
        assert not differences(policy.state_dict(), learner.policy.state_dict())


def test_a_warm_start_keeps_what_a_policy_has_seen() -> None:
    task = task_of()
    start = beginners(task.rules, seed=7)
    for policy in start.values():
        policy.mean[:] = 0.25
        policy.scale[:] = 2.0
    config = replace(CONFIG, learning_rate=0.0)
    source = LiveSource(task, config, 1000)
    trainer = Trainer(task, config, source, CPU, start=start)
    seen = observations(task.rules)[:, 0]
    before = [start[role].scores(seen) for role in ROLES]
    play_rollouts(trainer, source, 4)
    assert trainer.update() is not None
    for role, scores in zip(ROLES, before, strict=True):
        after = trainer.freeze()[role].scores(seen)
        assert np.allclose(after, scores, atol=0.05), "a thousand rows change little"
    assert len(trainer.league.pairs) >= 1


def requests_of(rows: np.ndarray, seq: int | None) -> list[ActionRequest]:
    return [
        ActionRequest(CLIENT, f"Agent{number + 1}", seq, row) for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize("told", ["seq", "observation and action", "reconstructed"])
def test_agents_that_speak_json_learn_from_what_they_did(told: str) -> None:
    """The rows are what the policy thought, and advantages those of the kernel."""
    task = task_of()
    trainer, source = keeping(task)
    actor = LearningActor(trainer, source)
    arenas = arenas_of(task, 1)
    random = np.random.default_rng(1)
    rewards = random.normal(size=(129, 2))
    sights = []
    for step in range(129):
        seen = arenas.observations[0].copy()
        actions = actor.act(requests_of(seen, step))
        sights.append(seen)
        by_seq = told == "seq"
        used = actor.learn(
            [
                Experience(
                    CLIENT,
                    f"Agent{agent + 1}" if told != "reconstructed" else f"Nobody{agent + 1}",
                    step if by_seq else None,
                    None if by_seq else seen[agent],
                    None if by_seq else actions[agent],
                    float(rewards[step, agent]),
                    None,
                    False,
                    None,
                    {},
                )
                for agent in range(2)
            ]
        )
        assert used == 2
        arenas.step(actions[None])
    assert len(source.delivered) == 2
    for role, rollout in zip((SEEKER, HIDER), source.delivered, strict=True):
        batch, policy = rollout.batches[role], newest(source, task.rules)[role]
        assert len(batch.features) == 128, "the last one waits for what follows it"
        assert len(rollout.batches[1 - role].features) == 0
        assert np.allclose(batch.log_probs, log_probs(policy, batch), atol=1e-4)
        seen = np.stack([sight[role] for sight in sights])
        features = policy.features(torch.from_numpy(seen)).numpy()
        assert np.allclose(batch.features, features[:128], atol=1e-6)
        expected = by_kernel(policy, features, rewards[:, role])
        assert np.allclose(batch.advantages, expected, atol=1e-5)
        assert rollout.moments(role).rows == 128


def by_kernel(policy: Policy, features: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    steps = len(features) - 1
    values = np.zeros((2, steps + 1, 1), dtype=np.float32)
    values[0, :, 0] = policy.outputs(torch.from_numpy(features)).detach().numpy()[:, -1]
    scaled = np.zeros((2, steps, 1), dtype=np.float32)
    scaled[0, :, 0] = CONFIG.reward_scale * rewards[:steps]
    no = np.zeros((steps, 1), dtype=bool)
    advantages = np.zeros((2, steps, 1), dtype=np.float32)
    compute_gae(scaled, values, no, no, CONFIG.gamma, CONFIG.gae_lambda, advantages)
    kept: np.ndarray = advantages[0, :, 0]
    return kept


def test_the_memory_of_agents_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = task_of().rules.observation.size
    monkeypatch.setattr("estragon.live.json_agents.MOST_NUMBERS", 3 * 2 * 161 * size)
    actor = LearningActor(*keeping(task_of()))
    seen = observations(task_of().rules)[:5, 0]
    for seq in range(3):
        assert actor.act(requests_of(seen, seq)).shape == (5, 3)
    known = [
        actor.learn([Experience(CLIENT, f"Agent{k}", 2, None, None, 1.0, None, True, None, {})])
        for k in (5, 4, 3, 2, 1)
    ]
    assert known == [1, 1, 1, 0, 0]


def test_an_outcome_of_nothing_known_is_not_used() -> None:
    trainer, source = keeping(task_of())
    actor = LearningActor(trainer, source)
    nothing = Experience(CLIENT, "Agent1", 5, None, None, 1.0, None, True, None, {})
    assert actor.learn([nothing]) == 0
    actor.leave(CLIENT)
    actor.leave(CLIENT)


@pytest.mark.prove
def test_another_game_learns_what_pays() -> None:
    """Observations that mean nothing to us; running along +x pays."""
    size = 7
    task = task_of()
    task = replace(task, rules=task.rules.seen_by_another_game(size))
    config = replace(CONFIG, arenas=16, horizon=32, learning_rate=3e-3, past=0.0, sparring=0.0)
    source = LiveSource(task, config, 1000)
    trainer = Trainer(task, config, source, CPU)
    actor = LearningActor(trainer, source)
    random = np.random.default_rng(0)
    earned = []
    for _ in range(1500):
        seen = random.normal(size=(8, size)).astype(np.float32)
        actions = actor.act(requests_of(seen, None))
        earned.append(actions[:, 0].mean())
        actor.learn(
            [
                Experience(
                    CLIENT,
                    f"Agent{number + 1}",
                    None,
                    seen[number],
                    actions[number],
                    float(10.0 * actions[number, 0]),
                    None,
                    True,
                    "seeker",
                    {"terminal_reason": "tag"},
                )
                for number in range(8)
            ]
        )
        trainer.update() if source._queued >= 16 * 32 else None
    assert trainer.updates > 5
    assert np.mean(earned[:100]) < 0.4
    assert np.mean(earned[-100:]) > np.mean(earned[:100]) + 0.3
    waiting = sum(len(rollout.episodes) for rollout in source._queue)
    assert trainer.episodes + waiting == 1500
