"""Demonstrations: what is read, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.trainers.demos import read_demos

SEES = spaces.Dict({"obs": spaces.Box(-np.inf, np.inf, (2,), np.float32)})
CHOOSE: spaces.Discrete[np.int64] = spaces.Discrete(3)
EPISODE = [[{"obs": [0, 1]}, {"obs": [2, 3]}, {"obs": [4, 5]}], [[1], [2]]]


def written(folder: Path, content: Any) -> Path:
    path = folder / "demos.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_steps_of_all_episodes(tmp_path: Path) -> None:
    demos = read_demos(written(tmp_path, [EPISODE, EPISODE]), SEES, CHOOSE)
    assert demos.seen["obs"].tolist() == [[0, 1], [2, 3]] * 2
    assert demos.seen["obs"].dtype == np.float32
    assert demos.done.tolist() == [[1], [2]] * 2
    assert demos.ends.tolist() == [2, 4]


def test_observations_of_older_games_are_bare_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, [[[[0, 1], [2, 3]], [[0.5, -3.0]]]])
    demos = read_demos(path, SEES, spaces.Box(-1.0, 1.0, (2,), np.float32))
    assert demos.seen["obs"].tolist() == [[0, 1]]
    assert demos.done.tolist() == [[0.5, -1.0]]


def test_images_are_in_hexadecimal(tmp_path: Path) -> None:
    sees = spaces.Dict({"camera_2d": spaces.Box(0, 255, (1, 2, 3), np.uint8)})
    path = written(tmp_path, [[[{"camera_2d": "0001020304ff"}] * 2, [[1]]]])
    seen = read_demos(path, sees, CHOOSE).seen["camera_2d"]
    assert seen.tolist() == [[[[0, 1, 2], [3, 4, 255]]]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not JSON"),
        ([], "expected a list of episodes"),
        ([[1]], "episode 0: expected observations and actions"),
        ([[EPISODE[0], [[1]]]], "1 actions need 2 observations, there are 3"),
        ([[[{"eyes": []}] * 2, [[1]]]], "lacks 'obs'"),
        ([[[{"obs": [1]}] * 2, [[1]]]], "has not the 2 numbers"),
        ([[[{"obs": [1, "x"]}] * 2, [[1]]]], "is not made of numbers"),
        ([[EPISODE[0], [[1], [3]]]], "none of the game's choices"),
        ([[EPISODE[0], [[1, 2], [1, 2]]]], "an action is 2 numbers, this game takes 1"),
        ([[[{"obs": [1, 2]}], []]], "nobody did anything"),
        ('[[[{"obs": [1, NaN]}, {"obs": [1, 2]}], [[1]]]]', "no number"),
    ],
)
def test_what_is_no_demonstration(tmp_path: Path, content: Any, complaint: str) -> None:
    with pytest.raises(UserError) as raised:
        read_demos(written(tmp_path, content), SEES, CHOOSE)
    assert complaint in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_demos(tmp_path / "none.json", SEES, CHOOSE)
