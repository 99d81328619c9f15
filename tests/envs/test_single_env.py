"""A game with one agent as a plain gymnasium.Env, by Gymnasium's and SB3's own checks."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

from estragon.envs import GodotSingleEnv
from estragon.support.errors import UserError
from tests.envs.peers.counter import seed_of

ONE = {"agents": 1}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["box", "discrete", "multi", "mixed", "image"])
def test_it_passes_the_checkers_of_gymnasium_and_sb3(new_game: Path, kind: str) -> None:
    with closing(GodotSingleEnv(new_game, arguments=ONE | {"kind": kind})) as env:
        check_env(env, skip_render_check=True)
        if kind != "mixed":  # SB3 has no dict actions
            check_env_of_sb3(env)


def test_reset_after_an_end_shows_the_episode_that_has_begun(new_game: Path) -> None:
    with closing(GodotSingleEnv(new_game, key="obs", arguments=ONE)) as env:
        _, info = env.reset(seed=4)
        assert info == {"seed": seed_of(4, 0, 0)}
        still = np.zeros(2, np.float32)
        for count in (1, 2, 3):
            seen, reward, terminated, truncated, info = env.step(still)
            assert (reward, terminated, truncated) == (count, count == 3, False)
            assert seen[:3].tolist() == [0, count, 0]
        assert info == {"ended_by": "end"}
        seen, info = env.reset()
        assert seen[:3].tolist() == [0, 0, 1]
        assert info == {"seed": seed_of(4, 0, 1)}
        env.step(still)
        seen, _ = env.reset()
        assert seen[:3].tolist() == [0, 0, 2]


def test_several_agents_are_another_environments_business(new_game: Path) -> None:
    with pytest.raises(UserError, match="GodotEnv"):
        GodotSingleEnv(new_game)
