"""Parameters and curricula of RLlib runs: one curriculum, however many env runners there are."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from estragon.cli import main
from estragon.support import paths
from estragon.trainers.rllib.env import ENDED, episodes_of
from estragon.trainers.rllib.lessons import RunnerLessons
from estragon.trainers.run import Run
from tests.trainers.conftest import Game
from tests.trainers.lesson_plans import BAD, HEAVY, PLAN, draw, played, write
from tests.trainers.rllib.cluster import env_runners
from tests.trainers.rllib.staging import ROUNDS, manifest, run_folder, train
from tests.trainers.sb3.test_faults import complaint

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("local_ray")]


def kept(folder: Path) -> dict[str, Any]:
    (path,) = run_folder(folder).glob("checkpoint_*/estragon.json")
    found: dict[str, Any] = json.loads(path.read_text())["parameters"]
    return found


@pytest.mark.prove
def test_two_env_runners_are_promoted_once_and_a_lost_one_returns_to_the_lesson(
    game: Game, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = set(env_runners())
    lost: list[int] = []
    count = RunnerLessons.count

    def watched(self: RunnerLessons, result: Any, run: Run) -> None:
        count(self, result, run)
        if self.curriculum.lesson == 1 and not lost:
            lost.append(next(runner for runner in env_runners() if runner not in known))
            os.kill(lost[0], signal.SIGKILL)
            deadline = time.monotonic() + 120.0
            while len(set(env_runners()) - known - set(lost)) < 2:
                assert time.monotonic() < deadline
                time.sleep(0.2)

    found = played(monkeypatch)
    monkeypatch.setattr(RunnerLessons, "count", watched)
    path = game(takes=1, wins=1)
    words = ["--parameters", write(folder / "p.yaml", PLAN), "--num_workers", "2", *ROUNDS]
    assert train(path, *words, "--timesteps", "320") == 0
    assert lost
    out = capsys.readouterr().out
    assert out.count("lesson 1 (heavy) at") == 1
    told = manifest(folder)["curriculum"]["lessons"]
    assert [each["name"] for each in told] == ["light", "heavy"]
    last = [lesson for lesson, _ in found[-8:]]
    assert last == [1] * 8
    assert all(gravity >= 11.0 for _, gravity in found[-8:])
    feeds = kept(folder)["feed"]
    assert sorted(feeds) == ["1", "2"]
    assert {feed["lesson"] for feed in feeds.values()} == {1}
    # Nobody drew a number twice: the lost one continued its draws where it last reported them.
    heavy = [gravity for lesson, gravity in found if lesson == 1]
    assert len(set(heavy)) == len(heavy)

    found.clear()
    resume = ["--restore", str(run_folder(folder)), "--num_workers", "0", *ROUNDS]
    assert train(path, *resume, "--timesteps", "32") == 0
    assert {lesson for lesson, _ in found} == {1}
    assert manifest(folder, "experiment_2")["curriculum"]["lessons"][0]["name"] == "heavy"


@pytest.mark.prove
def test_marble_is_promoted_once_on_two_env_runners(
    godot: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = played(monkeypatch, "goal_distance")
    lessons = [
        {
            "name": "here",
            "parameters": {"goal_distance": 1, "goal_radius": 2},
            "until": {"success_rate": 0.9, "window": 20, "min_episodes": 20},
        },
        {"name": "there", "parameters": {"goal_distance": {"uniform": [7, 9]}, "time_limit": 2}},
    ]
    words = ["--parameters", write(folder / "p.yaml", {"curriculum": lessons})]
    words += ["--scene", "res://examples/marble/marble.tscn", "--num_workers", "2"]
    words += ["--train_batch_size", "512", "--sgd_minibatch_size", "256", "--num_sgd_iter", "1"]
    assert train(paths.godot_project(), *words, "--timesteps", "2560") == 0
    assert capsys.readouterr().out.count("lesson 1 (there) at") == 1
    told = manifest(folder)["curriculum"]["lessons"]
    assert [each["name"] for each in told] == ["here", "there"]
    feeds = kept(folder)["feed"]
    assert sorted(feeds) == ["1", "2"]
    assert {feed["lesson"] for feed in feeds.values()} == {1}
    order = [lesson for lesson, _ in found]
    last_here = len(order) - order[::-1].index(0)
    assert {lesson for lesson, _ in found[last_here:]} == {1}
    for lesson, distance in found:
        assert 7.0 <= distance <= 9.0 if lesson else distance == 1.0
    assert len(found) - last_here >= 32


def test_a_single_episode_in_an_iteration_counts() -> None:
    line = json.dumps(["policy", 2.0, 3, {"score": 4}, 0])
    for told in (line, [line]):  # RLlib reports a single item without its list
        assert episodes_of({"env_runners": {ENDED: told}})["policy"].rewards == [2.0]


def test_a_restored_run_continues_with_the_next_draws(
    game: Game, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = played(monkeypatch)
    path, lesson = game(takes=1), {"parameters": HEAVY["parameters"]}
    config = {"parameters": HEAVY["parameters"], "checkpoint_frequency": 0}
    words = ["--config_file", write(folder / "c.yaml", config), *ROUNDS]
    assert train(path, *words, "--timesteps", "32") == 0
    feed = kept(folder)["feed"]["0"]
    following = [*feed["free"], *range(feed["next_number"], 40)]
    found.clear()
    # Without the file: the checkpoint has its parameters.
    assert train(path, *ROUNDS, "--restore", str(run_folder(folder)), "--timesteps", "32") == 0
    assert [gravity for _, gravity in found[:2]] == [
        draw(feed["seed"], 0, number, lesson) for number in following[:2]
    ]


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_work_is_one_line_before_training(
    case: str, game: Game, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections, said = BAD[case]
    given = ["--parameters", write(folder / "p.yaml", sections)]
    assert train(game(takes=1, wins=1), *given) == 2
    assert said in complaint(capsys)


def test_a_share_of_a_training_without_end_is_never_reached(
    game: Game, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lessons = [{"name": "a", "until": {"progress": 0.5}}, {"name": "b"}]
    given = ["--parameters", write(folder / "p.yaml", {"curriculum": lessons})]
    assert train(game(takes=1), *given, "--stop_mode", "none") == 2
    assert "lesson a: until progress: the run has no limit" in complaint(capsys)


def test_a_checkpoint_is_measured(game: Game, folder: Path) -> None:
    path = game(takes=1, wins=1)
    assert train(path, *ROUNDS) == 0
    held = write(folder / "held.yaml", {"parameters": {"gravity": {"uniform": [5, 15]}}})
    words = ["--parameters", held, "--episodes", "8", "--cells", "2", "--success", "won"]
    assert main(["eval", "game", str(run_folder(folder)), *words, "--json", "e.json"]) == 0
    result = json.loads(Path("e.json").read_text())
    assert result["cells"]["success_rate"] == [1.0, 0.0]
    words = ["--model", str(run_folder(folder)), "--parameters", held, "--success", "won"]
    assert main(["judge", "evaluate", *words, "--episodes", "8", "--output", "j.json"]) == 0
    episodes = json.loads(Path("j.json").read_text())["episodes"]
    assert len({(each["agent"], each["number"]) for each in episodes}) == 8
    assert all(each["success"] == (each["parameters"]["gravity"] < 10) for each in episodes)
