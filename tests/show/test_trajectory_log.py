"""A log holds the very match that was played, in whatever batch, and flags what cannot be."""

from pathlib import Path

import numpy as np
import pytest

from estragon.show.trajectory import Anomaly
from estragon.show.trajectory_log import TrajectoryLog, find_anomalies
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.matches import Outcomes, play_batches, play_matches
from estragon.tag.rules import OBS, load_rules
from tests.show.logged_matches import log_matches, records
from tests.tag.staging import with_episode


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_it_is_the_match_the_engine_plays(rule_set: str, tmp_path: Path) -> None:
    rules = load_rules(rules=rule_set)
    files, outcomes = log_matches(tmp_path, 3, rules=rules, layout="colonnade", hider="random")
    path = files[2]
    trajectory = read_trajectory(path)
    seeker, hider = Bot("chaser", rules), Bot("random", rules)
    arenas = Arenas(1, rules=rules, layout="colonnade", seed=5, first_arena=2)
    seen = arenas.reset()
    for moment in range(len(trajectory.ticks)):
        agents = arenas.agents[0]
        assert trajectory.ticks[moment] == arenas.arenas["tick"][0]
        for axis, name in enumerate("xyz"):
            assert trajectory.positions[moment, :, axis].tolist() == agents[name].tolist()
            speed = agents[f"velocity_{name}"].tolist()
            assert trajectory.velocities[moment, :, axis].tolist() == speed
        assert trajectory.forwards[moment, :, 0].tolist() == agents["forward_x"].tolist()
        assert trajectory.forwards[moment, :, 1].tolist() == agents["forward_z"].tolist()
        assert trajectory.is_seeker[moment].tolist() == arenas.is_seeker[0].tolist()
        assert trajectory.on_floor[moment].tolist() == (agents["on_floor"] == 1).tolist()
        assert trajectory.immune[moment].tolist() == (agents["immune_ticks"] > 0).tolist()
        assert (
            trajectory.sees[moment].tolist() == (seen[0, :, OBS.opponent_visible] == 1.0).tolist()
        )
        rays = seen[0, :, rules.field("rays")].reshape(2, 36, 3).astype(np.float64)
        np.testing.assert_array_equal(trajectory.ray_distances[moment], rays[..., 0] * 15.0)
        np.testing.assert_array_equal(trajectory.ray_types[moment], rays[..., 1] + 2 * rays[..., 2])
        it = arenas.is_seeker[0]
        actions = np.zeros((1, 2, 3), dtype=np.float32)
        actions[0, it] = seeker.act(seen[0][it])
        actions[0, ~it] = hider.act(seen[0][~it])
        seen = arenas.step(actions, restart=False).observations
    assert trajectory.winner == outcomes.winners[2]
    assert trajectory.ticks[-1] == outcomes.ticks[2]
    assert trajectory.reason == ("timeout" if rule_set == "transfer" else "tag")
    assert trajectory.anomalies == []


