"""The loops of learning against the same written plainly: in torch, in numpy, in Python."""

from typing import Any

import numpy as np
import pytest
import torch

from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import (
    PRIVILEGED,
    act,
    add_moments,
    count_episodes,
    extract_features,
    extract_privileged,
    record_step,
    sample_actions,
    transform_rows,
)
from estragon.selfplay.policy import Policy
from estragon.selfplay.ppo import CLIP_FRACTION, KL, Minibatch, compute_gae, ppo_loss
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.frozen import CLIP, FrozenPolicy, moves_in_heading_frame
from estragon.tag.rules import GOING_ON, OBS, TAGGED, TERMS, TIMED_OUT
from tests.selfplay.staging import LAYOUTS, beginners, observations, short_rules

RULES = short_rules()
SIZE = RULES.observation.size
FORWARD = RULES.field("forward").start
MOVES = moves_in_heading_frame()
CHOICES = len(MOVES)


def knowing(seed: int) -> FrozenPolicy:
    """A policy with a normalisation that cuts something off."""
    random = np.random.default_rng(seed)
    policy = beginners(RULES)["seeker"]
    policy.mean = random.normal(0.0, 0.3, SIZE).astype(np.float32)
    policy.scale = random.uniform(0.05, 2.0, SIZE).astype(np.float32)
    return policy


def prepared(policy: FrozenPolicy, seen: np.ndarray, agents: np.ndarray) -> np.ndarray:
    features = np.full((len(seen), SIZE), np.nan, dtype=np.float32)
    extract_features(seen, agents, policy.mean, policy.scale, features)
    return features


def test_prepare_is_what_policies_do_with_observations() -> None:
    seen = observations(RULES)
    agents = np.arange(len(seen)) % 2
    own = seen[np.arange(len(seen)), agents]
    policy = knowing(0)
    features = prepared(policy, seen, agents)
    learning = Policy(policy, RULES)
    in_torch = learning.features(torch.from_numpy(own)).numpy()
    in_numpy = np.clip((policy._turn(own) - policy.mean) / policy.scale, -CLIP, CLIP)
    np.testing.assert_allclose(features, in_torch, atol=1e-5)
    np.testing.assert_allclose(features, in_numpy, atol=1e-5)
    assert (np.abs(features) == CLIP).any(), "something was cut off"
    assert np.abs(features).max() == CLIP
    with torch.no_grad():
        scores = learning.outputs(torch.from_numpy(features)).numpy()
        again = learning(torch.from_numpy(own)).numpy()
    np.testing.assert_allclose(scores, policy.scores(own), atol=1e-4)
    np.testing.assert_allclose(scores, again, atol=1e-4)


def test_what_a_critic_knows_is_the_truth_about_the_opponent() -> None:
    seen = observations(RULES)
    rows = np.arange(len(seen))
    agents = rows % 2
    known = np.full((len(seen), PRIVILEGED), np.nan, dtype=np.float32)
    extract_privileged(seen, agents, known)
    own, other = seen[rows, agents], seen[rows, 1 - agents]
    x, z = own[:, FORWARD], own[:, FORWARD + 1]

    def turned(vectors: np.ndarray) -> np.ndarray:
        ahead, aside = (
            vectors[:, 0] * x + vectors[:, -1] * z,
            vectors[:, -1] * x - vectors[:, 0] * z,
        )
        return np.column_stack([ahead, *vectors[:, 1:-1].T, aside])

    def of(name: str) -> np.ndarray:
        return other[:, RULES.field(name)]

    away = of("position") - own[:, RULES.field("position")]
    expected = [turned(away), np.linalg.norm(away, axis=1), turned(of("velocity"))]
    expected += [turned(of("last_seen_relative")), turned(of("forward"))]
    expected += [of(name) for name in ("on_floor", "opponent_visible", "last_seen_age")]
    np.testing.assert_allclose(known, np.column_stack(expected), atol=1e-6)


