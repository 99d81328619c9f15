"""Stages are evaluated against bots and each other, rated by Elo, and exploited."""

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from estragon.selfplay.evaluation import (
    ANCHOR_ELO,
    EVALUATION_SEED,
    MODES,
    PAIRINGS,
    Stage,
    StageEvaluator,
    fit_elo,
    load_panel,
    train_best_response,
)
from estragon.show.charts.data import read_cross_play
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.matches import play_matches
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import ROLES, Role
from tests.selfplay.staging import CONFIG, LAYOUTS, beginners, short_rules, stage_of, task_of

RULES = short_rules(seconds=2.0)
MATCHES = 12


def evaluator() -> StageEvaluator:
    return StageEvaluator(RULES, load_layouts(LAYOUTS, RULES), matches=MATCHES)


def stages() -> list[Stage]:
    return [stage_of(name, RULES, updates) for updates, name in enumerate(("0%", "50%", "100%"))]


@pytest.fixture(scope="module")
def judged() -> tuple[StageEvaluator, list[Any]]:
    own = evaluator()
    told: list[str] = []
    scores = [own.add(stage, told.append) for stage in stages()]
    assert any("chaser" in what for what in told)
    assert any("stages" in what for what in told)
    return own, scores


def test_every_role_is_measured_against_its_bots(judged: tuple[StageEvaluator, list[Any]]) -> None:
    _, scores = judged
    for score in scores:
        assert list(score) == [
            *(f"{role}_vs_{bot}" for role, bot in PAIRINGS),
            *(f"{role}_vs_panel" for role in ROLES),
        ]
        for result in score.values():
            assert 0.0 <= result.win_rate <= 1.0
            assert 0.0 <= result.sampled_win_rate <= 1.0
            assert 0.0 < result.seconds <= 2.0
            assert result.matches == MATCHES
    assert scores[-1]["hider_vs_chaser"].win_rate < 1.0


def test_a_score_is_what_the_matches_say(judged: tuple[StageEvaluator, list[Any]]) -> None:
    layouts = load_layouts(LAYOUTS, RULES)
    policy = stages()[-1].policies["hider"]
    played = play_matches(
        Bot("chaser", RULES), policy, MATCHES, rules=RULES, layouts=layouts, seed=EVALUATION_SEED
    )
    score = judged[1][-1]["hider_vs_chaser"]
    assert score.win_rate == (played.winners == 1).mean()
    assert score.reward == pytest.approx(played.rewards[:, 1].mean())
    assert score.seconds == pytest.approx(played.ticks.mean() / RULES.physics.ticks_per_second)


