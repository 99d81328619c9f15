"""Runs: what they are resumed and exported with, as words that the command line understands."""

import json
from pathlib import Path
from typing import Any

import pytest
import tyro

from estragon.commands.train_sb3 import TrainSb3Command
from estragon.controller.project import Project
from estragon.controller.runs import Run, list_runs
from estragon.controller.sessions import Sessions
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


def test_a_resumed_run_trains_what_is_left(project: Project) -> None:
    options = {"options": {"timesteps": 1000}}
    run = add_record(project, status="stopped", last={"timesteps_total": 400}, **options)
    with pytest.raises(UserError, match="saved nothing"):
        run.resume_words(project)
    old, new = run.folder / "checkpoints" / "rl_model_300_steps.zip", run.folder / "model.zip"
    for path in (old, new):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert set(run.models()) == {old, new}
    read = tyro.cli(TrainSb3Command, args=run.resume_words(project))
    assert (read.resume_model_path, read.timesteps) == (Path("logs/x_1/model.zip"), 600)
    done = add_record(project, status="finished", last={"timesteps_total": 1000}, **options)
    assert "--timesteps=1000" in done.resume_words(project)


def test_an_export_is_a_command(project: Project) -> None:
    pytest.importorskip("nicegui")
    from estragon.controller.export_tab import export_words

    run = add_record(project, status="finished")
    words = export_words(run, run.folder / "model.zip", project, "policies", 15, verify=False)
    assert words[:3] == ["convert", "sb3", "logs/x_1/model.zip"]
    assert words[3:] == ["--output=policies/x_1.onnx", "--opset=15", "--no-verify"]


def test_a_record_that_leads_elsewhere_is_kept_inside(project: Project) -> None:
    run = add_record(project, status="finished", folder="../../etc")
    assert run.folder == project.folder / "runs"
    assert run.models() == []


def test_runs_of_tag_are_found(project: Project) -> None:
    folder = project.path / "trainer" / "logs" / "runs" / "ppo-live" / "20260202-000000"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text('{"pid": 0, "started": "now"}')
    (run,) = list_runs(project, Sessions(project))
    assert (run.backend, run.status, run.id) == ("live", "stopped", "20260202-000000")
    (folder / "summary.json").touch()
    assert list_runs(project, Sessions(project))[0].status == "finished"