def image_of(arenas: Arenas, code: int) -> Arenas:
    """The same arenas mirrored along x and turned, as they would be observed then."""
    image = Arenas(arenas.count, rules=RULES, layout="colonnade", seed=4, threads=1)
    image.reset()
    image.arenas[:] = arenas.arenas
    image.agents[:] = arenas.agents
    for what in ("", "velocity_", "forward_", "seen_"):
        x, z = image.agents[f"{what}x"].copy(), image.agents[f"{what}z"].copy()
        x = -x if code & 1 else x
        for _ in range(code >> 1):
            x, z = -z, x
        image.agents[f"{what}x"], image.agents[f"{what}z"] = x, z
    image._observe()
    return image


@pytest.mark.parametrize("code", range(8))
def test_a_transformed_row_is_what_is_seen_in_the_transformed_arena(code: int) -> None:
    arenas = Arenas(64, rules=RULES, layout="colonnade", seed=4, threads=1)
    seen, random = arenas.reset(), np.random.default_rng(code)
    for _ in range(12):
        seen = arenas.step(random.uniform(-1, 1, (64, 2, 3)).astype(np.float32)).observations
    image = image_of(arenas, code)
    agents = np.arange(64) % 2
    policy = beginners(RULES)["seeker"]
    policy.mean = random.normal(0.0, 0.3, SIZE).astype(np.float32)
    policy.scale = random.uniform(0.5, 2.0, SIZE).astype(np.float32)
    features, expected = (
        prepared(policy, each, agents) for each in (seen.copy(), image.observations)
    )
    known, expected_known = np.zeros((2, 64, PRIVILEGED), dtype=np.float32)
    extract_privileged(seen, agents, known)
    extract_privileged(image.observations, agents, expected_known)
    actions = np.stack([random.integers(CHOICES, size=64), np.zeros(64, dtype=np.int64)], axis=1)
    before = MOVES[actions[:, 0]]
    images = np.array([int(np.abs(MOVES - move * [1, -1]).sum(axis=1).argmin()) for move in MOVES])
    codes = np.full(64, code, dtype=np.uint8)
    transform_rows(features, known, actions, policy.mean, policy.scale, images, codes)
    # a ray that grazes a corner may miss it in the image
    rays = features[:, OBS.rays :] - expected[:, OBS.rays :]
    assert (np.abs(rays) > 1e-3).mean() < 1e-3
    np.testing.assert_allclose(features[:, : OBS.rays], expected[:, : OBS.rays], atol=1e-4)
    np.testing.assert_allclose(known, expected_known, atol=1e-5)
    np.testing.assert_allclose(MOVES[actions[:, 0]], before * [1, -1 if code & 1 else 1], atol=1e-6)


class Drawn:
    """What `choose` gives for some rows of scores."""

    def __init__(self, scores: np.ndarray, seed: int) -> None:
        rows = len(scores)
        random = np.random.default_rng(seed)
        angles = random.uniform(-np.pi, np.pi, (rows, 2))
        seen = np.zeros((rows, 2, SIZE), dtype=np.float32)
        seen[..., FORWARD], seen[..., FORWARD + 1] = np.cos(angles), np.sin(angles)
        self.scores = scores.astype(np.float32)
        self.agents = random.integers(0, 2, rows)
        self.facing = seen[np.arange(rows), self.agents, FORWARD : FORWARD + 2]
        self.picks = np.full((rows, 2), -1)
        self.log_probs = np.full(rows, np.nan, dtype=np.float32)
        self.all_actions = np.full((rows, 2, 3), np.nan, dtype=np.float32)
        sample_actions(
            self.scores,
            random.random((rows, 2), dtype=np.float32),
            MOVES,
            seen,
            self.agents,
            self.picks,
            self.log_probs,
            self.all_actions,
        )
        self.actions = self.all_actions[np.arange(rows), self.agents]