def test_cross_play_is_what_the_charts_read(
    judged: tuple[StageEvaluator, list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / "cross_play.json"
    path.write_text(json.dumps(judged[0].cross_play()))
    read = read_cross_play(path)
    assert [stage.name for stage in read.stages] == ["0%", "50%", "100%"]
    assert [stage.agent_steps for stage in read.stages] == [0, 100, 200]
    assert read.episodes == MATCHES
    assert all(0.0 <= rate <= 1.0 for row in read.seeker_win_rate for rate in row)
    assert (read.elo.seeker, read.elo.hider) == judged[0].elo()


def test_cross_play_does_not_depend_on_who_came_first(
    judged: tuple[StageEvaluator, list[Any]],
) -> None:
    other = evaluator()
    for stage in reversed(stages()):
        other.add(stage, lambda _: None)
    one, two = judged[0].cross_play(), other.cross_play()
    assert one is not None
    assert two is not None
    assert one["seeker_win_rate"] == [row[::-1] for row in two["seeker_win_rate"]][::-1]
    assert one["elo"]["seeker"] == pytest.approx(two["elo"]["seeker"][::-1])


def test_saved_it_goes_on_as_if_nothing_had_been(judged: tuple[StageEvaluator, list[Any]]) -> None:
    own, _ = judged
    other = evaluator()
    other.restore(stages(), json.loads(json.dumps(own.save())))
    assert other.cross_play() == own.cross_play()
    assert other.save() == own.save()
    older = [[*row[:2], *row[3:]] for row in own.save() if row[2] == "argmax"]
    other.restore(stages(), older)
    assert other.cross_play() == own.cross_play(), "what an older run did not play is played now"
    more = stage_of("more", RULES, 7)
    whole = evaluator()
    for stage in stages():
        whole.add(stage, lambda _: None)
    assert other.add(more, lambda _: None) == whole.add(more, lambda _: None)
    assert other.cross_play() == whole.cross_play()


@pytest.mark.parametrize(("ahead", "kept"), [(0, "100%"), (1, "100%"), (4, "75%")])
def test_the_last_stage_is_kept_unless_another_is_better_beyond_chance(
    ahead: int, kept: str
) -> None:
    names = ("0%", "50%", "75%", "100%")
    own, even = evaluator(), MATCHES // 2
    wins = {"0%": MATCHES, "50%": MATCHES, "75%": even - ahead, "100%": even}
    played = [  # the seeker of 0% wins more than that, but only against the hider of 0%
        [seeker, hider, mode, wins[hider] * (hider == "0%" or seeker != "0%"), MATCHES]
        for seeker, hider, mode in itertools.product(names, names, MODES)
    ]
    own.restore([Stage(name, 1, int(name[:-1]), {}) for name in names], played)
    strongest = own.strongest()
    assert {role: stage.name for role, stage in strongest.items()} == {
        "seeker": "100%",
        "hider": kept,
    }


def test_where_one_role_learned_there_is_no_cross_play() -> None:
    own = evaluator()
    scores = own.add(stage_of("0%", RULES, 0, "seeker"), lambda _: None)
    assert list(scores) == ["seeker_vs_random", "seeker_vs_evader", "seeker_vs_panel"]
    assert own.cross_play() is None
    seeker, hider = own.elo()
    assert len(seeker) == len(hider) == 1


def simple(role: Role, towards: float) -> FrozenPolicy:
    """Runs towards where it last saw the other, away from it, or (0) stands still."""
    policy = stage_of("", RULES, 0).policies[role]
    size, moves = RULES.observation.size, policy.moves
    weight = np.zeros((size, len(moves) + 2), dtype=np.float32)
    bias = np.zeros(len(moves) + 2, dtype=np.float32)
    bias[len(moves)] = -1.0
    where = RULES.field("last_seen_relative").start
    weight[where, : len(moves)] = towards * moves[:, 0]
    weight[where + 2, : len(moves)] = towards * moves[:, 1]
    bias[len(moves) - 1 if towards == 0.0 else 5] = 1e-3  # where it has seen nobody, it turns
    policy.weights = [(weight, bias)]
    return policy


def test_who_plays_which_side_is_kept_apart() -> None:
    rules, layouts = short_rules(seconds=5.0), load_layouts("empty", RULES)
    own = StageEvaluator(rules, layouts, matches=40)
    players: dict[str, dict[Role, FrozenPolicy]] = {
        "strong": {"seeker": simple("seeker", 1.0), "hider": simple("hider", -1.0)},
        "weak": {"seeker": simple("seeker", 0.0), "hider": simple("hider", 0.0)},
    }
    for updates, (name, pair) in enumerate(players.items()):
        own.add(Stage(name, updates, updates, dict(pair.items())), lambda _: None)
    cross_play = own.cross_play()
    assert cross_play is not None
    (strong_strong, strong_weak), (weak_strong, weak_weak) = cross_play["seeker_win_rate"]
    seeker, hider = players["strong"]["seeker"], players["weak"]["hider"]
    played = play_matches(seeker, hider, 40, rules=rules, layouts=layouts, seed=EVALUATION_SEED)
    assert strong_weak == (played.winners == 0).mean() > 0.2
    assert strong_weak > strong_strong
    assert weak_weak == weak_strong == 0.0
    for ratings in cross_play["elo"].values():
        assert ratings[0] > ratings[1]


SEEKERS = np.array([600.0, 900.0, 1000.0, 1250.0])
HIDERS = np.array([700.0, 1100.0, 1150.0])
EVERYBODY = ([0, 1, 2, 3], [0, 1, 2])


def chances(seekers: np.ndarray, hiders: np.ndarray) -> np.ndarray:
    """How often each seeker beats each hider."""
    rates: np.ndarray = 1.0 / (1.0 + 10.0 ** ((hiders[None, :] - seekers[:, None]) / 400.0))
    return rates


def test_known_ratings_are_recovered_from_expected_results() -> None:
    games = np.full((4, 3), 1e6)
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=0.1)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=0.1)


def test_they_are_recovered_also_where_some_never_met() -> None:
    games = np.array([[1e6, 0.0, 0.0], [1e6, 0.0, 1e6], [0.0, 1e6, 1e6], [0.0, 0.0, 1e6]])
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=1.0)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=1.0)


