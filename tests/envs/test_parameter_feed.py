"""Parameters in the environments: which draw is played when, over games, resets and restarts."""

import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.envs import GodotEnv, GodotParallelEnv, GodotSingleEnv
from estragon.envs.parameter_feed import ParameterFeed
from estragon.envs.sb3_env import GodotVecEnv
from estragon.support.errors import UserError
from estragon.support.parameters import Plan
from tests.envs.staging import pids

TAKES = {"takes": 1}
PLAN = {
    "parameters": {"gravity": {"uniform": [1, 9]}, "map": {"choice": ["small", "large"]}},
    "curriculum": [
        {"name": "easy", "until": {"success_rate": 0.9}},
        {"name": "hard", "parameters": {"gravity": {"uniform": [10, 20]}}},
    ],
}


def values(seed: int, number: int, lesson: int = 0) -> dict[str, Any]:
    drawn = Plan.parse(PLAN).draw(lesson, seed, number)
    return drawn | {"gravity": float(f"{drawn['gravity']:.12g}")}


def make(path: Path, **options: Any) -> GodotVecEnv:
    arguments = TAKES | options.pop("arguments", {})
    return GodotVecEnv(path, key="obs", parameters=PLAN, arguments=arguments, **options)


def feed_of(env: GodotVecEnv) -> ParameterFeed:
    assert env.parameter_feed is not None
    return env.parameter_feed


def play(env: GodotVecEnv, steps: int, before: Any = None) -> list[tuple[int, str, dict[str, Any]]]:
    """The values of every episode that starts or ends, in order."""
    found = []
    still = np.zeros((env.num_envs, 2), np.float32)
    for step in range(steps):
        if before:
            before(step)
        *_, dones, infos = env.step(still)
        for slot in np.flatnonzero(dones):
            found.append((int(slot), "ended", infos[slot]["parameters"]))
            if env.reset_infos[slot]:
                found.append((int(slot), "starts", env.reset_infos[slot]["parameters"]))
    return found


