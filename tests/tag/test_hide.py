"""Rule set `hide`: closed eyes during the head start, what sight pays, and layouts to hide in."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from estragon.support import paths
from estragon.tag.arenas import Arenas
from estragon.tag.layout import check_layout, load_layout
from estragon.tag.rules import GOING_ON, HIDER, OBS, SEEKER, TAGGED, TERM, TIMED_OUT, load_rules
from tests.tag.staging import command, field, place, staged, tick_rules

HIDE = tick_rules(rules="hide")
REST = HIDE.agent.size_m / 2 + HIDE.physics.skin_m
HEAD_START = HIDE.head_start_ticks
RUN = (1, 0, 1)
LAYOUTS = ("blocks", "house", "rooms")


def facing_arenas(tick: int) -> Arenas:
    """The seeker looks along x at the hider, 4 m away."""
    arenas = staged((0.0, REST, 0.0), (4.0, REST, 0.0), rules=HIDE)
    place(arenas, SEEKER, forward_x=1.0, forward_z=0.0)
    arenas.arenas["tick"] = tick
    arenas._observe()
    return arenas


def test_the_seeker_stands_still_and_sees_nothing_until_the_head_start_is_over() -> None:
    arenas = facing_arenas(0)
    rays = HIDE.field("rays")
    for tick in range(HEAD_START):
        assert arenas.observations[0, SEEKER, OBS.opponent_visible] == 0.0
        assert (arenas.observations[0, SEEKER, rays].reshape(-1, 3) == [1.0, 0.0, 0.0]).all()
        arenas.step(command(first=RUN, second=(0, -1, 0)), restart=False)
        assert (field(arenas, SEEKER, "x"), field(arenas, SEEKER, "y")) == (0.0, REST), tick
    assert field(arenas, HIDER, "z") < -5.0
    assert field(arenas, SEEKER, "seen_tick") == -1
    assert (arenas.observations[0, SEEKER, rays].reshape(-1, 3)[:, 1] == 1.0).any()
    arenas.step(command(first=RUN), restart=False)
    assert field(arenas, SEEKER, "x") > 0.0
    assert field(arenas, SEEKER, "velocity_y") > 0.0
    assert facing_arenas(HEAD_START).observations[0, SEEKER, OBS.opponent_visible] == 1.0


def test_nobody_is_tagged_in_the_head_start_and_the_time_limit_follows_it() -> None:
    arenas = Arenas(1, rules=HIDE, layout="empty")
    assert arenas.reset()[0, HIDER, OBS.immune] == 1.0
    place(arenas, HIDER, x=field(arenas, SEEKER, "x"), z=field(arenas, SEEKER, "z") - 1.05)
    ends = [arenas.step(command(), restart=False).ends[0] for _ in range(HEAD_START)]
    assert ends == [GOING_ON] * (HEAD_START - 1) + [TAGGED]
    arenas = staged((-9.0, REST, -9.0), (9.0, REST, 9.0), rules=HIDE)
    left = [arenas.observations[0, SEEKER, OBS.time_left]]
    for _ in range(HEAD_START + 600):
        results = arenas.step(command(), restart=False)
        left.append(results.observations[0, SEEKER, OBS.time_left])
    assert (results.ends[0], HIDE.limit_ticks) == (TIMED_OUT, HEAD_START + 600)
    assert (left[0], left[-1]) == (1.0, 0.0)
    assert (np.diff(left) < 0.0).all()


def test_the_hider_hears_a_seeker_behind_a_wall() -> None:
    """Within earshot it knows the place, without seeing; the seeker hears nothing."""
    reach = HIDE.rule_set.hearing_m
    for distance, expected in ((reach - 0.01, True), (reach + 0.01, False)):
        arenas = staged((-9.0, REST, 0.0), (distance - 9.0, REST, 0.0), rules=HIDE)
        for agent in (SEEKER, HIDER):
            place(arenas, agent, forward_x=0.0, forward_z=1.0, seen_tick=-1)
        arenas._observe()
        seen = arenas.observations[0]
        assert (seen[:, OBS.opponent_visible] == 0.0).all()
        assert seen[SEEKER, OBS.last_seen_age] == 1.0
        assert seen[HIDER, OBS.last_seen_age] == (0.0 if expected else 1.0)
        x = -distance / HIDE.observation.position_scale_m if expected else 0.0
        assert seen[HIDER, OBS.last_seen_relative] == pytest.approx(x)


def test_sight_pays_the_one_what_it_costs_the_other() -> None:
    bonus = HIDE.reward_weights.sight_bonus
    assert bonus > 0.0
    for tick, turned, expected in (
        (HEAD_START, 1.0, bonus),
        (HEAD_START, -1.0, -bonus),
        (HEAD_START - 1, 1.0, 0.0),
    ):
        arenas = facing_arenas(tick)
        place(arenas, SEEKER, forward_x=turned, seen_tick=-1)
        arenas._observe()
        paid = arenas.step(command(), restart=False).terms[0, :, TERM.sight]
        assert paid.tolist() == pytest.approx([expected, -expected]), (tick, turned)


def test_a_rule_set_brings_its_rewards_along() -> None:
    assert load_rules(rules="hide").rewards == "hide"
    assert load_rules(rules="hide", rewards="classic").rewards == "classic"
    assert load_rules(rules="seek").rewards == load_rules().rewards == "default"


def test_rules_from_before_hide_still_load(tmp_path: Path) -> None:
    data = json.loads(paths.rules_file().read_text())
    del data["rule_sets"]["hide"], data["reward_profiles"]["hide"], data["reward_terms"]["sight"]
    for rule_set in data["rule_sets"].values():
        del rule_set["head_start_sec"], rule_set["hearing_m"]
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(data))
    old = load_rules(path)
    assert old.reward_weights == load_rules().reward_weights
    assert old.digest == load_rules().digest
    plain = msgspec.to_builtins(old)
    for profile in plain["reward_profiles"].values():
        del profile["sight_bonus"]
    assert msgspec.convert(plain, type(old)).reward_weights == old.reward_weights


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_seeker_can_go_everywhere_but_over_walls(name: str) -> None:
    """A flood fill of the floor: an agent 2.5 times as wide gets through every doorway."""
    layout = load_layout(name, HIDE)
    wide = msgspec.structs.replace(HIDE.agent, size_m=2.5 * HIDE.agent.size_m)
    check_layout(layout, msgspec.structs.replace(HIDE, agent=wide))
    assert all(box.size_m[1] > HIDE.jump_height_m + 1.0 for box in layout.boxes)
