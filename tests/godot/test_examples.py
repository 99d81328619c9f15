"""The example games over the wire: what they offer, and that a seed decides everything."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.envs.sb3_env import GodotVecEnv
from estragon.godot.project import import_project
from estragon.support import paths
from tests.godot.addon.peer import Peer, Row, playing

SCENES = {name: f"res://examples/{name}/{name}.tscn" for name in ("orchard", "marble")}
COPIES = 3
STEPS = 200
TERMINATED, TRUNCATED, LAST_IS_TOLD = 1, 2, 4


@pytest.fixture(scope="module")
def project(godot: Path) -> Path:
    return import_project(paths.godot_project(), godot=godot)


def random_actions(name: str, seed: int) -> np.ndarray:
    """(STEPS, numbers) as one agent after the other is told."""
    random = np.random.default_rng(seed)
    if name == "orchard":
        return random.integers(5, size=(STEPS, COPIES))
    return random.uniform(-1.0, 1.0, (STEPS, 2 * COPIES))


def play(peer: Peer, name: str, seed: int) -> list[list[Row]]:
    """Everything that came of the same actions after a reset with this seed."""
    return [peer.reset(seed), *(peer.step(*row) for row in random_actions(name, 3))]


@pytest.mark.parametrize(
    ("name", "size", "actions"),
    [
        ("orchard", 18, {"run": {"size": 5, "action_type": "discrete"}}),
        ("marble", 36, {"push": {"size": 2, "action_type": "continuous"}}),
    ],
)
def test_what_a_game_offers(
    name: str, size: int, actions: dict[str, Any], project: Path, tmp_path: Path
) -> None:
    with playing(project, tmp_path, scene=SCENES[name]) as peer:
        info = peer.greet()
    assert info["n_agents"] == 16
    assert info["observation_space"][0] == {"obs": {"size": [size], "space": "box"}}
    assert info["action_space"] == [actions] * 16


@pytest.mark.parametrize("name", SCENES)
def test_lessons_fit_the_game(name: str, project: Path) -> None:
    scene = SCENES[name]
    lessons = project / "examples" / name / "parameters.yaml"
    options: dict[str, Any] = {"scene": scene, "parameters": lessons, "arguments": {"copies": 8}}
    with closing(GodotVecEnv(project, key="obs", seed=1, **options)) as env:
        env.action_space.seed(1)
        feed = env.parameter_feed
        assert feed is not None
        successes = []
        for lesson in range(len(feed.plan.lessons)):
            feed.set_lesson(lesson)
            env.reset()
            wanted = set(feed.plan.samplers[lesson])
            assert all(set(info["parameters"]) == wanted for info in env.reset_infos)
            ended = []
            for _ in range(150):
                moves = np.array([env.action_space.sample() for _ in range(8)])
                *_, dones, infos = env.step(moves)
                ended += [infos[slot]["success"] for slot in np.flatnonzero(dones)]
            assert set(map(type, ended)) == {bool}
            successes.append(sum(ended) / len(ended))
        print(name, successes)
        if name == "marble":  # nothing is rewarded on the way: the first lesson must come by chance
            assert successes[0] > 0.2
            assert successes[-1] < 0.1


@pytest.mark.parametrize("name", SCENES)
def test_a_seed_decides_everything(name: str, project: Path, tmp_path: Path) -> None:
    games = []
    for run in ("first", "second"):
        words = [f"--copies={COPIES}", "--env_seed=11"]
        with playing(project, tmp_path / run, *words, scene=SCENES[name]) as peer:
            peer.greet("binary1")
            games.append(play(peer, name, seed=5))
            if run == "first":
                other = play(peer, name, seed=6)
    assert games[0] == games[1]
    assert [row.obs for row in other[0]] != [row.obs for row in games[0][0]]
    ends = [row for rows in games[0] for row in rows if row.state]
    assert any(row.state & TERMINATED for row in ends)
    assert all(row.state & LAST_IS_TOLD for row in ends)
    assert all(set(row.info) >= {"score", "seed"} for row in ends)
    for rows in games[0]:
        for row in rows:
            assert np.isfinite(row.obs["obs"]).all()
            assert np.abs(row.obs["obs"]).max() <= 2.0


def test_a_marble_that_waits_is_cut_off(project: Path, tmp_path: Path) -> None:
    with playing(project, tmp_path, "--copies=1", scene=SCENES["marble"]) as peer:
        peer.greet("binary1")
        peer.reset(1)
        states = [peer.step(0.0, 0.0)[0].state for _ in range(120)]
    ends = [step for step, state in enumerate(states) if state]
    assert [states[step] for step in ends] == [TRUNCATED | LAST_IS_TOLD]
    assert ends == [900 // 8]
