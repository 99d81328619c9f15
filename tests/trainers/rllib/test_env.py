"""A game as env runners play it: nobody waits for others, and all is one row of numbers."""

import os
import signal
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.trainers.rllib.env import GameEnv, flat_space, flatten
from tests.envs.staging import pids
from tests.trainers.conftest import Game

pytestmark = pytest.mark.filterwarnings("ignore")
FIRST, SECOND = "policy0:0", "policy1:1"


def test_the_next_episode_begins_at_once(game: Game) -> None:
    """The counter's agents have episodes of 3 and of 4 steps."""
    with closing(GameEnv({"env_path": game(kind="box")})) as env:
        seen, _ = env.reset()
        counts: dict[str, list[float]] = {FIRST: [], SECOND: []}
        for step in range(1, 13):
            seen, rewards, terminated, truncated, _ = env.step(
                {agent: env.get_action_space(agent).sample() for agent in env.agents}
            )
            assert set(rewards) == set(env.agents) == {FIRST, SECOND}
            for agent, found in counts.items():
                found.append(float(seen[agent][1]))
            assert terminated[FIRST] == (step % 3 == 0)
            assert truncated[SECOND] == (step % 4 == 0)
            over = {FIRST} if step % 3 == 0 else set()
            over |= {SECOND} if step % 4 == 0 else set()
            assert set(env.begun) == over
            assert all(first[1] == 0 for first in env.begun.values())
            assert not terminated["__all__"]
            assert not truncated["__all__"]
    assert counts == {FIRST: [1, 2, 3] * 4, SECOND: [1, 2, 3, 4] * 3}


def test_a_lost_game_begins_again_at_once(game: Game) -> None:
    with closing(GameEnv({"env_path": game(kind="box")})) as env:
        env.reset()
        still = {agent: np.zeros(2, np.float32) for agent in env.agents}
        env.step(still)
        os.kill(pids(env)[0], signal.SIGKILL)
        seen, _, terminated, truncated, infos = env.step(still)
        assert truncated[FIRST]
        assert not terminated[FIRST]
        assert "SIGKILL" in infos[FIRST]["game_lost"]
        assert seen[FIRST][1] == 1, "what was seen one step before"
        assert env.begun[FIRST][1] == 0
        assert env.step(still)[1] == {FIRST: 1, SECOND: 101}


def test_one_key_of_several(game: Game) -> None:
    with closing(GameEnv({"env_path": game(kind="image"), "key": "camera_2d"})) as env:
        seen, _ = env.reset()
        assert env.get_observation_space(FIRST).shape == seen[FIRST].shape == (36, 40, 3)
        assert 0.0 <= seen[FIRST].min() < seen[FIRST].max() <= 1.0
        assert seen[FIRST][0, 1, 2] == pytest.approx(12 / 255)


def test_flat_observations() -> None:
    numbers = spaces.Box(-1.0, 1.0, (2, 2), np.float32)
    sees = spaces.Dict([("b", numbers), ("a", spaces.Discrete(3))])
    assert flat_space(sees).shape == (7,)
    found = flatten(sees, {"b": np.array([[0.1, 0.2], [0.3, 0.4]], np.float32), "a": 1})
    assert found.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.0, 1.0, 0.0])
    image = spaces.Box(0, 255, (4, 4, 3), np.uint8)
    with pytest.raises(UserError, match=r"either numbers or one image"):
        flat_space(spaces.Dict([("b", numbers), ("camera_2d", image)]))


def test_files_do_not_get_lost(tmp_path: Path, game: Game) -> None:
    config = {"env_path": game(kind="box"), "log_folder": str(tmp_path / "logs")}
    with closing(GameEnv(config)) as env:
        env.reset()
    assert "new game connected" in (tmp_path / "logs" / "game.log").read_text()
