"""Who plays against whom: every arena and agent accounted for, and doubtful wishes refused."""

from pathlib import Path

import numpy as np
import pytest

from estragon.selfplay.config import LEAGUE
from estragon.selfplay.opponents import (
    Sides,
    fixed_rivals,
    resolve_opponent,
    sides_of,
    sparring_partners,
)
from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.policy_files import save_policies
from tests.selfplay.staging import beginners, short_rules

RULES, TRANSFER = short_rules(), short_rules("transfer")


@pytest.mark.parametrize("count", [8, 16, 33, 512])
@pytest.mark.parametrize(
    ("past", "sparring"), [(0.0, 0.0), (0.3, 0.2), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)]
)
def test_a_league_shares_out_every_agent_once(count: int, past: float, sparring: float) -> None:
    sides = sides_of(count, "both", LEAGUE, past, sparring)
    assert sides.count == count
    assert min(sides.first, sides.both, sides.second, sides.sparring) >= 0
    assert sides.first == sides.second, "both roles learn equally much"
    assert 2 * sides.first == pytest.approx(count * (past + sparring), abs=4.0)
    assert 2 * sides.sparring == pytest.approx(count * sparring, abs=2.0)
    players = sides.learns().astype(int)
    for agent, group in (*sides.against_bots(), *sides.against_rivals()):
        players[group, agent] += 1
    assert (players == 1).all(), "a learner, a bot or a rival plays each agent"
    assert sides.learns().sum() == sides.first + 2 * sides.both + sides.second


@pytest.mark.parametrize(
    ("role", "expected"),
    [("both", Sides(8, 0, 9)), ("seeker", Sides(17, 0, 0)), ("hider", Sides(0, 0, 17))],
)
def test_against_a_fixed_opponent_nobody_meets_a_learner(role: str, expected: Sides) -> None:
    sides = sides_of(17, role, "bot:chaser", 0.3, 0.2)  # type: ignore[arg-type]
    assert sides == expected
    assert (sides.learns().sum(axis=1) == 1).all()


def test_opponents_by_default() -> None:
    assert resolve_opponent(None, "both", RULES) == LEAGUE
    assert resolve_opponent(None, "seeker", RULES) == "bot:evader"
    assert resolve_opponent(None, "hider", RULES) == "bot:chaser"
    assert resolve_opponent("bot:random", "hider", RULES) == "bot:random"
    assert resolve_opponent("bot:random", "both", TRANSFER) == "bot:random"


def test_a_league_for_one_role_is_refused() -> None:
    with pytest.raises(UserError, match="in a league both roles learn"):
        resolve_opponent(LEAGUE, "seeker", RULES)


def test_one_role_under_transfer_rules_is_refused() -> None:
    with pytest.raises(UserError, match="everybody plays both"):
        resolve_opponent("bot:chaser", "hider", TRANSFER)


def test_bots_and_files_as_opponents(tmp_path: Path) -> None:
    pair = fixed_rivals("bot:chaser", "hider", RULES)
    assert isinstance(pair.seeker, Bot)
    assert pair.seeker is pair.hider
    path = tmp_path / "policy.pt"
    policies = beginners(RULES)
    save_policies(path, {"hider": policies["hider"]}, RULES)
    pair = fixed_rivals(str(path), "seeker", RULES)
    assert pair.seeker is None
    assert pair.hider is not None
    seen = np.zeros((3, RULES.observation.size), dtype=np.float32)
    assert np.array_equal(pair.hider.act(seen), policies["hider"].act(seen))
    for role in ("hider", "both"):
        with pytest.raises(UserError, match=f"holds no seeker, which --role {role} needs"):
            fixed_rivals(str(path), role, RULES)
    with pytest.raises(UserError, match="expected league, bot:NAME or a policy file"):
        fixed_rivals(str(tmp_path / "nobody.pt"), "seeker", RULES)
    with pytest.raises(UserError, match="no bot 'ninja'"):
        fixed_rivals("bot:ninja", "seeker", RULES)


def test_sparring_partners_play_the_role_they_are_good_at() -> None:
    seekers, evader = sparring_partners(RULES)
    assert isinstance(evader, Bot)
    assert evader.name == "bot:evader"
    seen = Arenas(20, rules=RULES, threads=1).reset()[:, 0].copy()
    assert seekers is not None
    actions = seekers.act(seen)
    np.testing.assert_array_equal(actions[:5], Bot("random", RULES).act(seen)[:5])
    np.testing.assert_array_equal(actions[5:], Bot("chaser", RULES).act(seen)[5:])
