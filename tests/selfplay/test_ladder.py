"""How strong stages are: rates that are rates, in the format that the charts read, kept exactly."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.selfplay.ladder import EVALUATION_SEED, PAIRINGS, Ladder, Stage
from estragon.show.charts.data import read_cross_play
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.matches import play_matches
from estragon.tag.rules import Role
from tests.selfplay.staging import LAYOUTS, short_rules, stage_of

RULES = short_rules(seconds=2.0)
MATCHES = 12


def ladder() -> Ladder:
    return Ladder(RULES, load_layouts(LAYOUTS, RULES), matches=MATCHES)


def stages() -> list[Stage]:
    return [stage_of(name, RULES, updates) for updates, name in enumerate(("0%", "50%", "100%"))]


@pytest.fixture(scope="module")
def judged() -> tuple[Ladder, list[Any]]:
    own = ladder()
    told: list[str] = []
    scores = [own.add(stage, told.append) for stage in stages()]
    assert any("bot:chaser" in what for what in told)
    assert any("50%" in what for what in told)
    return own, scores


def test_every_role_is_measured_against_its_bots(judged: tuple[Ladder, list[Any]]) -> None:
    _, scores = judged
    for score in scores:
        assert list(score) == [f"{role}_vs_{bot}" for role, bot in PAIRINGS]
        for result in score.values():
            assert 0.0 <= result.win_rate <= 1.0
            assert 0.0 < result.seconds <= 2.0
            assert result.matches == MATCHES
    assert scores[-1]["hider_vs_chaser"].win_rate < 1.0


def test_a_score_is_what_the_matches_say(judged: tuple[Ladder, list[Any]]) -> None:
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
    judged: tuple[Ladder, list[Any]], tmp_path: Path
) -> None:
    path = tmp_path / "cross_play.json"
    path.write_text(json.dumps(judged[0].cross_play()))
    read = read_cross_play(path)
    assert [stage.name for stage in read.stages] == ["0%", "50%", "100%"]
    assert [stage.agent_steps for stage in read.stages] == [0, 100, 200]
    assert read.episodes == MATCHES
    assert all(0.0 <= rate <= 1.0 for row in read.seeker_win_rate for rate in row)
    assert (read.elo.seeker, read.elo.hider) == judged[0].elo()


def test_cross_play_does_not_depend_on_who_came_first(judged: tuple[Ladder, list[Any]]) -> None:
    other = ladder()
    for stage in reversed(stages()):
        other.add(stage, lambda _: None)
    one, two = judged[0].cross_play(), other.cross_play()
    assert one is not None
    assert two is not None
    assert one["seeker_win_rate"] == [row[::-1] for row in two["seeker_win_rate"]][::-1]
    assert one["elo"]["seeker"] == pytest.approx(two["elo"]["seeker"][::-1])


def test_saved_it_goes_on_as_if_nothing_had_been(judged: tuple[Ladder, list[Any]]) -> None:
    own, _ = judged
    other = ladder()
    other.restore(stages(), json.loads(json.dumps(own.save())))
    assert other.cross_play() == own.cross_play()
    assert other.save() == own.save()
    more = stage_of("more", RULES, 7)
    whole = ladder()
    for stage in stages():
        whole.add(stage, lambda _: None)
    assert other.add(more, lambda _: None) == whole.add(more, lambda _: None)
    assert other.cross_play() == whole.cross_play()


def test_where_one_role_learned_there_is_no_cross_play() -> None:
    own = ladder()
    scores = own.add(stage_of("0%", RULES, 0, "seeker"), lambda _: None)
    assert list(scores) == ["seeker_vs_random", "seeker_vs_evader"]
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
    own = Ladder(rules, layouts, matches=40)
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
