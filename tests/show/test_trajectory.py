"""Logged matches: what is written is what was played, to the bit, in the documented form."""

import re
from pathlib import Path

import numpy as np
import pytest

from estragon.show.trajectory import write_trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from estragon.tag.rules import load_rules
from tests.show.logged_matches import log_matches, records
from tests.tag.staging import with_episode

START_KEYS = [
    "type",
    "format",
    "episode",
    "arena",
    "engine",
    "seed",
    "rules",
    "layout",
    "arena_size_m",
    "agent_size_m",
    "ticks_per_second",
    "decision_ticks",
    "time_limit_sec",
    "eyes",
    "agents",
    "seeker",
    "players",
    "ts",
]
STEP_KEYS = [
    "type",
    "episode",
    "agent",
    "tick",
    "ts",
    "pos",
    "vel",
    "forward",
    "is_it",
    "on_floor",
    "immune",
    "sees",
    "dists",
    "types",
]


def test_a_file_has_the_documented_form(tmp_path: Path) -> None:
    (path,), outcomes = log_matches(tmp_path / "new" / "folder")
    assert re.fullmatch(r"ep_\d{8}-\d{6}_0000_00000\.jsonl", path.name)
    lines = records(path)
    start, steps, end = lines[0], [r for r in lines if r["type"] == "step"], lines[-1]
    assert list(start) == START_KEYS
    assert start["layout"]["boxes"][0] == {"at_m": [-4.5, -4.5], "size_m": [3.0, 1.1, 3.0]}
    assert start["layout"]["name"] == "playground"
    assert start["eyes"] == {"rays": 36, "fan_deg": 120.0, "range_m": 15.0, "height_m": 0.25}
    assert start["players"] == {"seeker": "bot:chaser", "hider": "bot:evader"}
    assert all(list(step) == STEP_KEYS for step in steps)
    assert [step["agent"] for step in steps] == ["Agent1", "Agent2"] * (len(steps) // 2)
    ticks = [step["tick"] for step in steps[::2]]
    last = int(outcomes.ticks[0])
    assert ticks == sorted({*range(0, last, 3), last})
    assert ticks == [step["tick"] for step in steps[1::2]]
    assert all(step["ts"] == step["tick"] / 60 for step in steps)
    assert [line["type"] for line in lines if line["type"] != "step"] == [
        "episode_start",
        "tag",
        "episode_end",
    ]
    assert end == {
        "type": "episode_end",
        "episode": 0,
        "tick": last,
        "ts": last / 60,
        "winner": "Agent1",
        "terminal_reason": "tag",
    }


def test_reading_and_writing_again_gives_the_same_bytes(tmp_path: Path) -> None:
    for rule_set in ("seek", "transfer"):
        (path,), _ = log_matches(tmp_path, rules=load_rules(rules=rule_set), hider="random")
        again = write_trajectory(read_trajectory(path), tmp_path / "again")
        assert again.read_bytes() == path.read_bytes()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (path,), _ = log_matches(tmp_path)
    trajectory = read_trajectory(path)
    written = [write_trajectory(trajectory, tmp_path, "20240131-120000") for _ in range(3)]
    assert [path.name for path in written] == [
        "ep_20240131-120000_0000_00000.jsonl",
        "ep_20240131-120000_0000_00000-2.jsonl",
        "ep_20240131-120000_0000_00000-3.jsonl",
    ]
    assert len({path.read_bytes() for path in written}) == 1
    assert sorted(tmp_path.iterdir()) == sorted([path, *written]), "nothing else is left"


def test_its_rules_are_those_of_the_match(tmp_path: Path) -> None:
    rules = with_episode(load_rules(rules="transfer"), time_limit_sec=1.5, step_tick_interval=5)
    (path,), _ = log_matches(tmp_path, rules=rules)
    trajectory = read_trajectory(path)
    assert trajectory.game_rules() == rules
    assert trajectory.ticks.tolist() == list(range(0, 91, 5))
    np.testing.assert_array_equal(trajectory.seconds, trajectory.ticks / 60.0)


def test_a_number_that_is_not_finite_becomes_null(tmp_path: Path) -> None:
    (path,), _ = log_matches(tmp_path)
    trajectory = read_trajectory(path)
    trajectory.positions[2, 1, 0] = np.nan
    trajectory.velocities[0, 0] = (-0.0, np.inf, 5e-324)
    damaged = write_trajectory(trajectory, tmp_path)
    lines = records(damaged)
    assert lines[1]["vel"] == [0.0, None, 5e-324]
    assert str(lines[1]["vel"][0]) == "0.0"
    assert lines[6]["pos"][0] is None
    with pytest.raises(UserError, match=r"line 2: vel\[1\]: expected 'float', got 'null'"):
        read_trajectory(damaged)
