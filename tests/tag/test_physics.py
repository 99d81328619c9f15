"""Movement matches the rules: gravity, jump, speed, acceleration, turning, contact."""

import math

import numpy as np
import pytest

from estragon.tag.rules import load_rules
from tests.tag.staging import command, field, place, staged, tick_rules

RULES = tick_rules(rules="transfer")
REST = RULES.agent.size_m / 2 + RULES.physics.skin_m
TICK = 1 / RULES.physics.ticks_per_second
FAR = (-9.0, REST, -9.0)


def test_a_fall_follows_gravity() -> None:
    arenas = staged((5.0, 9.0, 5.0), FAR, rules=RULES)
    place(arenas, 0, on_floor=0)
    for tick in range(1, 61):
        arenas.step(command())
        time = tick * TICK
        expected = 9.0 - RULES.physics.gravity_mps2 * time * time / 2
        assert field(arenas, 0, "y") == pytest.approx(expected, abs=1e-9)
        assert field(arenas, 0, "velocity_y") == pytest.approx(-9.8 * time, abs=1e-9)


def test_a_jump_rises_as_high_as_the_rules_say_and_lands() -> None:
    arenas = staged((5.0, REST, 5.0), FAR, rules=RULES)
    heights = []
    for tick in range(90):
        arenas.step(command(first=(0, 0, 1 if tick == 0 else 0)))
        heights.append(field(arenas, 0, "y") - REST)
    assert max(heights) == pytest.approx(RULES.jump_height_m, abs=0.0004)
    assert RULES.jump_height_m == pytest.approx(1.543, abs=0.001)
    assert heights[-1] == 0.0
    assert field(arenas, 0, "on_floor") == 1


def test_nobody_jumps_from_the_air() -> None:
    arenas = staged((5.0, REST, 5.0), FAR, rules=RULES)
    highest = max(
        (arenas.step(command(first=(0, 0, 1))), field(arenas, 0, "y"))[1] for _ in range(60)
    )
    assert highest - REST <= RULES.jump_height_m


def test_speed_and_acceleration_match_the_rules() -> None:
    arenas = staged((-9.0, REST, 0.0), (9.0, REST, 9.0), rules=RULES)
    for tick in range(1, 61):
        arenas.step(command(first=(1, 0, 0)))
        expected = min(RULES.agent.speed_mps, RULES.agent.acceleration_mps2 * tick * TICK)
        assert field(arenas, 0, "velocity_x") == pytest.approx(expected, abs=1e-9)


def test_a_diagonal_is_no_faster() -> None:
    arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=RULES)
    for _ in range(40):
        arenas.step(command(first=(1, 1, 0)))
    speed = math.hypot(field(arenas, 0, "velocity_x"), field(arenas, 0, "velocity_z"))
    assert speed == pytest.approx(RULES.agent.speed_mps, abs=1e-6)


def test_facing_turns_at_a_limited_rate_and_stays_when_idle() -> None:
    arenas = staged((0.0, REST, 0.0), FAR, rules=RULES)
    most = math.radians(RULES.agent.turn_rate_deg_per_sec) * TICK
    before = (0.0, 1.0)
    for tick in range(30):
        arenas.step(command(first=(0, -1, 0) if tick < 20 else (0, 0, 0)))
        now = (field(arenas, 0, "forward_x"), field(arenas, 0, "forward_z"))
        assert math.hypot(*now) == pytest.approx(1.0, abs=1e-12)
        turned = math.acos(min(1.0, before[0] * now[0] + before[1] * now[1]))
        assert turned <= most + 1e-6
        before = now
    assert before == pytest.approx((0.0, -1.0))
    quarter = math.ceil(math.pi / most)
    assert quarter <= 20, "half a turn must have fitted into the twenty ticks"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
def test_wild_actions_do_no_harm(bad: float) -> None:
    arenas = staged((0.0, REST, 0.0), FAR, rules=RULES)
    for _ in range(100):
        arenas.step(command(first=(bad, bad, bad), second=(bad, 0, bad)))
    for name in ("x", "y", "z", "velocity_x", "velocity_y", "velocity_z"):
        assert np.isfinite(field(arenas, 0, name))
        assert abs(field(arenas, 0, name)) <= 10.0


@pytest.mark.parametrize("axis", ["x", "z"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_walls_stop_at_the_skin_and_take_the_speed(axis: str, sign: float) -> None:
    arenas = staged((0.0, REST, 0.0), FAR, rules=RULES)
    push = (sign, 0, 0) if axis == "x" else (0, sign, 0)
    for _ in range(120):
        arenas.step(command(first=push))
    stop = sign * (RULES.arena.width_m / 2 - RULES.agent.size_m / 2 - RULES.physics.skin_m)
    assert field(arenas, 0, axis) == stop
    assert field(arenas, 0, f"velocity_{axis}") == 0.0


def test_nothing_tunnels_at_any_speed() -> None:
    arenas = staged((-9.0, REST, 0.0), FAR, rules=RULES, layout="central_cross")
    place(arenas, 0, velocity_x=5000.0)
    arenas.step(command(first=(1, 0, 0)))
    assert field(arenas, 0, "x") == pytest.approx(-5.0 - 0.5 - RULES.physics.skin_m)


def test_a_low_box_can_be_climbed_and_a_tall_one_cannot() -> None:
    for start, reached in (((-4.5, REST, -7.5), True), ((-5.0, REST, 0.5), False)):
        arenas = staged(start, (9.0, REST, 9.0), rules=RULES, layout="playground")
        for _ in range(90):
            arenas.step(command(first=(0, 0.3, 0)))
        assert field(arenas, 0, "velocity_z") == 0.0, "the box is in the way"
        for tick in range(75):
            arenas.step(command(first=(0, 0.3, 1 if tick == 0 else 0)))
        assert field(arenas, 0, "on_floor") == 1
        assert (field(arenas, 0, "y") == pytest.approx(1.1 + REST)) == reached


def test_a_head_is_not_floor() -> None:
    arenas = staged((0.0, REST, 0.0), (0.0, REST + 1.5, 0.0), rules=RULES)
    place(arenas, 1, on_floor=0)
    place(arenas, 0, immune_ticks=10_000)
    place(arenas, 1, immune_ticks=10_000)
    for _ in range(60):
        arenas.step(command(second=(0, 0, 1)))
    assert field(arenas, 1, "on_floor") == 0
    assert field(arenas, 1, "y") == pytest.approx(REST + 1.0 + RULES.physics.skin_m, abs=1e-9)


def test_agents_that_run_into_each_other_stop() -> None:
    arenas = staged((-3.0, REST, 0.0), (3.0, REST, 0.0), rules=RULES)
    for agent in (0, 1):
        place(arenas, agent, immune_ticks=10_000)
    for _ in range(90):
        arenas.step(command(first=(1, 0, 0), second=(-1, 0, 0)))
    gap = field(arenas, 1, "x") - field(arenas, 0, "x") - RULES.agent.size_m
    assert 0.0 < gap <= RULES.physics.skin_m + 1e-12


def test_the_default_game_is_the_documented_one() -> None:
    rules = load_rules()
    assert (rules.agent.speed_mps, rules.agent.acceleration_mps2) == (8.0, 20.0)
    assert (rules.agent.jump_speed_mps, rules.physics.gravity_mps2) == (5.5, 9.8)
    assert (rules.eyes.rays, rules.eyes.cone_deg, rules.eyes.range_m) == (36, 120.0, 15.0)
    assert (rules.limit_ticks, rules.episode.step_tick_interval) == (600, 3)
