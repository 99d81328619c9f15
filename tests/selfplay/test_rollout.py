"""Rollouts hold the rows of the learners, by role, and count the episodes that ended."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from estragon.selfplay.kernels import PRIVILEGED
from estragon.selfplay.league import ArenaSplit, OpponentPair, league_bots
from estragon.selfplay.policy import Critic, Policy, PolicyPlayer
from estragon.selfplay.rollout import SAMPLED_EVERY, EpisodeCounter, EpisodeStats, Players
from estragon.support.errors import UserError
from estragon.tag.arenas import Results
from estragon.tag.rules import HIDER, SEEKER, TERMS, Rules
from tests.selfplay.staging import CONFIG, Block, beginners, block_of, short_rules, task_of
from tests.selfplay.test_kernels import decisions_of

DECISIONS = CONFIG.horizon
RULE_SETS = ("seek", "transfer")


def policies_of(rules: Rules) -> list[Policy]:
    return [Policy(policy, rules) for policy in beginners(rules).values()]


class Recorder:
    """Counts the rows an opponent is asked for, and stands still."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def act(self, observations: np.ndarray) -> np.ndarray:
        self.rows.append(observations.copy())
        return np.zeros((len(observations), 3), dtype=np.float32)


def play(block: Block, times: int = 1, seed: int = 0, critics: Sequence[Critic] = ()) -> None:
    rules = block.arenas.rules
    policies = policies_of(rules)
    random = np.random.default_rng(seed)
    opponents = OpponentPair(*(PolicyPlayer(policy, random) for policy in policies))
    for _ in range(times):
        bots = league_bots(rules)
        block.play(Players(policies, [opponents], bots, random, critics=critics))


@pytest.mark.parametrize("rule_set", RULE_SETS)
def test_rows_belong_to_the_role_that_acted(rule_set: str) -> None:
    """Features are normalised with mean 0 and scale 1 here, so they still say who is "it"."""
    rules = short_rules(rule_set, seconds=5.0)
    block = block_of(task_of(rules=rules))
    swaps = 0
    it, not_it = rules.field("is_seeker").start, rules.field("is_hider").start
    for _ in range(10):
        before = block.arenas.arenas["seeker"].copy()
        play(block)
        swaps += int((block.arenas.arenas["seeker"] != before).sum())
        rows = [block.rollout.batch(role) for role in (SEEKER, HIDER)]
        assert (rows[SEEKER].features[:, it] == 1.0).all()
        assert (rows[SEEKER].features[:, not_it] == 0.0).all()
        assert (rows[HIDER].features[:, it] == 0.0).all()
        assert (rows[HIDER].features[:, not_it] == 1.0).all()
        learners = int(block.rollout.split.learns().sum())
        assert len(rows[SEEKER].features) + len(rows[HIDER].features) == learners * DECISIONS
        if rule_set == "seek":
            assert len(rows[SEEKER].features) == len(rows[HIDER].features)
    assert (swaps > 0) == (rule_set == "transfer")


@pytest.mark.parametrize("rule_set", RULE_SETS)
def test_rows_are_those_of_the_learning_agents_whatever_their_role(rule_set: str) -> None:
    rules = short_rules(rule_set, seconds=5.0)
    block = block_of(task_of(rules=rules))
    arenas, step, rays = block.arenas, block.arenas.step, rules.field("rays")
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    def spy(actions: np.ndarray, *, restart: bool = True) -> Results:
        seen.append((arenas.observations.copy(), arenas.is_seeker))
        return step(actions, restart=restart)

    arenas.step = spy  # type: ignore[method-assign]
    for _ in range(10):
        seen.clear()
        play(block)
        for role in (SEEKER, HIDER):
            expected = [
                observations[(is_seeker == (role == SEEKER)) & block.rollout.split.learns()]
                for observations, is_seeker in seen
            ]
            rows = block.rollout.batch(role).features
            assert np.array_equal(rows[:, rays], np.concatenate(expected)[:, rays])


@pytest.mark.parametrize("rule_set", RULE_SETS)
def test_opponents_see_what_the_agents_they_play_see(rule_set: str) -> None:
    rules = short_rules(rule_set, seconds=5.0)
    block = block_of(task_of(rules=rules))
    recorders = [Recorder() for _ in range(4)]
    it = rules.field("is_seeker").start
    for _ in range(10):
        opponents, bots = OpponentPair(*recorders[:2]), OpponentPair(*recorders[2:])
        block.play(Players(policies_of(rules), [opponents], bots, np.random.default_rng(0)))
    seen = [np.concatenate(recorder.rows) for recorder in recorders]
    for role, rows in enumerate(seen):
        assert (rows[:, it] == 1 - role % 2).all(), "a seeker plays seekers, a hider hiders"
    split = block.rollout.split
    asked = 10 * DECISIONS * 2
    assert len(seen[0]) + len(seen[1]) == asked * (split.first - split.first_bots)
    assert len(seen[2]) + len(seen[3]) == asked * split.first_bots
    assert split.first_bots == split.second_bots > 0


def test_the_moments_are_those_of_the_rows_sampled() -> None:
    rules = short_rules()
    block = block_of(task_of(rules=rules))
    play(block)
    for role in (SEEKER, HIDER):
        moments, rows = block.rollout.moments(role), block.rollout.batch(role).features
        sampled = len(range(0, DECISIONS, SAMPLED_EVERY))
        assert moments.rows == sampled * len(rows) // DECISIONS
        first = rows.astype(np.float64)[: moments.rows]
        np.testing.assert_allclose(moments.sums, first.sum(axis=0), atol=1e-3)
        np.testing.assert_allclose(moments.squares, (first**2).sum(axis=0), atol=1e-3)


