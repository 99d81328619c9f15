"""Parameters and curricula of SB3 runs, in a game in which light gravity means winning."""

import json
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from estragon.cli import main
from estragon.envs.parameter_feed import ParameterFeed
from estragon.support import paths
from estragon.support.parameters import Plan
from estragon.trainers.sb3.settings import Sb3Hyperparameters, Sb3Settings
from estragon.trainers.sb3.training import train as train_with
from tests.trainers.conftest import Game
from tests.trainers.lesson_plans import BAD, HEAVY, LIGHT, PLAN, draw, played, write
from tests.trainers.sb3.staging import manifest, model_path, train
from tests.trainers.sb3.test_faults import complaint


def kept(model: Path) -> dict[str, Any]:
    with zipfile.ZipFile(model) as archive:
        found: dict[str, Any] = json.loads(archive.read("parameters.json"))
        return found


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = (model_path(folder).with_name("run.metrics.jsonl")).read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_lesson_is_passed_reported_resumed_and_drawn(
    game: Game, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, found = game(takes=1, wins=1), played(monkeypatch)
    given = ["--parameters", write(folder / "p.yaml", PLAN)]
    assert train(path, *given, "--save_checkpoint_frequency", "32") == 0
    assert "lesson 1 (heavy) at 36 steps" in capsys.readouterr().out
    begun = [("light", 0), ("heavy", 36)]
    told = manifest(folder)["curriculum"]
    assert [(each["name"], each["timesteps"]) for each in told["lessons"]] == begun
    last = metrics(folder)[-1]
    assert (last["lesson"], last["lesson_name"]) == (1, "heavy")
    assert 11.0 <= last["parameters"]["gravity"] <= 20.0
    events = EventAccumulator(str(model_path(folder).parent))
    events.Reload()
    assert [each.value for each in events.Scalars("curriculum/lesson")][-1] == 1.0
    assert events.Scalars("parameters/gravity")

    # As if killed after the first checkpoint: the next draws of that lesson follow.
    checkpoint = model_path(folder).parent / "checkpoints" / "rl_model_32_steps.zip"
    state = kept(checkpoint)
    assert state["curriculum"]["lesson"] == "light"
    following = [*state["feed"]["free"], *range(state["feed"]["next_number"], 40)]
    assert 0 not in following
    found.clear()
    assert train(path, "--resume_model_path", str(checkpoint), "--timesteps", "32") == 0
    light = [gravity for lesson, gravity in found if lesson == 0]
    assert light[:2] == [draw(0, 0, number) for number in following[:2]]
    assert sorted(light) == sorted(draw(0, 0, number) for number in following[: len(light)])
    assert manifest(folder, "experiment_2")["curriculum"]["lessons"][0]["timesteps"] == 32

    assert main(["plot", "--run", str(model_path(folder).parent), "--output", "charts"]) == 0
    assert sorted(each.name for each in Path("charts").iterdir()) == [
        "game_length.png",
        "game_reward.png",
    ]


def test_the_same_draws_with_one_game_and_with_four(
    game: Game, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = game(takes=1, wins=1), played(monkeypatch)
    lesson = {"parameters": PLAN["parameters"] | HEAVY["parameters"]}
    given = ["--parameters", write(folder / "p.yaml", lesson)]
    for games in (1, 4):
        found.clear()
        assert train(path, *given, "--n_parallel", str(games), "--timesteps", "128") == 0
        ended = [gravity for _, gravity in found]
        playing = 2 * 2 * games  # at the end: by each agent one, and its next
        expected = [draw(0, 0, number, lesson) for number in range(len(ended) + playing)]
        assert len(ended) > 10
        assert set(ended) <= set(expected)
        assert set(expected[: len(ended) - playing]) <= set(ended)


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_work_is_one_line_before_training(
    case: str, game: Game, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections, said = BAD[case]
    given = ["--parameters", write(folder / "p.yaml", sections)]
    assert train(game(takes=1, wins=1), *given) == 2
    assert said in complaint(capsys)
    assert not list(folder.rglob("model.zip"))


def test_a_game_without_parameters_is_refused(
    game: Game, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(game(), "--parameters", write(folder / "p.yaml", PLAN)) == 2
    assert "does not take parameters" in complaint(capsys)


def test_a_rule_of_ones_own(game: Game, folder: Path) -> None:
    lessons = [{"name": each["name"], "parameters": each["parameters"]} for each in (LIGHT, HEAVY)]
    settings = Sb3Settings(
        env_path=str(game(takes=1)),
        timesteps=64,
        policy_layers=(8,),
        inline_parameters={"curriculum": lessons},
        hyperparameters=Sb3Hyperparameters(n_steps=8, batch_size=8),
    )
    assert train_with(settings, rule=lambda own, *_: int(own.episodes >= 6)) == 0
    assert manifest(folder)["curriculum"]["lesson_name"] == "heavy"


def test_a_controller_gives_the_sections(game: Game, folder: Path) -> None:
    (folder / ".rlcontroller").mkdir()
    config = folder / ".rlcontroller" / "training_config.json"
    config.write_text(json.dumps(PLAN | {"env_path": str(game(takes=1, wins=1))}))
    assert train(game(takes=1, wins=1)) == 0
    assert manifest(folder)["curriculum"]["lesson_name"] == "heavy"


def test_a_model_is_measured_over_a_range(
    game: Game, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = game(takes=1, wins=1)
    assert train(path, "--onnx_export_path", "policy.onnx") == 0
    held = write(folder / "held.yaml", {"parameters": {"gravity": {"uniform": [5, 15]}}})
    words = ["--parameters", held, "--episodes", "18", "--cells", "2", "--success", "won"]
    results = {}
    for model in (str(model_path(folder).parent), "policy.onnx", "random"):
        more = ["--json", "e.json", "--chart", "e.png"]
        more += [] if "logs" in model else ["--game", str(path)]
        capsys.readouterr()
        assert main(["eval", "game", model, *words, *more]) == 0, capsys.readouterr()
        assert "gravity" in capsys.readouterr().out
        results[model] = json.loads(Path("e.json").read_text())
        more = ["--model", model, "--output", "j.json", *more[4:]]
        assert main(["judge", "evaluate", *more, *words[:4], *words[6:]]) == 0
        episodes = json.loads(Path("j.json").read_text())["episodes"]
        assert len({each["seed"] for each in episodes}) == 18
        assert all(each["success"] == (each["parameters"]["gravity"] < 10) for each in episodes)
        assert Path("e.png").read_bytes().startswith(b"\x89PNG")
    for result in results.values():
        assert result["episodes"] == 18
        assert result["axes"] == [{"name": "gravity", "edges": [5.0, 10.0, 15.0]}]
        assert result["cells"]["success_rate"] == [1.0, 0.0]
        assert result["success_rate"] == 0.5
    first, *others = (result["cells"]["return"] for result in results.values())
    assert all(other == first for other in others)  # the counter does not mind what they do
    assert main(["eval", "game", "policy.onnx", *words]) == 2
    assert "give --game" in capsys.readouterr().err


@pytest.mark.slow
def test_marble_is_killed_resumed_and_measured(
    godot: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marble = paths.godot_project() / "examples" / "marble"
    scene = ["--scene", "res://examples/marble/marble.tscn"]
    words = ["--env_path", str(paths.godot_project()), *scene, "--n_steps", "32"]
    given = ["--parameters", str(marble / "parameters.yaml")]
    run = ["train", "sb3", *words, *given, "--save_checkpoint_frequency", "512"]
    process = subprocess.Popen(
        [sys.executable, "-m", "estragon", *run], cwd=folder, stdout=subprocess.DEVNULL
    )
    checkpoints = model_path(folder).with_name("checkpoints")
    deadline = time.monotonic() + 300.0
    try:
        while not list(checkpoints.glob("*_2048_steps.zip")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    latest = checkpoints / "rl_model_2048_steps.zip"
    state = kept(latest)
    assert state["curriculum"]["episodes"] > 0
    plan = Plan.read(marble / "parameters.yaml")
    lesson = [each.name for each in plan.lessons].index(state["curriculum"]["lesson"])
    number = state["feed"]["free"][0]
    starts: list[Any] = []
    note = ParameterFeed.start

    def watched(self: ParameterFeed, *more: Any) -> list[Any]:
        starts.append(note(self, *more))
        return list(starts[-1])

    monkeypatch.setattr(ParameterFeed, "start", watched)
    resume = ["--resume_model_path", str(latest), "--timesteps", "512"]
    assert main(["train", "sb3", *words, *resume]) == 0
    expected = plan.draw(lesson, state["feed"]["seed"], number)
    assert starts[-1][0] == {
        name: float(f"{value:.12g}") if isinstance(value, float) else value
        for name, value in expected.items()
    }
    told = manifest(folder, "experiment_2")["curriculum"]["lessons"][0]
    assert (told["name"], told["timesteps"]) == (state["curriculum"]["lesson"], 2048)

    held = ["--parameters", str(marble / "held_out.yaml"), "--episodes", "16", "--cells", "2"]
    capsys.readouterr()
    model = str(model_path(folder, "experiment_2").parent)
    assert main(["eval", "game", model, *held, "--json", "e.json", "--chart", "e.png"]) == 0
    assert "push_turn \\ push_force" in capsys.readouterr().out
    result = json.loads(Path("e.json").read_text())
    assert result["episodes"] == 16
    assert [axis["name"] for axis in result["axes"]] == ["push_turn", "push_force"]
    for cells in result["cells"].values():
        assert [len(row) for row in cells] == [2, 2]
        assert all(isinstance(cell, float) for row in cells for cell in row)
