"""Runs: what they are resumed and exported with, as words that the command line understands."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import tyro

from estragon.commands.distill import DistillCommand
from estragon.commands.export_sb3 import ExportSb3Command
from estragon.commands.train_sb3 import TrainSb3Command
from estragon.commands.train_scene import TrainSceneCommand
from estragon.commands.train_spacetime import TrainSpacetimeCommand
from estragon.controller.project import Project
from estragon.controller.runs import Run, list_runs, run_of
from estragon.controller.sessions import Session, Sessions
from estragon.support.errors import UserError


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create(tmp_path / "game", "A game", "orchard")


def add_record(project: Project, **about: Any) -> Run:
    path = project.folder / "runs" / "20260101-000000_x.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"name": "x", "backend": "sb3", "folder": "logs/x_1", **about}))
    (run,) = list_runs(project, Sessions(project))
    return run


def session(*words: str) -> Session:
    return Session("20260101-000000_x", "x", list(words), "now")


def test_a_resumed_run_trains_what_is_left(project: Project) -> None:
    options = {"options": {"timesteps": 1000}}
    run = add_record(project, status="stopped", last={"timesteps_total": 400}, **options)
    first = session("train", "sb3", "--gamma=0.9", "--timesteps=1000")
    with pytest.raises(UserError, match="saved nothing"):
        run.resumed_words(first, project)
    old, new = run.folder / "checkpoints" / "rl_model_300_steps.zip", run.folder / "model.zip"
    for path in (old, new):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))  # saved at the same moment
    assert run.models() == [new, old]
    for words in (first.words, run.resumed_words(first, project)):  # and once more
        found = run.resumed_words(session(*words), project)
        read = tyro.cli(TrainSb3Command, args=found[2:])
        assert (read.resume_model_path, read.timesteps) == (Path("logs/x_1/model.zip"), 600)
        assert read.hyperparameters.gamma == 0.9
    done = add_record(project, status="finished", last={"timesteps_total": 1000}, **options)
    assert "--timesteps=1000" in done.resumed_words(first, project)


@pytest.mark.parametrize(
    ("verb", "command"), [("spacetime", TrainSpacetimeCommand), ("scene", TrainSceneCommand)]
)
def test_scenes_are_resumed_from_checkpoints_that_are_elsewhere(
    project: Project, verb: str, command: type[Any]
) -> None:
    saved = project.path / "models" / "x_step_300.zip"
    saved.parent.mkdir()
    saved.touch()
    run = add_record(project, status="running", pid=0, checkpoints=["models/x_step_300.zip"])
    assert (run.status, run.models()) == ("died", [saved])
    words = run.resumed_words(session("train", verb, "--timesteps=1000"), project)
    words = run.resumed_words(session(*words), project)
    read = tyro.cli(command, args=words[2:])
    assert (Path(read.resume), read.timesteps) == (Path("models/x_step_300.zip"), 1000)


def test_an_export_is_a_command(project: Project) -> None:
    pytest.importorskip("nicegui")
    from estragon.controller.export_tab import export_words

    run = add_record(project, status="finished")
    words = export_words(run, run.folder / "model.zip", project, "policies", 15)
    assert words[:3] == ["export", "sb3", "logs/x_1/model.zip"]
    assert words[3:] == ["--output=policies/x_1.onnx", "--opset=15"]
    assert tyro.cli(ExportSb3Command, args=[*words[2:], "--quantize=int8"]).quantize == "int8"
    teachers = [str(path) for path in run.teachers(run.folder / "model.zip")]
    distill = tyro.cli(DistillCommand, args=[*teachers, "--student=32x32", "--out=policies"])
    assert distill.teacher == (run.folder / "model.zip",)


def test_a_record_that_leads_elsewhere_is_kept_inside(project: Project) -> None:
    run = add_record(project, status="finished", folder="../../etc")
    assert run.folder == project.folder / "runs"
    assert run.models() == []


@pytest.mark.parametrize("backend", ["tag", "live"])
def test_runs_of_tag_are_found(project: Project, backend: str) -> None:
    approach = "ppo-live" if backend == "live" else "ppo-self-play"
    folder = project.path / "trainer" / "logs" / "runs" / approach / "20260202-000000"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "metadata.json").write_text('{"pid": 0, "started": "now"}')
    (run,) = list_runs(project, Sessions(project))
    assert (run.backend, run.status, run.id) == (backend, "stopped", "20260202-000000")
    with pytest.raises(UserError, match="no policy yet"):
        run.teachers(folder)
    names = [f"{role}_{updates:05d}.npz" for role in ("seeker", "hider") for updates in (0, 7, 12)]
    for name in names:
        (folder / "checkpoints" / name).touch()
    assert [path.name for path in run.teachers(folder)] == ["seeker_00012.npz", "hider_00012.npz"]
    assert len(run.models()) == 1 + len(names)
    assert run.teachers(run.models()[-1]) == run.models()[-1:]
    first = session(*(["live"] if backend == "live" else ["train", "tag"]), "--seed=3")
    words = run.resumed_words(first, project)
    assert words == [*first.words, "--resume", "--run-id=20260202-000000"]
    assert run.resumed_words(session(*words), project) == words
    assert run_of(session(*words), None, [run]) is run
    (folder / "summary.json").touch()
    assert list_runs(project, Sessions(project))[0].status == "finished"
