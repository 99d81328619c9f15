"""Opponents: past selves, bots and files, and who plays in which arena."""

from pathlib import Path

import numpy as np
import pytest
import torch

from estragon.selfplay.config import LEAGUE
from estragon.selfplay.league import (
    HELD_FOR,
    PAST_AT_ONCE,
    ArenaSplit,
    Camper,
    League,
    PastSelves,
    fixed_opponents,
    league_bots,
    resolve_opponent,
    split_arenas,
)
from estragon.selfplay.policy import Policy
from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import OBS, load_rules
from tests.selfplay.staging import beginners, short_rules

RULES = short_rules()


def policies() -> list[Policy]:
    return [Policy(policy, RULES) for policy in beginners(RULES).values()]


def remembering(remembered: int, selves: int) -> League:
    """A league after `selves` selves; a seeker's mean is its number, a hider's the negative."""
    league, own = League(remembered), policies()
    for number in range(selves):
        with torch.no_grad():
            own[0].mean.fill_(float(number))
            own[1].mean.fill_(-float(number))
        league.add(own)
    return league


def numbers(league: League) -> list[int]:
    """Which selves it remembers."""
    for seeker, hider in league.pairs:
        assert torch.equal(seeker["mean"], -hider["mean"])
    return [int(seeker["mean"][0]) for seeker, _ in league.pairs]


def test_it_remembers_everything_while_there_is_room() -> None:
    assert numbers(remembering(8, 8)) == list(range(8))


def test_a_memory_is_not_changed_by_what_is_learned_later() -> None:
    league, own = League(4), policies()
    league.add(own)
    weight = own[0].state_dict()["layers.0.weight"]
    before = weight.clone()
    weight += 1.0
    assert torch.equal(league.pairs[0][0]["layers.0.weight"], before)


@pytest.mark.parametrize("selves", [9, 20, 57, 200, 601])
def test_it_keeps_the_first_self_and_is_never_too_full(selves: int) -> None:
    kept = numbers(remembering(8, selves))
    assert 4 <= len(kept) <= 8
    assert kept[0] == 0
    assert kept == sorted(set(kept))


@pytest.mark.parametrize("selves", [9, 20, 57, 200, 601])
def test_it_thins_out_evenly(selves: int) -> None:
    """No part of the run is forgotten: no gap is several times as wide as they are on average."""
    kept = numbers(remembering(8, selves))
    gaps = np.diff([*kept, selves - 1])
    assert gaps.max() <= 4.0 * selves / len(kept), f"of {selves} selves it remembers {kept}"


def test_draws_depend_on_the_generator_alone() -> None:
    league = remembering(16, 16)

    def drawn(seed: int) -> list[tuple[float, float]]:
        random = np.random.default_rng(seed)
        pairs = [league.draw(random) for _ in range(100)]
        return [(float(one["mean"][0]), -float(two["mean"][0])) for one, two in pairs]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    seekers, hiders = zip(*drawn(1), strict=True)
    assert seekers != hiders, "each on its own"
    assert len(set(seekers)) > 8
    assert len(set(hiders)) > 8


OPPONENTS_RULES, TRANSFER = short_rules(), short_rules("transfer")


@pytest.mark.parametrize("count", [8, 16, 33, 512])
@pytest.mark.parametrize(
    ("past", "sparring"), [(0.0, 0.0), (0.3, 0.2), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)]
)
def test_a_league_shares_out_every_agent_once(count: int, past: float, sparring: float) -> None:
    split = split_arenas(count, "both", LEAGUE, past, sparring)
    assert split.count == count
    assert split.first == split.second, "both roles learn equally much"
    assert 2 * split.first == pytest.approx(count * (past + sparring), abs=4.0)
    assert split.first_bots == split.second_bots
    assert 2 * split.first_bots == pytest.approx(count * sparring, abs=2.0)
    opening = split_arenas(count, "both", LEAGUE, past, sparring, opening=True)
    assert opening.first_bots == opening.first <= opening.second == opening.second_bots
    assert opening.second == pytest.approx(count * min(sparring, 1.0 - sparring / 6), abs=1.0)
    for each in (split, opening):
        check_that_everyone_plays(each)


def check_that_everyone_plays(split: ArenaSplit) -> None:
    assert min(split.first, split.both, split.second, split.first_bots, split.second_bots) >= 0
    players = split.learns().astype(int)
    for agent, group in (*split.against_bots(), *split.against_opponents()):
        players[group, agent] += 1
    assert (players == 1).all(), "a learner, a bot or another opponent plays each agent"
    assert split.learns().sum() == split.first + 2 * split.both + split.second


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("both", ArenaSplit(8, 0, 9)),
        ("seeker", ArenaSplit(17, 0, 0)),
        ("hider", ArenaSplit(0, 0, 17)),
    ],
)
def test_against_a_fixed_opponent_nobody_meets_a_learner(role: str, expected: ArenaSplit) -> None:
    split = split_arenas(17, role, "bot:chaser", 0.3, 0.2)  # type: ignore[arg-type]
    assert split == expected
    assert (split.learns().sum(axis=1) == 1).all()


