"""Demonstrations: what is read, what is refused, and a policy that acts like the expert."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import PPO

from estragon.support.errors import UserError
from estragon.trainers.sb3.imitation import read_demos
from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import model_path, train

SEES = spaces.Dict({"obs": spaces.Box(-np.inf, np.inf, (2,), np.float32)})
CHOOSE: spaces.Discrete[np.int64] = spaces.Discrete(3)
EPISODE = [[{"obs": [0, 1]}, {"obs": [2, 3]}, {"obs": [4, 5]}], [[1], [2]]]


def written(folder: Path, content: Any) -> Path:
    path = folder / "demos.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_steps_of_all_episodes(tmp_path: Path) -> None:
    demos = read_demos(written(tmp_path, [EPISODE, EPISODE]), SEES, CHOOSE)
    assert demos.observations["obs"].tolist() == [[0, 1], [2, 3]] * 2
    assert demos.observations["obs"].dtype == np.float32
    assert demos.actions.tolist() == [[1], [2]] * 2
    assert demos.ends.tolist() == [2, 4]


def test_observations_of_older_games_are_bare_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, [[[[0, 1], [2, 3]], [[0.5, -3.0]]]])
    demos = read_demos(path, SEES, spaces.Box(-1.0, 1.0, (2,), np.float32))
    assert demos.observations["obs"].tolist() == [[0, 1]]
    assert demos.actions.tolist() == [[0.5, -1.0]]


def test_images_are_in_hexadecimal(tmp_path: Path) -> None:
    sees = spaces.Dict({"camera_2d": spaces.Box(0, 255, (1, 2, 3), np.uint8)})
    path = written(tmp_path, [[[{"camera_2d": "0001020304ff"}] * 2, [[1]]]])
    seen = read_demos(path, sees, CHOOSE).observations["camera_2d"]
    assert seen.tolist() == [[[[0, 1, 2], [3, 4, 255]]]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not JSON"),
        ([], "expected a list of episodes"),
        ([[1]], "episode 0: expected observations and actions"),
        ([[EPISODE[0], [[1]]]], "1 actions need 2 observations, got 3"),
        ([[[{"eyes": []}] * 2, [[1]]]], "lacks 'obs'"),
        ([[[{"obs": [1]}] * 2, [[1]]]], "obs: expected 2 numbers"),
        ([[[{"obs": [1, "x"]}] * 2, [[1]]]], "obs: expected lists of numbers"),
        ([[EPISODE[0], [[1], [3]]]], "none of the game's choices"),
        ([[EPISODE[0], [[1, 2], [1, 2]]]], "an action is 2 numbers, this game takes 1"),
        ([[[{"obs": [1, 2]}], []]], "no episode has any actions"),
        ('[[[{"obs": [1, NaN]}, {"obs": [1, 2]}], [[1]]]]', "not finite"),
    ],
)
def test_what_is_no_demonstration(tmp_path: Path, content: Any, complaint: str) -> None:
    with pytest.raises(UserError) as raised:
        read_demos(written(tmp_path, content), SEES, CHOOSE)
    assert complaint in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_demos(tmp_path / "none.json", SEES, CHOOSE)


def demonstrated(path: Path) -> Path:
    """An expert that chooses by the sign of the second number."""
    random = np.random.default_rng(3)
    episodes = []
    for _ in range(20):
        seen = random.normal(size=(21, 5)).round(3).tolist()
        done = [[3 if numbers[1] > 0 else 1] for numbers in seen[:-1]]
        episodes.append([[{"obs": numbers} for numbers in seen], done])
    path.write_text(json.dumps(episodes))
    return path


@pytest.mark.parametrize(
    "words",
    [pytest.param([], marks=pytest.mark.prove), ["--normalize"]],
    ids=["plain", "scaled"],
)
def test_the_expert_is_imitated(
    folder: Path, game: Game, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    demos = demonstrated(folder / "demos.json")
    words = [*words, "--demos", str(demos), "--timesteps", "16", "--learning_rate", "0"]
    assert train(game(kind="discrete"), *words, "--policy_layers", "16", "16") == 0
    assert "demonstrations: 20 episodes, 400 steps" in capsys.readouterr().err
    model = PPO.load(model_path(folder))
    seen = np.zeros((2, 5), np.float32)
    seen[:, 1] = [-1.0, 1.0]
    assert model.predict({"obs": seen}, deterministic=True)[0].tolist() == [1, 3]


def test_what_cannot_learn_from_demonstrations(
    folder: Path, game: Game, capsys: pytest.CaptureFixture[str]
) -> None:
    demos = demonstrated(folder / "demos.json")
    words = ["--demos", str(demos), "--algo", "dqn"]
    assert train(game(kind="discrete"), *words) == 2
    assert "dqn cannot learn from them; use ppo, a2c, maskable_ppo" in capsys.readouterr().err
    assert train(game(kind="multi"), "--demos", str(demos)) == 2
    assert "an action is 1 numbers, this game takes 2" in capsys.readouterr().err
