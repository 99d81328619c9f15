"""`GodotEnv` and `GodotSingleEnv` on games in which every number is known in advance."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.env_checker import check_env as check_env_of_sb3

from estragon.envs.gymnasium_env import GodotEnv, GodotSingleEnv, add_columns
from estragon.envs.spaces import ActionCodec, read_spaces
from estragon.support.errors import UserError
from tests.envs.peers.counter import ACTIONS, Agent, action_space, seed_of
from tests.envs.staging import Expected, flat

SEED = 7
ONE = {"agents": 1}


@pytest.fixture
def make_game(new_game: Path, old_game: Path) -> Iterator[Any]:
    """Makes environments: of a new game, of an old one, and of one in the oldest form."""
    opened: list[GodotEnv] = []

    def make(form: str, **options: Any) -> GodotEnv:
        arguments = options.pop("arguments", {})
        if form == "old single":
            arguments = arguments | {"form": "single"}
        path = new_game if form == "new" else old_game
        opened.append(GodotEnv(path, seed=SEED, arguments=arguments, **options))
        return opened[-1]

    yield make
    for env in opened:
        env.close()


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        *((form, kind) for form in ("new", "old") for kind in ("box", "multi", "mixed", "image")),
        ("old single", "mixed"),
    ],
)
def test_every_number_is_as_it_must_be(make_game: Any, form: str, kind: str) -> None:
    old = form != "new"
    env = make_game(form, n_parallel=2, arguments={"agents": 3, "kind": kind})
    order = tuple(ACTIONS[kind])
    expected = [Expected(i % 3, SEED + i // 3, old=old) for i in range(6)]
    assert env.num_envs == 6
    assert env.encoding == ("json" if old else "binary1")
    observations, infos = env.reset()
    assert observations["obs"].tolist() == [each.sees() for each in expected]
    if not old:
        assert infos["seed"].tolist() == [each.agent.episode_seed for each in expected]
    env.action_space.seed(3)
    for _ in range(14):
        actions = env.action_space.sample()
        assert env.action_space.contains(actions)
        by_agent = (
            [{key: actions[key][i] for key in order} for i in range(6)]
            if isinstance(actions, dict)
            else actions
        )
        right = [each.step(flat(by_agent[i], order)) for i, each in enumerate(expected)]
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert env.observation_space.contains(observations)
        assert rewards.tolist() == [each["reward"] for each in right]
        assert terminated.tolist() == [each["terminated"] for each in right]
        assert truncated.tolist() == [each["truncated"] for each in right]
        assert np.allclose(observations["obs"], [each["next"] for each in right], atol=1e-5)
        ended = [each["last"] is not None for each in right]
        assert infos.get("_final_obs", np.zeros(6, bool)).tolist() == ended
        for seat, each in enumerate(right):
            if each["last"] is not None:
                assert np.allclose(infos["final_obs"][seat]["obs"], each["last"], atol=1e-5)
                if old:
                    assert infos["final_info"]["final_obs_missing"][seat]
                else:
                    assert infos["seed"][seat] == each["seed"]
                    how = "end" if each["terminated"] else "time"
                    assert infos["final_info"]["ended_by"][seat] == how
        if kind == "image":
            near = [each.agent.near() for each in expected]
            pictures = [each.agent.picture() for each in expected]
            assert observations["near"].tolist() == near
            assert observations["camera_2d"].shape == (6, 36, 40, 3)
            assert [picture.tobytes() for picture in observations["camera_2d"]] == pictures


def test_the_first_steps_by_hand(new_game: Path) -> None:
    with closing(GodotEnv(new_game, key="obs", arguments={"kind": "discrete"})) as env:
        observations, _ = env.reset(seed=1)
        seeds = [seed_of(1, 0, 0) % 1009, seed_of(1, 1, 0) % 1009]
        assert observations.tolist() == [[0, 0, 0, seeds[0], 0], [1, 0, 0, seeds[1], 0]]
        for count in (1, 2):
            observations, rewards, terminated, truncated, infos = env.step(np.array([1, 2]))
            assert rewards.tolist() == [count, 100 + count]
            assert observations[:, 1].tolist() == [count, count]
            assert not terminated.any()
            assert not truncated.any()
            assert infos == {}
        observations, rewards, terminated, truncated, infos = env.step(np.array([3, 0]))
        assert rewards.tolist() == [3, 103]
        assert terminated.tolist() == [True, False]
        assert not truncated.any()
        assert infos["final_obs"][0].tolist() == [0, 3, 0, seeds[0], 3]
        assert observations[0].tolist() == [0, 0, 1, seed_of(1, 0, 1) % 1009, 0]
        _, rewards, terminated, truncated, infos = env.step(np.array([0, 1]))
        assert truncated.tolist() == [False, True]
        assert not terminated.any()
        assert infos["final_obs"][1].tolist() == [1, 4, 0, seeds[1], 1]


def test_spaces(new_game: Path) -> None:
    def single(kind: str, **options: Any) -> tuple[Any, Any]:
        with closing(GodotEnv(new_game, arguments={"kind": kind}, **options)) as env:
            assert env.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
            return env.single_observation_space, env.single_action_space

    box = spaces.Box(-np.inf, np.inf, (5,), np.float32)
    assert single("box") == (spaces.Dict({"obs": box}), spaces.Box(-1, 1, (2,), np.float32))
    assert single("discrete", key="obs") == (box, spaces.Discrete(4))
    assert single("multi")[1] == spaces.MultiDiscrete([3, 2])
    mixed = single("mixed")[1]
    assert list(mixed) == ["turn", "move", "jump"]
    assert mixed["turn"] == spaces.Discrete(3)
    assert mixed["move"] == spaces.Box(-1, 1, (2,), np.float32)
    seen = single("image")[0]
    assert list(seen) == ["obs", "near", "camera_2d"]
    assert seen["near"] == spaces.Discrete(6)
    assert seen["camera_2d"] == spaces.Box(0, 255, (36, 40, 3), np.uint8)


def test_a_seed_begins_its_first_episodes_again(new_game: Path) -> None:
    with closing(GodotEnv(new_game, key="obs", n_parallel=2)) as env:
        first, _ = env.reset(seed=11)
        for _ in range(5):
            env.step(np.zeros((4, 2), np.float32))
        following, _ = env.reset()
        again, infos = env.reset(seed=11)
        assert np.array_equal(first, again)
        assert not np.array_equal(first, following)
        assert infos["seed"][2] == seed_of(12, 0, 0)


def test_what_was_returned_is_not_written_to_again(new_game: Path) -> None:
    with closing(GodotEnv(new_game, key="obs")) as env:
        kept = [env.reset()[0]]
        kept += [env.step(np.zeros((2, 2), np.float32))[0] for _ in range(3)]
        assert [seen[1, 1] for seen in kept] == [0, 1, 2, 3]


def test_infos_are_those_of_gymnasium() -> None:
    rows: list[dict[str, Any]] = [
        {"won": place == 1, "score": place, "speed": 0.5 * place, "room": f"room {place}"}
        for place in range(4)
    ]
    ours: dict[str, Any] = {}
    assert add_columns(ours, rows, np.array([2]))
    theirs: dict[str, Any] = {}
    env: VectorEnv[Any, Any, Any] = VectorEnv()
    env.num_envs = 4
    for place in (0, 1, 3):
        env._add_info(theirs, rows[place], place)
    assert list(ours) == list(theirs)
    for name, column in theirs.items():
        assert ours[name].dtype == column.dtype
        assert ours[name].tolist() == column.tolist()
    assert not add_columns({}, [{"a": 1}, {"b": 1}], np.zeros(0, np.int64))
    assert not add_columns({}, [{"a": [1]}, {"a": [2]}], np.zeros(0, np.int64))


def test_masks(new_game: Path) -> None:
    with closing(GodotEnv(new_game, arguments={"kind": "masked"})) as env:
        _, infos = env.reset()
        agents = [Agent(0, 0), Agent(1, 0)]
        assert infos["action_mask"].tolist() == [agent.allowed() for agent in agents]
        _, _, _, _, infos = env.step(np.array([1, 1]))
        for agent in agents:
            agent.act([1])
        assert infos["action_mask"].tolist() == [agent.allowed() for agent in agents]
        assert env.action_masks().dtype == bool


def test_agents_leave_and_join_by_seat(new_game: Path) -> None:
    arguments = {"agents": 3, "leave": 2, "join": 4}
    with closing(GodotEnv(new_game, key="obs", arguments=arguments)) as env:
        env.reset()
        still = np.zeros((3, 2), np.float32)
        env.step(still)
        observations, rewards, terminated, truncated, infos = env.step(still)
        assert truncated.tolist() == [True, False, False]
        assert not terminated.any()
        assert rewards.tolist() == [2, 102, 202]
        assert infos["final_obs"][0][:2].tolist() == [0, 2]
        assert infos["final_info"]["agent_left"][0]
        assert infos["empty"].tolist() == [True, False, False]
        assert observations[:, 0].tolist() == [0, 1, 2]
        assert not observations[0].any()
        observations, rewards, _, truncated, _ = env.step(still)
        assert rewards.tolist() == [0, 103, 203]
        assert not truncated.any()
        observations, rewards, _, truncated, infos = env.step(still)
        assert observations[0, :3].tolist() == [3, 0, 0]
        assert infos["seed"][0] == seed_of(0, 3, 0)
        assert "empty" not in infos
        assert truncated.tolist() == [False, True, False]
        moves = np.array([[1, 0], [0, 0], [0, 1]], np.float32)
        observations, rewards, _, _, _ = env.step(moves)
        assert rewards.tolist() == [301, 101, 205]
        assert observations[0].tolist()[:3] == [3, 1, 0]
        assert observations[:, 4].tolist() == [1, 0, 0]
        observations, _ = env.reset()
        assert observations[:, 0].tolist() == [1, 2, 3]


def test_who_joins_without_a_free_seat_does_nothing(new_game: Path) -> None:
    with closing(GodotEnv(new_game, key="obs", arguments={"join": 1})) as env:
        env.reset()
        for _ in range(6):
            observations, rewards, _, _, _ = env.step(np.ones((2, 2), np.float32))
            assert observations[:, 0].tolist() == [0, 1]
        assert rewards.shape == (2,)


@pytest.mark.parametrize("form", ["new", "old"])
def test_call(make_game: Any, form: str) -> None:
    env = make_game(form, n_parallel=2)
    env.reset()
    assert env.call("wave") == ("wave of 0", "wave of 1") * 2


@pytest.mark.parametrize(
    ("kind", "actions", "says"),
    [
        ("box", [[np.nan, 0], [0, 0]], "action 0 of agent 0 is nan"),
        ("box", [[0.0, 0.0]], r"expected 2 × 2 numbers, got an array of shape \(1, 2\)"),
        ("discrete", [0, 4], "agent 1 chose 4, expected a whole number from 0 to 3"),
        ("discrete", [0.5, 1], "agent 0 chose 0.5"),
        ("mixed", {"turn": [0, 0]}, "expected a value for 'move'"),
    ],
)
def test_actions_that_make_no_sense(kind: str, actions: Any, says: str) -> None:
    codec = ActionCodec(read_spaces({}, action_space(kind), {}, trusted_images=True))
    with pytest.raises(UserError, match=says):
        codec.encode(actions, 2)


def test_an_unknown_key_names_the_others(new_game: Path) -> None:
    with pytest.raises(UserError, match="no observation 'eyes'; the game has obs, near, camera_2d"):
        GodotEnv(new_game, key="eyes", arguments={"kind": "image"})


def test_a_closed_environment_says_so(new_game: Path) -> None:
    env = GodotEnv(new_game)
    env.reset()
    env.close()
    with pytest.raises(UserError, match="closed"):
        env.step(np.zeros((2, 2), np.float32))


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