def test_opponents_by_default() -> None:
    assert resolve_opponent(None, "both", OPPONENTS_RULES) == LEAGUE
    assert resolve_opponent(None, "seeker", OPPONENTS_RULES) == "bot:evader"
    assert resolve_opponent(None, "hider", OPPONENTS_RULES) == "bot:chaser"
    assert resolve_opponent("bot:random", "hider", OPPONENTS_RULES) == "bot:random"
    assert resolve_opponent("bot:random", "both", TRANSFER) == "bot:random"


def test_a_league_for_one_role_is_refused() -> None:
    with pytest.raises(UserError, match="in a league both roles learn"):
        resolve_opponent(LEAGUE, "seeker", OPPONENTS_RULES)


def test_one_role_under_transfer_rules_is_refused() -> None:
    with pytest.raises(UserError, match="--role hider"):
        resolve_opponent("bot:chaser", "hider", TRANSFER)


def test_bots_and_files_as_opponents(tmp_path: Path) -> None:
    pair = fixed_opponents("bot:chaser", "hider", OPPONENTS_RULES)
    assert isinstance(pair.seeker, Bot)
    assert pair.seeker is pair.hider
    path = tmp_path / "policy.pt"
    policies = beginners(OPPONENTS_RULES)
    save_policies(path, {"hider": policies["hider"]}, OPPONENTS_RULES)
    pair = fixed_opponents(str(path), "seeker", OPPONENTS_RULES)
    assert pair.seeker is None
    assert pair.hider is not None
    seen = np.zeros((3, OPPONENTS_RULES.observation.size), dtype=np.float32)
    assert np.array_equal(pair.hider.act(seen), policies["hider"].act(seen))
    for role in ("hider", "both"):
        with pytest.raises(UserError, match=f"holds no seeker, which --role {role} needs"):
            fixed_opponents(str(path), role, OPPONENTS_RULES)
    with pytest.raises(UserError, match="expected league, bot:NAME or a policy file"):
        fixed_opponents(str(tmp_path / "nobody.pt"), "seeker", OPPONENTS_RULES)
    with pytest.raises(UserError, match="no bot 'ninja'"):
        fixed_opponents("bot:ninja", "seeker", OPPONENTS_RULES)


def test_sparring_partners_play_the_role_they_are_good_at() -> None:
    seekers, hiders = league_bots(OPPONENTS_RULES)
    seen = Arenas(20, rules=OPPONENTS_RULES, threads=1).reset()[:, 0].copy()
    assert seekers is not None
    assert hiders is not None
    actions = seekers.act(seen)
    np.testing.assert_array_equal(actions[:2], Bot("random", OPPONENTS_RULES).act(seen)[:2])
    np.testing.assert_array_equal(actions[2:], Bot("chaser", OPPONENTS_RULES).act(seen)[2:])
    actions = hiders.act(seen)
    np.testing.assert_array_equal(actions[:5], Camper().act(seen)[:5])
    np.testing.assert_array_equal(actions[5:10], Bot("random", OPPONENTS_RULES).act(seen)[5:10])
    np.testing.assert_array_equal(actions[10:], Bot("evader", OPPONENTS_RULES).act(seen)[10:])


def test_a_camper_ends_in_a_corner() -> None:
    arenas = Arenas(32, rules=load_rules(), layout="empty", seed=3, threads=1)
    seen, camper = arenas.reset(), Camper()
    actions = np.zeros((32, 2, 3), dtype=np.float32)
    for _ in range(60):
        actions[:, 1] = camper.act(seen[:, 1])
        seen = arenas.step(actions)[0]
    corner = (arenas.rules.arena.width_m / 2 - 0.6) / arenas.rules.observation.position_scale_m
    assert (np.abs(seen[:, 1, [OBS.position, OBS.position + 2]]) > corner).all()


def test_a_past_self_stays_for_a_while() -> None:
    league, own = remembering(64, 40), PastSelves(RULES, 16)
    seen = []
    for number in range(3 * HELD_FOR):
        pairs = own.players(league, np.random.default_rng(number))
        assert len(pairs) == PAST_AT_ONCE
        assert not any(player.arrays for pair in pairs for player in pair)  # type: ignore[union-attr]
        seen.append([float(pair.seeker.policy.mean[0]) for pair in pairs])  # type: ignore[union-attr]
    changes = (np.diff(np.array(seen), axis=0) != 0).sum(axis=0)
    assert (changes >= 2).all()
    assert (changes <= 3).all()


def test_saved_past_selves_go_on_as_if_nothing_had_been() -> None:
    league, one, two = remembering(64, 40), PastSelves(RULES, 16), PastSelves(RULES, 16)
    for number in range(5):
        one.players(league, np.random.default_rng(number))
    two.restore(one.save())
    for number in range(5, 20):
        for past in (one, two):
            past.players(league, np.random.default_rng(number))
        assert [
            torch.equal(a["mean"], b["mean"])
            for mine, its in zip(one.save()["weights"], two.save()["weights"], strict=True)
            for a, b in zip(mine, its, strict=True)
        ] == [True] * (2 * PAST_AT_ONCE)


def test_opponents_share_the_arenas_set_aside_for_them() -> None:
    split = split_arenas(100, "both", LEAGUE, 0.5, 0.2)
    whole = {agent: range(100)[group] for agent, group in split.against_opponents()}
    for agent, rows in whole.items():
        parts = [
            row
            for number in range(3)
            for who, group in split.against_opponents(number, 3)
            if who == agent
            for row in range(100)[group]
        ]
        assert parts == list(rows)