def some_scores(rows: int, seed: int, spread: float = 2.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    scores: np.ndarray = random.normal(0.0, spread, (rows, CHOICES + 2)).astype(np.float32)
    return scores


def test_choices_come_with_their_chances() -> None:
    rows = 100_000
    scores = np.repeat(some_scores(1, 4, spread=1.0), rows, axis=0)
    drawn = Drawn(scores, seed=1)
    chances = torch.softmax(torch.from_numpy(scores[0, :CHOICES]).double(), dim=0).numpy()
    jump = 1.0 / (1.0 + np.exp(-float(scores[0, CHOICES])))
    for jumps, share in ((0, 1.0 - jump), (1, jump)):  # so that the two are independent, too
        some = drawn.picks[drawn.picks[:, 1] == jumps, 0]
        counted = np.bincount(some, minlength=CHOICES)
        expected = rows * share * chances
        assert (np.abs(counted - expected) < 5.0 * np.sqrt(expected) + 5.0).all()
        surprise = ((counted - expected) ** 2 / expected).sum()
        assert surprise < CHOICES + 5.0 * np.sqrt(2.0 * CHOICES), "chi-square"


def test_what_has_no_chance_is_never_chosen_and_a_sure_thing_always() -> None:
    scores = np.full((2000, CHOICES + 2), -1e4, dtype=np.float32)
    wanted = np.arange(2000) % CHOICES
    scores[np.arange(2000), wanted] = 0.0
    scores[::2, CHOICES], scores[1::2, CHOICES] = 100.0, -100.0
    drawn = Drawn(scores, seed=2)
    assert np.array_equal(drawn.picks[:, 0], wanted)
    assert np.array_equal(drawn.picks[:, 1], np.arange(2000) % 2 == 0)
    np.testing.assert_allclose(drawn.log_probs, 0.0, atol=1e-6)


def test_the_log_probability_is_the_one_the_loss_computes() -> None:
    drawn = Drawn(some_scores(3000, 5), seed=3)
    scores = torch.from_numpy(drawn.scores).double()
    picks = torch.from_numpy(drawn.picks)
    logs = torch.log_softmax(scores[:, :CHOICES], dim=1)
    jump = torch.sigmoid(scores[:, CHOICES])
    expected = logs[torch.arange(len(logs)), picks[:, 0]]
    expected += torch.where(picks[:, 1] == 1, jump, 1.0 - jump).log()
    np.testing.assert_allclose(drawn.log_probs, expected.numpy(), atol=2e-5)
    before = torch.from_numpy(drawn.log_probs).double()
    zeros = torch.zeros(len(scores), dtype=torch.float64)
    _, measures = ppo_loss(scores, Minibatch(picks, before, zeros, zeros), PPOConfig(clip=1e-4))
    assert float(measures[KL]) == pytest.approx(0.0, abs=1e-9)
    assert float(measures[CLIP_FRACTION]) == 0.0


def test_actions_are_unit_vectors_in_world_axes() -> None:
    drawn = Drawn(some_scores(3000, 6, spread=1.0), seed=4)
    moves = MOVES[drawn.picks[:, 0]]
    lengths = np.linalg.norm(drawn.actions[:, :2], axis=1)
    stands = drawn.picks[:, 0] == CHOICES - 1
    assert stands.any()
    np.testing.assert_allclose(lengths, np.where(stands, 0.0, 1.0), atol=1e-6)
    x, z = drawn.facing.T
    move_x, move_z, jump = drawn.actions.T
    np.testing.assert_allclose(move_x * x + move_z * z, moves[:, 0], atol=1e-6)
    np.testing.assert_allclose(move_z * x - move_x * z, moves[:, 1], atol=1e-6)
    assert np.array_equal(jump, drawn.picks[:, 1])
    untouched = drawn.all_actions[np.arange(3000), 1 - drawn.agents]
    assert np.isnan(untouched).all(), "the other agent's action is somebody else's"


class Played:
    """A rollout of made-up numbers: rewards, values, ends and changes of roles."""

    def __init__(self, seed: int, steps: int = 12, arenas: int = 6) -> None:
        random = np.random.default_rng(seed)
        self.rewards = random.normal(size=(2, steps, arenas)).astype(np.float32)
        self.values = random.normal(size=(2, steps + 1, arenas)).astype(np.float32)
        self.ended = np.zeros((steps, arenas), dtype=bool)
        self.swapped = np.zeros((steps, arenas), dtype=bool)

    def advantages(self, ended: np.ndarray | None = None) -> np.ndarray:
        advantages = np.full(self.rewards.shape, np.nan, dtype=np.float32)
        ends = self.ended if ended is None else ended
        compute_gae(self.rewards, self.values, ends, self.swapped, 0.9, 0.8, advantages)
        return advantages

    def by_the_book(self) -> np.ndarray:
        """Schulman et al. 2016, equation 16: the sum of (γλ)^l δ(t+l) up to the episode's end."""
        _, steps, arenas = self.rewards.shape
        advantages = np.zeros(self.rewards.shape)
        for role in range(2):
            for start in range(steps):
                for a in range(arenas):
                    advantages[role, start, a] = self._sum_of_deltas(role, start, a)
        return advantages

    def _sum_of_deltas(self, role: int, start: int, a: int) -> float:
        total, weight, now = 0.0, 1.0, role
        for t in range(start, len(self.ended)):
            later = 1 - now if self.swapped[t, a] else now
            delta = float(self.rewards[now, t, a]) - float(self.values[now, t, a])
            if self.ended[t, a]:
                return total + weight * delta
            delta += 0.9 * float(self.values[later, t + 1, a])
            total, weight, now = total + weight * delta, weight * 0.9 * 0.8, later
        return total


def test_advantages_where_nothing_ends() -> None:
    played = Played(0)
    np.testing.assert_allclose(played.advantages(), played.by_the_book(), atol=1e-5)


def test_advantages_where_episodes_end() -> None:
    played = Played(1)
    played.ended[5, 0] = True  # in the middle
    played.ended[-1, 1] = True  # with the last step
    played.ended[0, 2] = True  # with the first
    played.ended[[2, 3, 8], 3] = True  # several in one column
    played.ended[:, 4] = True  # all the time
    expected = played.by_the_book()
    np.testing.assert_allclose(played.advantages(), expected, atol=1e-5)
    np.testing.assert_allclose(
        expected[:, :, 4], played.rewards[:, :, 4] - played.values[:, :-1, 4], atol=1e-6
    )


def test_advantages_where_roles_change_hands() -> None:
    played = Played(2)
    played.swapped[4, 0] = True
    played.swapped[[1, 2, 7], 1] = True
    played.swapped[-1, 2] = True
    played.swapped[:, 3] = True
    played.swapped[3, 4], played.ended[6, 4] = True, True
    without = Played(2)
    np.testing.assert_allclose(played.advantages(), played.by_the_book(), atol=1e-5)
    changed = np.abs(played.advantages() - without.advantages()).max(axis=(0, 1))
    assert (changed[:5] > 1e-3).all()
    assert changed[5] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_advantages_of_any_course(seed: int) -> None:
    played = Played(seed, steps=17, arenas=9)
    random = np.random.default_rng(seed + 100)
    played.ended[...] = random.random(played.ended.shape) < 0.15
    played.swapped[...] = (random.random(played.ended.shape) < 0.3) & ~played.ended
    np.testing.assert_allclose(played.advantages(), played.by_the_book(), atol=2e-5)


def changed_before(end: int, ended: np.ndarray) -> bool:
    """Whether what comes after step `end` reaches the advantages up to it, with these marks."""
    played, other = Played(3, arenas=1), Played(3, arenas=1)
    other.rewards[:, end + 1 :] += 100.0
    other.values[:, end + 1 :] -= 100.0
    one, two = played.advantages(ended), other.advantages(ended)
    assert (one[:, end + 1 :] != two[:, end + 1 :]).all()
    return bool((one[:, : end + 1] != two[:, : end + 1]).any())


def test_nothing_leaks_across_an_end() -> None:
    end = 6
    ended = np.zeros((12, 1), dtype=bool)
    ended[end] = True
    assert not changed_before(end, ended)
    # The very same with the `done` of the step before or after would be seen:
    for wrong in (end - 1, end + 1):
        marks = np.zeros((12, 1), dtype=bool)
        marks[wrong] = True
        assert changed_before(end, marks)


def test_within_an_episode_everything_is_connected() -> None:
    end = 6
    played = Played(4, arenas=1)
    played.ended[end] = True
    before = played.advantages()
    played.rewards[0, end] += 1.0
    gained = (played.advantages() - before)[0, :, 0]
    expected = np.where(np.arange(12) <= end, 0.72 ** (end - np.arange(12.0)), 0.0)
    np.testing.assert_allclose(gained, expected, atol=1e-5)
    before = played.advantages()
    played.rewards[1, -1] += 1.0
    gained = (played.advantages() - before)[1, :, 0]
    expected = np.where(np.arange(12) > end, 0.72 ** (11.0 - np.arange(12)), 0.0)
    np.testing.assert_allclose(gained, expected, atol=1e-5)


def test_moments_are_those_of_turned_observations() -> None:
    seen = observations(RULES)
    agents = np.arange(len(seen)) % 2
    policy = knowing(1)
    policy.scale = np.maximum(policy.scale, 0.5)  # so that nothing is cut off
    features = prepared(policy, seen, agents)
    assert np.abs(features).max() < CLIP
    turned = policy._turn(seen[np.arange(len(seen)), agents]).astype(np.float64)
    sums, squares = np.ones(SIZE), np.full(SIZE, 2.0)
    add_moments(features, policy.mean, policy.scale, sums, squares)
    np.testing.assert_allclose(sums, 1.0 + turned.sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(squares, 2.0 + (turned**2).sum(axis=0), atol=1e-4)


def decisions_of(rule_set: str, count: int, decisions: int) -> Any:
    """Real play, a decision at a time: the results, and who was "it" before and after."""
    rules = short_rules(rule_set, seconds=2.0)
    arenas = Arenas(count, rules=rules, layout=LAYOUTS, seed=2, threads=1)
    arenas.reset()
    chaser, wanderer = Bot("chaser", rules, threads=1), Bot("random", rules, threads=1)
    for _ in range(decisions):
        seekers = arenas.arenas["seeker"].copy()
        actions = np.zeros((count, 2, 3), dtype=np.float32)
        rows = np.arange(count)
        for bot, agents in ((chaser, seekers), (wanderer, 1 - seekers)):
            actions[rows, agents] = bot.act(np.ascontiguousarray(arenas.observations[rows, agents]))
        results = arenas.step(actions)
        yield results, seekers, arenas.arenas["seeker"]


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_record_notes_what_each_role_earned(rule_set: str) -> None:
    count, ends, swaps = 48, 0, 0
    rewards = np.full((2, count), np.nan, dtype=np.float32)
    ended, swapped = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for results, seekers, after in decisions_of(rule_set, count, 100):
        record_step(results, seekers, after, 0.25, rewards, ended, swapped)
        for a in range(count):
            it = seekers[a]
            assert rewards[0, a] == np.float32(0.25 * results.rewards[a, it])
            assert rewards[1, a] == np.float32(0.25 * results.rewards[a, 1 - it])
            assert ended[a] == (results.ends[a] != GOING_ON)
            assert swapped[a] == (results.ends[a] == GOING_ON and after[a] != it)
        ends, swaps = ends + int(ended.sum()), swaps + int(swapped.sum())
    assert ends > count
    assert (swaps > 5) == (rule_set == "transfer")


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_episodes_are_summed_up_where_they_end(rule_set: str) -> None:
    """Of arenas 10 to 29 out of 48."""
    count, first, rows = 48, 10, 20
    terms = np.zeros((rows, 2, len(TERMS)))
    distance, decisions = np.zeros(rows), np.zeros(rows)
    ended, sums = np.zeros((rows, 6 + 2 * len(TERMS))), np.zeros(6 + 2 * len(TERMS))
    course: dict[int, list[tuple[np.ndarray, float]]] = {a: [] for a in range(first, first + rows)}
    expected, expected_terms = np.zeros(6), np.zeros((2, len(TERMS)))
    reasons = set()
    for results, seekers, _ in decisions_of(rule_set, count, 100):
        before = sums.copy()
        many = count_episodes(results, seekers, first, terms, distance, decisions, ended, sums)
        np.testing.assert_allclose(sums - before, ended[:many].sum(axis=0), atol=1e-9)
        for a, so_far in course.items():
            by_role = results.terms[a, [seekers[a], 1 - seekers[a]]].astype(np.float64)
            so_far.append((by_role, float(results.distances[a])))
            if results.ends[a] == GOING_ON:
                continue
            reasons.add(int(results.ends[a]))
            winner = int(results.winners[a])
            expected += [
                1.0,
                len(so_far),
                results.ticks[a],
                {0: 1.0, 1: 0.0, -1: 0.5}[winner],
                results.ends[a] == TAGGED,
                sum(metres for _, metres in so_far),
            ]
            expected_terms += np.sum([earned for earned, _ in so_far], axis=0)
            so_far.clear()
    assert expected[0] > rows
    assert reasons == ({TAGGED, TIMED_OUT} if rule_set == "seek" else {TIMED_OUT})
    np.testing.assert_allclose(sums[:6], expected, rtol=1e-12)
    np.testing.assert_allclose(sums[6:].reshape(2, -1), expected_terms, rtol=1e-9, atol=1e-9)
    for row, so_far in enumerate(course.values()):
        assert decisions[row] == len(so_far), "what goes on is kept for later"
        assert distance[row] == pytest.approx(sum(metres for _, metres in so_far))


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_few_rows_are_decided_as_by_torch(rows: int) -> None:
    policy = Policy(knowing(3), RULES)
    random = np.random.default_rng(rows)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.from_numpy(random.normal(0.0, 0.1, parameter.shape)).float())
    seen = random.uniform(-1.0, 1.0, (rows, 2, SIZE)).astype(np.float32)
    agents = random.integers(0, 2, rows)
    chances = random.random((rows, 2), dtype=np.float32)
    features, few_features = (np.empty((rows, SIZE), dtype=np.float32) for _ in range(2))
    picks, few_picks = (np.empty((rows, 2), dtype=np.int64) for _ in range(2))
    chosen, few_chosen, values = (np.empty(rows, dtype=np.float32) for _ in range(3))
    actions, few_actions = (np.zeros((rows, 2, 3), dtype=np.float32) for _ in range(2))
    numbers = policy.arrays()
    extract_features(seen, agents, numbers.mean, numbers.scale, features)
    scores = policy.outputs(torch.from_numpy(features)).detach().numpy()
    sample_actions(scores, chances, numbers.moves, seen, agents, picks, chosen, actions)
    act(seen, agents, numbers, chances, few_features, values, few_picks, few_chosen, few_actions)
    assert np.array_equal(few_features, features)
    assert np.allclose(values, scores[:, -1], atol=1e-4)
    same = (picks == few_picks).all(axis=1)
    assert same.mean() > 0.9, "but for draws at the very edge of a choice"
    assert np.allclose(few_chosen[same], chosen[same], atol=1e-4)
    assert np.allclose(few_actions[same], actions[same])
