"""Rewards: each term on its own, zero-sum by default, the classic values as documented."""

import msgspec
import numpy as np
import pytest

from estragon.tag.arenas import Arenas
from estragon.tag.rules import TERMS, Rules, load_rules
from tests.tag.staging import command, place, staged, tick_rules

DEFAULT, CLASSIC = tick_rules(), tick_rules(rewards="classic")
REST = DEFAULT.agent.size_m / 2 + DEFAULT.physics.skin_m


def terms(arenas: Arenas, actions: np.ndarray) -> list[dict[str, float]]:
    results = arenas.step(actions, restart=False)
    return [dict(zip(TERMS, results.terms[0, i].tolist(), strict=True)) for i in range(2)]


def weighted(rules: Rules, **weights: float) -> Rules:
    """Rules with some weights of the default profile changed."""
    profile = {**rules.reward_profiles["default"], **weights}
    return msgspec.structs.replace(rules, reward_profiles={"default": profile}, rewards="default")


@pytest.mark.parametrize("rules", ["seek", "transfer"])
def test_the_default_profile_is_zero_sum(rules: str) -> None:
    arenas = Arenas(256, rules=load_rules(rules=rules), seed=2)
    arenas.reset()
    random = np.random.default_rng(1)
    total = 0.0
    for _ in range(400):
        results = arenas.step(random.uniform(-1, 1, (256, 2, 3)).astype(np.float32))
        assert np.array_equal(results.rewards[:, 0], -results.rewards[:, 1])
        assert np.allclose(results.terms.sum(axis=2), results.rewards, atol=1e-4)
        total += float(np.abs(results.rewards).sum())
    assert total > 0.0


def test_coming_closer_pays_the_seeker_what_it_costs_the_hider() -> None:
    arenas = staged((0.0, REST, 0.0), (6.0, REST, 0.0), rules=DEFAULT)
    place(arenas, 0, velocity_x=8.0)
    seeker, hider = terms(arenas, command(first=(1, 0, 0)))
    assert seeker["distance"] == pytest.approx(0.14 * 8.0 / 60.0)
    assert hider["distance"] == -seeker["distance"]


def test_a_tag_and_a_timeout_pay_as_the_profiles_say() -> None:
    for rules, bonus in ((DEFAULT, 10.0), (CLASSIC, 6.0)):
        arenas = staged((0.0, REST, 0.0), (1.05, REST, 0.0), rules=rules)
        seeker, hider = terms(arenas, command())
        assert (seeker["tag"], hider["tag"]) == (10.0, -10.0)
        arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=rules)
        arenas.arenas["tick"] = 599
        seeker, hider = terms(arenas, command())
        assert (seeker["timeout"], hider["timeout"]) == (-bonus, bonus)


def test_classic_pays_time_survival_and_high_ground() -> None:
    arenas = staged((-8.0, REST, 8.0), (0.0, 1.1 + REST, 0.0), rules=CLASSIC, layout="playground")
    seeker, hider = terms(arenas, command())
    assert seeker["time"] == pytest.approx(-0.005)
    assert hider["survival"] == pytest.approx(0.01)
    assert hider["high_ground"] == pytest.approx(0.1)
    assert seeker["high_ground"] == 0.0
    place(arenas, 1, x=3.0, y=REST + 1.3, on_floor=0)
    assert terms(arenas, command())[1]["high_ground"] == 0.0, "in the air is not standing"


def test_a_jump_near_the_hider_pays_once() -> None:
    arenas = staged((0.0, REST, 0.0), (2.8, REST, 0.0), rules=CLASSIC)
    paid = [terms(arenas, command(first=(0, 0, 1)))[0]["jump_near"] for _ in range(40)]
    assert paid == [0.5] + [0.0] * 39
    place(arenas, 1, x=8.0)
    paid = [terms(arenas, command(first=(0, 0, 1)))[0]["jump_near"] for _ in range(60)]
    assert not any(paid)


def test_a_jump_that_is_held_down_pays_nothing() -> None:
    rules = tick_rules(rules="transfer", rewards="classic")
    arenas = staged((0.0, REST, 0.0), (0.0, REST + 1.0 + 0.001, 0.0), rules=rules)
    for agent in (0, 1):
        place(arenas, agent, immune_ticks=1000)
    paid = sum(terms(arenas, command(first=(0, 0, 1)))[0]["jump_near"] for _ in range(60))
    assert paid == 0.0


def test_the_cures_for_camping_can_be_switched_on() -> None:
    rules = weighted(DEFAULT, wall_penalty=0.2, speed_bonus=0.3)
    arenas = staged((9.0, REST, 0.0), (0.0, REST, 0.0), rules=rules)
    place(arenas, 1, velocity_z=8.0)
    seeker, hider = terms(arenas, command(second=(0, 1, 0)))
    assert (seeker["wall"], hider["wall"]) == (pytest.approx(-0.2), 0.0)
    assert (seeker["speed"], hider["speed"]) == (0.0, pytest.approx(0.3))


@pytest.mark.parametrize("term", ["distance", "tag", "timeout"])
def test_every_term_can_be_switched_off(term: str) -> None:
    off = {
        "distance": {"distance_reward_scale": 0.0},
        "tag": {"win_bonus": 0.0, "tagged_penalty": 0.0},
        "timeout": {"timeout_hider_bonus": 0.0, "timeout_seeker_penalty": 0.0},
    }
    arenas = Arenas(64, rules=weighted(load_rules(), **off[term]), seed=1)
    arenas.reset()
    random = np.random.default_rng(0)
    seen = dict.fromkeys(TERMS, 0.0)
    for _ in range(250):
        results = arenas.step(random.uniform(-1, 1, (64, 2, 3)).astype(np.float32))
        for index, name in enumerate(TERMS):
            seen[name] += float(np.abs(results.terms[:, :, index]).sum())
    assert seen[term] == 0.0
    assert sum(value > 0.0 for value in seen.values()) == 2
