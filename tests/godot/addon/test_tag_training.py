"""The training scene of tag: the rules' own observations, actions, rewards and ends."""

import math
from pathlib import Path
from typing import Any

from estragon.godot.project import import_project
from estragon.support import paths
from tests.godot.addon.peer import Peer, playing

SCENE = "res://tag/train/TagTraining.tscn"
TERMINATED, HAS_LAST = 1, 4


def play(peer: Peer, decisions: int, arenas: int) -> list[list[Any]]:
    """Everyone runs in a circle; everything that is told of it."""
    told: list[list[Any]] = []
    for number in range(decisions):
        angle = 0.05 * number
        rows = peer.step(*[math.cos(angle), math.sin(angle), 0.0] * (2 * arenas))
        told.append([(row.reward, row.state, row.obs["obs"], row.last) for row in rows])
    return told


def test_matches_are_the_same_for_the_same_seed_and_end_as_the_rules_say(tmp_path: Path) -> None:
    project = import_project(paths.godot_project())
    with playing(project, tmp_path, "--arenas=2", "--env_seed=1", scene=SCENE) as peer:
        info = peer.greet("binary1")
        assert info["agent_policy_names"] == ["seeker", "hider"] * 2
        assert info["observation_space"][0] == {"obs": {"size": [126], "space": "box"}}
        first = [row.obs["obs"] for row in peer.reset(9)]
        assert first[0] != first[2]
        played = play(peer, 210, 2)
        assert [row.obs["obs"] for row in peer.reset(9)] == first
        assert play(peer, 210, 2) == played
        ends = [(n, i) for n, rows in enumerate(played) for i, row in enumerate(rows) if row[1]]
        assert {0, 1, 2, 3} <= {i for _, i in ends}
        for number, i in ends:
            reward, state, seen, last = played[number][i]
            assert state == TERMINATED | HAS_LAST
            assert last != {"obs": seen}
            other = played[number][i ^ 1]
            assert reward + other[0] == 0.0  # the default rewards are zero-sum
            assert abs(reward) > 5.0
