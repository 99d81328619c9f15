"""Games as they are commonly written play unchanged, with the right ends of episodes."""

from pathlib import Path

import pytest

from tests.godot.addon.peer import playing, staged

TURN, WAIT = 0.5, 1.0


@pytest.fixture(scope="module")
def habits(godot: Path) -> Path:
    return staged("habits")


def test_a_reward_that_decides_the_end_and_methods_without_super(
    habits: Path, tmp_path: Path
) -> None:
    with playing(habits, tmp_path) as peer:
        info = peer.greet("binary1")
        assert info["n_agents"] == 2
        peer.reset()
        rows = [peer.step(TURN, WAIT)[0] for _ in range(5)]
        assert [(row.reward, row.state) for row in rows] == [
            (4, 0),
            (8, 0),
            (100, 5),
            (4, 0),
            (8, 0),
        ]
        assert [row.obs["obs"][0] for row in rows] == [4, 8, 0, 4, 8]
        assert rows[2].last is not None
        assert rows[2].last["obs"] == [12, 0.5]
        assert rows[2].last["camera_2d"] == rows[2].last["half_2d"] == [[[12, 1, 2], [3, 4, 5]]]
        assert rows[1].obs["camera_2d"] == rows[1].obs["half_2d"] == [[[8, 1, 2], [3, 4, 5]]]


def test_an_end_that_a_contact_brings(habits: Path, tmp_path: Path) -> None:
    with playing(habits, tmp_path, "--action_repeat=1") as peer:
        peer.greet("binary1")
        peer.reset()
        rows = [peer.step(TURN, WAIT)[1] for _ in range(60)]
        earned = 0.0
        ends = 0
        for row in rows:
            earned += row.reward
            if not row.state:
                continue
            ends += 1
            assert row.state == 5
            assert row.obs["obs"] == [0, 1]
            assert row.last is not None
            assert 9 <= row.last["obs"][0] <= 10
            assert row.last["obs"][1] == 0  # Godot was reporting contacts
            assert earned == 2 * row.last["obs"][0] + 10
            earned = 0.0
        assert ends >= 2
        assert not [line for line in peer.process.lines() if "ERROR" in line]


def test_pictures_are_hex_for_older_trainers(habits: Path, tmp_path: Path) -> None:
    with playing(habits, tmp_path) as peer:
        peer.greet()
        peer.old_reset()
        answer = peer.old_step([{"turn": [0.5]}, {"wait": 1}])
        assert answer["obs"][0]["camera_2d"] == answer["obs"][0]["half_2d"] == "040102030405"
        assert answer["reward"][0] == 4