def test_critics_correct_the_values_and_nothing_else() -> None:
    rules = short_rules()
    critics = [Critic(rules.observation.size, CONFIG.hidden, seed) for seed in (1, 2)]
    plain, unlearned, learned = (block_of(task_of(rules=rules)) for _ in range(3))
    play(plain)
    play(unlearned, critics=critics)
    for critic in critics:
        *_, last, _bias = critic.parameters()
        torch.nn.init.normal_(last, generator=torch.manual_seed(0))
    play(learned, critics=critics)
    for role, critic in enumerate(critics):
        one, same, other = (block.rollout.batch(role) for block in (plain, unlearned, learned))
        assert one.privileged.shape == (len(one.features), 0)
        assert same.privileged.shape == (len(one.features), PRIVILEGED)
        assert np.array_equal(one.values, same.values), "an untrained critic changes nothing"
        assert np.array_equal(one.advantages, same.advantages)
        assert np.array_equal(one.actions, other.actions)
        inputs = torch.from_numpy(other.features), torch.from_numpy(other.privileged)
        with torch.no_grad():
            correction = critic(*inputs).numpy()
        assert np.abs(correction).max() > 0.1
        np.testing.assert_allclose(other.values, one.values + correction, atol=1e-5)
        assert not np.allclose(other.advantages, one.advantages)


def test_episodes_go_on_from_one_play_to_the_next() -> None:
    """Arenas are never begun anew for a rollout: timeouts happen, in the middle of it too."""
    rules = short_rules(seconds=1.0)
    block = block_of(task_of(rules=rules))
    ticks = rules.episode.step_tick_interval
    play(block)
    assert (block.arenas.arenas["tick"] == DECISIONS * ticks).mean() > 0.8
    play(block, 2)
    assert (block.arenas.arenas["episode"] >= 1).all()
    play(block, 30)
    episodes = block.rollout.episodes.take()
    assert episodes.count > 0
    assert episodes.tags < episodes.count
    longest = rules.limit_ticks
    assert episodes.ticks > 0.8 * longest * (episodes.count - episodes.tags)


def test_the_same_generator_plays_the_same() -> None:
    one, same, other = (block_of(task_of()) for _ in range(3))
    for block, seed in ((one, 1), (same, 1), (other, 2)):
        play(block, 3, seed)
    left, right, different = (block.rollout.batch(SEEKER) for block in (one, same, other))
    assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
    assert not np.array_equal(left.features, different.features)


COUNT = 24


def counted(split: ArenaSplit, decisions: int = 60) -> EpisodeStats:
    tally = EpisodeCounter(split)
    for results, seekers, _ in decisions_of("seek", COUNT, decisions):
        tally.add(results, seekers)
    return tally.take()


def ended_in(arenas: slice, decisions: int = 60) -> int:
    course = decisions_of("seek", COUNT, decisions)
    return sum(int((results.ends[arenas] != 0).sum()) for results, _, _ in course)


@pytest.mark.parametrize(
    ("split", "arenas"),
    [
        (ArenaSplit(5, 9, 10), slice(5, 14)),
        (ArenaSplit(0, 24, 0), slice(0, 24)),
        (ArenaSplit(24, 0, 0), slice(0, 24)),
        (ArenaSplit(0, 0, 24), slice(0, 24)),
        (ArenaSplit(12, 0, 12), slice(0, 24)),
    ],
)
def test_which_episodes_count(split: ArenaSplit, arenas: slice) -> None:
    found = counted(split)
    assert found.count == ended_in(arenas) > 0


def test_what_was_taken_is_not_given_again() -> None:
    tally = EpisodeCounter(ArenaSplit(0, COUNT, 0))
    taken = EpisodeStats()
    for number, (results, seekers, _) in enumerate(decisions_of("seek", COUNT, 60)):
        tally.add(results, seekers)
        if number % 7 == 0:
            taken += tally.take()
    taken += tally.take()
    assert tally.take() == EpisodeStats()
    whole = counted(ArenaSplit(0, COUNT, 0))
    assert (taken.count, taken.decisions, taken.ticks) == (
        whole.count,
        whole.decisions,
        whole.ticks,
    )
    assert taken.distance == pytest.approx(whole.distance)
    np.testing.assert_allclose(taken.terms, whole.terms)
    assert np.shape(taken.terms) == (2, len(TERMS))


def test_a_saved_tally_goes_on_in_the_middle_of_episodes() -> None:
    split = ArenaSplit(5, 9, 10)
    tally, later = EpisodeCounter(split), EpisodeCounter(split)
    taken = EpisodeStats()
    for number, (results, seekers, _) in enumerate(decisions_of("seek", COUNT, 60)):
        tally.add(results, seekers)
        if number == 25:
            taken = tally.take()
            later.restore(tally.save())
            tally = later
    assert taken.count > 0
    both, whole = taken + tally.take(), counted(split)
    assert both.count == whole.count > taken.count
    assert both.decisions == whole.decisions
    assert both.distance == pytest.approx(whole.distance)
    np.testing.assert_allclose(both.terms, whole.terms)


def test_a_tally_older_than_a_reward_term_starts_it_at_zero() -> None:
    tally = EpisodeCounter(ArenaSplit(5, 9, 10))
    saved = {name: array + 1.0 for name, array in tally.save().items()}
    tally.restore(saved | {"terms": saved["terms"][..., :-1]})
    assert (tally.save()["terms"][..., :-1] == 1.0).all()
    assert (tally.save()["terms"][..., -1] == 0.0).all()


def test_a_tally_of_other_arenas_is_refused() -> None:
    with pytest.raises(UserError, match="another number of arenas"):
        EpisodeCounter(ArenaSplit(5, 9, 10)).restore(EpisodeCounter(ArenaSplit(4, 10, 10)).save())
