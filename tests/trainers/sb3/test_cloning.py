"""A policy that does what an expert did."""

import json
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO

from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import model_path, train


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
    assert "dqn cannot learn from them; ppo, a2c, maskable_ppo can" in capsys.readouterr().err
    assert train(game(kind="multi"), "--demos", str(demos)) == 2
    assert "an action is 1 numbers, this game takes 2" in capsys.readouterr().err