def test_a_few_hundred_games_are_enough_for_a_good_guess() -> None:
    games = np.full((4, 3), 256.0)
    wins = np.random.default_rng(0).binomial(256, chances(SEEKERS, HIDERS)).astype(np.float64)
    seekers, hiders = fit_elo(wins, games, EVERYBODY)
    middle = np.concatenate([SEEKERS, HIDERS]).mean() - 1000.0
    np.testing.assert_allclose(seekers, SEEKERS - middle, atol=60.0)
    np.testing.assert_allclose(hiders, HIDERS - middle, atol=60.0)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_clean_sweep_gives_finite_ratings(rate: float) -> None:
    games = np.full((3, 3), 256.0)
    seekers, hiders = fit_elo(games * rate, games, ([0], [0]))
    assert np.isfinite(seekers).all()
    assert np.isfinite(hiders).all()
    assert (seekers[0] > hiders[0]) == (rate == 1.0)
    assert np.abs(np.concatenate([seekers, hiders])).max() < 10_000.0


def test_who_never_played_has_a_rating_too() -> None:
    games, wins = np.zeros((3, 2)), np.zeros((3, 2))
    games[0, 0], wins[0, 0] = 100.0, 75.0
    seekers, hiders = fit_elo(wins, games, ([0], [0]))
    assert np.isfinite(np.concatenate([seekers, hiders])).all()
    assert seekers[0] > seekers[1] == seekers[2] == hiders[1] > hiders[0]


@pytest.mark.parametrize("anchors", [([0], [0]), ([1, 2], [0, 2]), EVERYBODY])
def test_anchors_average_1000(anchors: tuple[list[int], list[int]]) -> None:
    games = np.full((4, 3), 300.0)
    seekers, hiders = fit_elo(games * chances(SEEKERS, HIDERS), games, anchors)
    fixed = [*seekers[anchors[0]], *hiders[anchors[1]]]
    assert np.mean(fixed) == pytest.approx(ANCHOR_ELO)
    assert ANCHOR_ELO == 1000.0


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_strengths_is_kept(seed: int) -> None:
    random = np.random.default_rng(seed)
    seekers, hiders = random.uniform(-500.0, 2500.0, 8), random.uniform(-500.0, 2500.0, 8)
    games = np.full((8, 8), 256.0)
    found = fit_elo(games * chances(seekers, hiders), games, ([0], [0]))
    assert np.array_equal(np.argsort(found[0]), np.argsort(seekers))
    assert np.array_equal(np.argsort(found[1]), np.argsort(hiders))


STEPS = 600


@pytest.mark.parametrize("exploited", ["seeker", "hider"])
def test_a_best_response_plays_the_other_role(
    exploited: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estragon.selfplay.evaluation.BEST_RESPONSE_MATCHES", 32)
    rules = short_rules()
    policies = beginners(rules)
    path = tmp_path / "policy.pt"
    save_policies(path, {exploited: policies[exploited]}, rules)
    before = path.read_bytes()
    found, again = (
        train_best_response(exploited, path, policies, task_of(rules=rules), CONFIG, STEPS)
        for _ in range(2)
    )
    assert found == again, "same seed, same best response"
    assert found.exploited == exploited
    assert STEPS <= found.steps < STEPS + CONFIG.arenas * CONFIG.horizon
    assert 0.0 <= found.start_win_rate <= found.win_rate <= 1.0
    low, high = found.gain_interval
    assert low <= found.gain <= high
    assert f"{100 * found.gain:.1f} points" in found.describe()
    assert (found.win_rate > 0.5) == (exploited == "seeker"), "in a second nobody is caught"
    assert path.read_bytes() == before


def test_the_panel_plays_the_game_it_knows_only() -> None:
    members = load_panel(RULES)
    assert len(members) >= 3
    for policies in members:
        assert set(policies) == set(ROLES)
        assert min(policy.trained_steps for policy in policies.values()) > 1_000_000
    assert load_panel(short_rules("transfer")) == []
    other = msgspec.structs.replace(RULES.observation, version=RULES.observation.version + 1)
    assert load_panel(msgspec.structs.replace(RULES, observation=other)) == []


def test_drawn_actions_are_drawn_again_the_same() -> None:
    one, two = evaluator(), evaluator()
    for own in (one, two):
        own.add(stages()[0], lambda _: None)
    assert one.save() == two.save()
    drawn = {mode: result for *_, mode, result, _ in one.save()}
    assert set(drawn) == {"argmax", "sampled"}