def starts(found: list[tuple[int, str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [drawn for _, what, drawn in found if what == "starts"]


def assert_next(drawn: list[dict[str, Any]], seed: int, first: int, lesson: int = 0) -> None:
    """They are the draws from the first on; two agents may start theirs in another order."""
    known = [values(seed, number, lesson) for number in range(first + len(drawn) + 4)]
    numbers = sorted(known.index(each) for each in drawn)
    assert len(set(numbers)) == len(numbers)
    assert numbers[0] == first
    assert numbers[-1] < first + len(numbers) + 3, "each agent has one ahead"


def test_every_episode_plays_the_next_draw(new_game: Path) -> None:
    with closing(make(new_game, seed=7)) as env:
        env.reset()
        first = [info["parameters"] for info in env.reset_infos]
        assert first == [values(7, 0), values(7, 1)]
        found = play(env, 60)
        assert len(starts(found)) > 8
        assert_next(starts(found), 7, 2)
        playing = dict(enumerate(first))
        for slot, what, drawn in found:
            if what == "ended":
                assert drawn == playing[slot], "the end tells what the start told"
            else:
                playing[slot] = drawn


@pytest.mark.parametrize("games", [1, 4])
def test_as_many_games_as_you_like_play_the_same_draws(new_game: Path, games: int) -> None:
    arguments = {"agents": 4 // games}
    with closing(make(new_game, n_parallel=games, arguments=arguments)) as env:
        env.reset()
        drawn = [info["parameters"] for info in env.reset_infos] + starts(play(env, 60))
        assert len(drawn) > 12
        assert_next(drawn, 0, 0)


def test_a_seed_starts_over_and_without_one_nothing_is_skipped(new_game: Path) -> None:
    with closing(make(new_game)) as env:
        for _ in range(2):
            env.seed(3)
            env.reset()
            assert [info["parameters"] for info in env.reset_infos] == [values(3, 0), values(3, 1)]
            play(env, 1)
        env.reset()
        assert [info["parameters"] for info in env.reset_infos] == [values(3, 2), values(3, 3)]
        env.reset()
        assert env.reset_infos[0]["parameters"] == values(3, 2), "nobody played it"


def test_another_lesson_from_the_next_episode_on(new_game: Path) -> None:
    with closing(make(new_game)) as env:
        env.reset()
        play(env, 1)
        feed = feed_of(env)
        feed.set_lesson(1)
        found = play(env, 30)
        assert next(drawn for _, what, drawn in found if what == "ended") == values(0, 0)
        assert_next(starts(found), 0, 2, 1)
        with pytest.raises(UserError, match="lesson 2: expected 0 to 1"):
            feed.set_lesson(2)


def test_a_normal_is_cut_off_at_the_ends_of_the_range(new_game: Path) -> None:
    plan = {"parameters": {"gravity": {"normal": [20, 1]}}}
    with closing(GodotVecEnv(new_game, key="obs", parameters=plan, arguments=TAKES)) as env:
        env.reset()
        assert max(drawn["gravity"] for drawn in starts(play(env, 30))) == 20.0


def test_a_restored_feed_goes_on(new_game: Path) -> None:
    with closing(make(new_game, seed=4)) as env:
        env.reset()
        found = play(env, 30)
        feed = feed_of(env)
        feed.set_lesson(1)
        saved = feed.save()
        easy = [values(4, number) for number in range(40)]
        begun = [0, 1, *(easy.index(each) for each in starts(found))]
    with closing(make(new_game, seed=9)) as env:
        feed = feed_of(env)
        feed.restore(saved)
        env.seed(9)
        env.reset()
        drawn = [info["parameters"] for info in env.reset_infos] + starts(play(env, 30))
        known = [values(4, number, 1) for number in range(40)]
        played = sorted(set(begun) - set(saved["free"]))
        numbers = played + [known.index(each) for each in drawn]
        assert len(set(numbers)) == len(numbers), "nothing is played twice"
        assert set(range(max(numbers) - 3)) <= set(numbers), "nothing is skipped"


def test_a_lost_game_plays_what_was_not_played(new_game: Path) -> None:
    with closing(make(new_game, n_parallel=2)) as env:
        env.reset()
        play(env, 1)
        os.kill(pids(env)[1], signal.SIGKILL)
        found = play(env, 1)
        assert [each for each in found if each[1] == "ended"] == [
            (2, "ended", values(0, 2)),
            (3, "ended", values(0, 3)),
        ]
        drawn = [values(0, 6), values(0, 7)]
        assert [env.reset_infos[slot]["parameters"] for slot in (2, 3)] == drawn
        assert starts(play(env, 30))


def test_agents_that_join_and_leave(new_game: Path) -> None:
    arguments = TAKES | {"leave": 2, "join": 2}
    with closing(GodotParallelEnv(new_game, parameters=PLAN, arguments=arguments)) as env:
        _, infos = env.reset(seed=0)
        assert infos["policy0:0"]["parameters"] == values(0, 0)
        ended: dict[str, Any] = {}
        first: dict[str, Any] = {}
        while env.agents:
            before = set(env.agents)
            still = {name: np.zeros(2, np.float32) for name in env.agents}
            _, _, terminated, truncated, infos = env.step(still)
            first |= {name: infos[name]["parameters"] for name in set(env.agents) - before}
            over = [name for name in infos if terminated[name] or truncated[name]]
            ended |= {name: infos[name]["parameters"] for name in over}
        assert ended["policy0:0"] == values(0, 0)
        assert ended["policy1:1"] == values(0, 1)
        assert ended["policy0:2"] == first["policy0:2"] == values(0, 0), "as the first agent"


def test_gymnasium(new_game: Path) -> None:
    arguments = TAKES | {"agents": 1}
    with closing(GodotEnv(new_game, key="obs", parameters=PLAN, arguments=arguments)) as env:
        _, infos = env.reset(seed=2)
        assert infos["parameters"]["gravity"].tolist() == [values(2, 0)["gravity"]]
        while "final_info" not in infos:
            *_, infos = env.step(np.zeros((1, 2), np.float32))
        assert infos["final_info"]["parameters"]["map"][0] == values(2, 0)["map"]
        assert infos["parameters"]["map"][0] == values(2, 1)["map"]
    with closing(GodotSingleEnv(new_game, key="obs", parameters=PLAN, arguments=arguments)) as one:
        _, info = one.reset(seed=2)
        ended = False
        while not ended:
            assert info.get("parameters", values(2, 0)) == values(2, 0)
            _, _, terminated, truncated, info = one.step(np.zeros(2, np.float32))
            ended = terminated or truncated
        assert info["parameters"] == values(2, 0)
        assert one.reset()[1]["parameters"] == values(2, 1)


def test_what_does_not_fit_is_refused_at_the_start(new_game: Path, old_game: Path) -> None:
    def refused(path: Path, plan: Any, match: str, **arguments: object) -> None:
        with pytest.raises(UserError, match=match):
            GodotVecEnv(path, key="obs", parameters=plan, arguments=arguments)

    wind = {"parameters": {"wind": 1}}
    refused(new_game, wind, "wind: the game has no such parameter; it has gravity, map", takes=1)
    heavy = {"parameters": {"gravity": 21}}
    refused(new_game, heavy, "gravity: expected 0 to 20, got 21", takes=1)
    refused(new_game, wind, "does not take parameters: replace its addon")
    refused(old_game, wind, "does not take parameters: replace its addon")
    refused(new_game, "nowhere.yaml", "cannot read nowhere.yaml")


def test_without_the_option_nothing_is_sent(new_game: Path) -> None:
    with closing(GodotVecEnv(new_game, key="obs", arguments=TAKES)) as env:
        env.reset()
        assert env.parameter_feed is None
        assert env.reset_infos[0].keys() == {"seed"}


DIALS = {"parameters": {"speed": {"uniform": [1, 9]}, "wind": {"normal": [0, 1]}}}


@pytest.mark.parametrize("encoding", ["binary1", "json"])
def test_real_godot(dials: Path, encoding: str) -> None:
    """What the game says of its episodes is what it reads; a killed game goes on with the rest."""
    options: dict[str, Any] = {"encoding": encoding, "arguments": {"agents": 2, "order": "at_once"}}
    with closing(GodotVecEnv(dials, key="obs", parameters=DIALS, seed=6, **options)) as env:
        env.reset()
        playing = [info["parameters"] for info in env.reset_infos]
        plan = Plan.parse(DIALS)
        assert [each["speed"] for each in playing] == [
            float(f"{plan.draw(0, 6, number)['speed']:.12g}") for number in range(2)
        ]
        ends = 0
        for step in range(30):
            if step == 15:
                os.kill(pids(env)[0], signal.SIGKILL)
            seen, _, dones, infos = env.step(np.zeros((2, 1), np.float32))
            for slot in np.flatnonzero(dones).tolist():
                assert infos[slot]["parameters"] == playing[slot]
                playing[slot] = env.reset_infos[slot]["parameters"]
                ends += 1
            speeds = np.array([each["speed"] for each in playing], np.float32)
            np.testing.assert_array_equal(np.asarray(seen)[:, 1], speeds)
        assert env.restarts == 1
        assert ends > 15
        assert feed_of(env).next_number == 2 + ends + 2


def test_a_parameter_may_be_read_without_being_declared(dials: Path) -> None:
    plan = {"parameters": {"unsaid": 4, "speed": 9}}
    with closing(GodotVecEnv(dials, key="obs", parameters=plan, seed=6)) as env:
        env.reset()
        assert env.reset_infos[0]["parameters"] == {"unsaid": 4.0, "speed": 9.0}
        assert [spec.name for spec in feed_of(env).declared][-1] == "unsaid"
    for value, match in (("fast", "speed: expected a number"), (10, "expected 1 to 9, got 10")):
        with pytest.raises(UserError, match=match):
            GodotVecEnv(dials, key="obs", parameters={"parameters": {"speed": value}})
    with pytest.raises(UserError, match="fog: the game has no such parameter; it has map, speed"):
        GodotVecEnv(dials, key="obs", parameters={"parameters": {"fog": 1}})