def test_tags_are_logged_at_their_very_tick(tmp_path: Path) -> None:
    """Against the same match with a log of every tick."""
    rules = load_rules(rules="transfer")
    (path,), _ = log_matches(tmp_path, rules=rules, hider="random")
    tags = read_trajectory(path).tags
    assert len(tags) >= 3
    assert any(tag.tick % 3 for tag in tags), "some are inside a decision"
    actions, arenas = (
        _actions_of(path),
        Arenas(1, rules=with_episode(rules, step_tick_interval=1), layout="playground", seed=5),
    )
    arenas.reset()
    it, found = 0, []
    for tick in range(1, 601):
        arenas.step(actions[(tick - 1) // 3], restart=False)
        if arenas.arenas["seeker"][0] != it:
            found.append((tick, it, 1 - it))
            it = 1 - it
    assert found == tags


def _actions_of(path: Path) -> list[np.ndarray]:
    """What the players of a logged match did in each decision."""
    rules = read_trajectory(path).game_rules()
    arenas = Arenas(1, rules=rules, layout="playground", seed=5)
    bots, seen = (Bot("chaser", rules), Bot("random", rules)), arenas.reset()
    actions = []
    for _ in range(200):
        it = int(arenas.arenas["seeker"][0])
        action = np.zeros((1, 2, 3), dtype=np.float32)
        action[:, it], action[:, 1 - it] = bots[0].act(seen[:, it]), bots[1].act(seen[:, 1 - it])
        actions.append(action)
        seen = arenas.step(action, restart=False).observations
    return actions


def test_what_happened_stands_before_what_came_of_it(tmp_path: Path) -> None:
    (path,), _ = log_matches(tmp_path, rules=load_rules(rules="transfer"), hider="random")
    lines = records(path)
    assert [line["tick"] for line in lines[1:]] == sorted(line["tick"] for line in lines[1:])
    for number, line in enumerate(lines):
        if line["type"] == "tag":
            before, after = lines[number - 1], lines[number + 1]
            assert before["tick"] < line["tick"] <= after["tick"]
            assert (before["agent"], after["agent"]) == ("Agent2", "Agent1")
            assert before["is_it"] != lines[number + 2]["is_it"]
    assert [line["type"] for line in lines[-4:]] == ["timeout", "step", "step", "episode_end"]


def test_files_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    layouts = "playground,random:0-3"
    whole, one = log_matches(tmp_path / "whole", 9, layout=layouts)
    parts, other = log_matches(tmp_path / "parts", 9, layout=layouts, batch=4)
    assert len(whole) == len(parts) == 9
    for path, part in zip(whole, parts, strict=True):
        assert path.read_bytes() == part.read_bytes()
    assert len({read_trajectory(path).layout.name for path in whole}) > 1
    assert _plain(one) == _plain(other)


def test_watching_changes_nothing(tmp_path: Path) -> None:
    rules = load_rules()
    _, watched = log_matches(tmp_path, 40, layout="colonnade")
    players = Bot("chaser", rules), Bot("evader", rules)
    alone = play_matches(*players, 40, rules=rules, layouts="colonnade", seed=5)
    assert _plain(watched) == _plain(alone)


def _plain(outcomes: Outcomes) -> list[list[float]]:
    return [part.tolist() for part in outcomes]


def test_no_more_are_logged_than_asked_for(tmp_path: Path) -> None:
    files, _ = log_matches(tmp_path, 20, most=6, batch=4)
    assert [path.name.split("_")[2] for path in files] == [f"{n:04d}" for n in range(6)]
    assert sorted(tmp_path.iterdir()) == files


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        log_matches(tmp_path / "taken")


class Sinking(Arenas):
    """An engine whose first agent sinks into the first box from tick 6 on, and then is nowhere."""

    def step(self, actions: np.ndarray, *, restart: bool = True):  # type: ignore[no-untyped-def] # noqa: ANN201
        results = super().step(actions, restart=restart)
        if self.arenas["tick"][0] in (6, 9):
            (x, z) = self.layouts[0].boxes[0].at_m
            self.agents["x"][0, 0], self.agents["z"][0, 0] = x, z
            self.agents["y"][0, 0] = 0.501
        elif self.arenas["tick"][0] == 12:
            self.agents["velocity_y"][0, 0] = np.nan
        return results


def test_what_cannot_be_is_flagged(tmp_path: Path) -> None:
    rules = with_episode(load_rules(), time_limit_sec=0.2)
    arenas = Sinking(1, rules=rules, layout="playground", seed=5)
    log = TrajectoryLog(tmp_path, engine="embedded", players={"seeker": "a", "hider": "b"}, most=1)
    idle = Bot("random", rules)
    play_batches(arenas, idle, idle, 1, watcher=log)
    flagged = [line for line in records(log.written[0]) if line["type"] == "physics_anomaly"]
    assert [(line["tick"], line["agent"]) for line in flagged] == [
        (6, "Agent1"),
        (9, "Agent1"),
        (12, "Agent1"),
    ]
    assert flagged[0]["what"] == flagged[1]["what"] == "1.001000 m inside box 0"
    assert flagged[2]["what"] == "a number is not finite"


@pytest.mark.parametrize(
    ("place", "what"),
    [
        ((9.5, 0.501, 0.0), ""),
        ((9.5 + 2e-6, 0.501, 0.0), "0.000002 m inside a wall"),
        ((0.0, 0.501, -9.6), "0.100000 m inside a wall"),
        ((9.0, 0.4, 9.0), "0.100000 m inside the floor"),
        ((0.0, 1.1 + 0.5 - 1e-7, 0.0), ""),
        ((0.0, 1.1 + 0.5 - 1e-3, 0.0), "0.001000 m inside box 4"),
    ],
)
def test_an_overlap_above_rounding_is_found(
    place: tuple[float, float, float], what: str, tmp_path: Path
) -> None:
    (path,), _ = log_matches(tmp_path)
    trajectory = read_trajectory(path)
    trajectory.positions[4, 1] = place
    expected = [Anomaly(12, 1, what)] if what else []
    assert find_anomalies(trajectory) == expected
