"""Both rule sets, to the tick: tags, immunity, the end by time, and who wins."""

import numpy as np
import pytest

from estragon.tag.arenas import Arenas
from estragon.tag.rules import GOING_ON, TAGGED, TIMED_OUT
from tests.tag.staging import command, field, place, staged, tick_rules, with_episode

SEEK, TRANSFER = tick_rules(rules="seek"), tick_rules(rules="transfer")
REST = SEEK.agent.size_m / 2 + SEEK.physics.skin_m
REACH = SEEK.episode.tag_reach_m
NEAR = SEEK.agent.size_m + REACH / 2
"""Between two who can tag each other."""


def test_a_tag_is_a_gap_no_wider_than_the_reach() -> None:
    for gap, expected in ((REACH, TAGGED), (REACH + 1e-6, GOING_ON)):
        arenas = staged((0.0, REST, 0.0), (1.0 + gap, REST, 0.0), rules=SEEK)
        assert arenas.step(command(), restart=False).ends[0] == expected


def test_the_gap_is_measured_across_corners_and_heights() -> None:
    side = REACH / np.sqrt(2.0)
    for dx, dy, expected in (
        (1.0 + side * 0.999, 1.0 + side * 0.999, TAGGED),
        (1.0 + side * 1.01, 1.0 + side * 1.01, GOING_ON),
    ):
        arenas = staged((0.0, REST, 0.0), (dx, REST, dy), rules=SEEK)
        assert arenas.step(command(), restart=False).ends[0] == expected
    arenas = staged((0.0, REST, 0.0), (0.0, REST + 1.0 + REACH + 0.01, 0.0), rules=SEEK)
    place(arenas, 1, on_floor=0)
    assert arenas.step(command(), restart=False).ends[0] == GOING_ON
    place(arenas, 1, velocity_y=-8.0)
    assert arenas.step(command(), restart=False).ends[0] == TAGGED, "it fell into reach"


def test_seek_ends_at_the_tag_and_the_seeker_wins() -> None:
    arenas = staged((0.0, REST, 0.0), (3.0, REST, 0.0), rules=SEEK)
    for _tick in range(60):
        results = arenas.step(command(first=(1, 0, 0)), restart=False)
        if results.ends[0]:
            break
    assert results.ends[0] == TAGGED
    assert results.winners[0] == 0
    assert results.ticks[0] == arenas.arenas["tick"][0]


def test_a_decision_stops_at_the_tick_of_the_tag() -> None:
    long = with_episode(SEEK, step_tick_interval=30)
    arenas = staged((0.0, REST, 0.0), (NEAR, REST, 0.0), rules=long)
    results = arenas.step(command(), restart=False)
    assert (results.ends[0], results.ticks[0]) == (TAGGED, 1)


def test_the_hider_wins_at_exactly_the_time_limit() -> None:
    arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=SEEK)
    for tick in range(1, SEEK.limit_ticks + 1):
        results = arenas.step(command(), restart=False)
        assert results.ends[0] == (TIMED_OUT if tick == SEEK.limit_ticks else GOING_ON)
    assert results.winners[0] == 1


def test_a_tag_in_the_last_tick_counts() -> None:
    arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=SEEK)
    arenas.arenas["tick"] = SEEK.limit_ticks - 1
    place(arenas, 1, x=-8.0, z=NEAR - 9.0)
    assert arenas.step(command(), restart=False).ends[0] == TAGGED


def test_transfer_hands_over_the_role_and_gives_immunity_to_the_tick() -> None:
    arenas = staged((0.0, REST, 0.0), (NEAR, REST, 0.0), rules=TRANSFER)
    swaps = []
    for tick in range(1, 300):
        before = arenas.arenas["seeker"][0]
        results = arenas.step(command(), restart=False)
        assert results.ends[0] == GOING_ON
        if arenas.arenas["seeker"][0] != before:
            swaps.append(tick)
    immunity = TRANSFER.immunity_ticks
    assert immunity == 90
    assert swaps == [1, 1 + immunity, 1 + 2 * immunity, 1 + 3 * immunity]


def test_immunity_shows_in_the_observation_and_ends() -> None:
    arenas = staged((0.0, REST, 0.0), (NEAR, REST, 0.0), rules=TRANSFER)
    immune = TRANSFER.field("immune").start
    arenas.step(command(), restart=False)
    place(arenas, 1, x=8.0)
    for tick in range(1, 95):
        seen = arenas.step(command(), restart=False).observations[0]
        assert (seen[:, immune] == (1.0 if tick < 90 else 0.0)).all(), tick


def test_roles_in_the_observation_follow_the_tag() -> None:
    arenas = staged((0.0, REST, 0.0), (NEAR, REST, 0.0), rules=TRANSFER)
    is_seeker = TRANSFER.field("is_seeker").start
    seen = arenas.step(command(), restart=False).observations[0]
    assert seen[:, is_seeker].tolist() == [0.0, 1.0]
    assert arenas.is_seeker[0].tolist() == [False, True]


@pytest.mark.parametrize(("first_ticks", "winner"), [(299, 0), (300, -1), (301, 1)])
def test_transfer_is_won_by_who_was_it_for_less_time(first_ticks: int, winner: int) -> None:
    arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=TRANSFER)
    arenas.arenas["tick"] = 599
    arenas.arenas["seeker"] = 1
    place(arenas, 0, it_ticks=first_ticks)
    place(arenas, 1, it_ticks=599 - first_ticks)
    results = arenas.step(command(), restart=False)
    assert results.ends[0] == TIMED_OUT
    assert field(arenas, 1, "it_ticks") == 600 - first_ticks
    assert results.winners[0] == winner


def test_the_second_agent_can_begin_as_seeker() -> None:
    arenas = Arenas(4, rules=SEEK, first_seeker=1)
    seen = arenas.reset()
    assert (seen[:, 1, SEEK.field("is_seeker").start] == 1.0).all()


def test_episodes_restart_by_themselves_and_keep_the_last_sight() -> None:
    arenas = Arenas(256, rules=SEEK, seed=3)
    arenas.reset()
    arenas.agents["x"][:, 1] = arenas.agents["x"][:, 0] + NEAR
    arenas.agents["z"][:, 1] = arenas.agents["z"][:, 0]
    inside = np.abs(arenas.agents["x"][:, 1]) < 9.0
    results = arenas.step(np.zeros((256, 2, 3), dtype=np.float32))
    assert (results.ends[inside] == TAGGED).all()
    assert (arenas.arenas["episode"][inside] == 1).all()
    position = slice(0, 3)
    last, fresh = results.final_observations[inside], results.observations[inside]
    apart = np.abs(last[:, 0, position] - last[:, 1, position]) * 10.0
    assert (apart[:, 0] < 1.3).all()
    spawned = np.linalg.norm((fresh[:, 0, position] - fresh[:, 1, position]) * 10.0, axis=1)
    assert (spawned >= SEEK.episode.spawn_separation_m - 1e-5).all()
    assert (fresh[:, :, SEEK.field("time_left").start] == 1.0).all()
