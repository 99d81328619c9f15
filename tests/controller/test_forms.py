"""Forms: what is typed becomes a command that the command line understands, and nothing else."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import tyro

from estragon.cli import VERBS
from estragon.commands.train_sb3 import TrainSb3Command
from estragon.commands.ui import make_forms
from estragon.controller.forms import Field, Form
from estragon.controller.project import Project, Workspace
from estragon.support.errors import UserError
from estragon.trainers.rllib.settings import read_config_file

FORMS = make_forms()
OUTSIDE = ("../x", "a/../../x", "/etc/passwd", "~/x", "..\\x", "x/\0y")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "game").mkdir()
    return Project((tmp_path / "game").resolve())


def other_value(field: Field) -> Any:
    """A valid value that is not the default."""
    if field.kind == "bool":
        return not field.default
    if field.kind == "choice":
        return next(each for each in field.choices if each != field.default)
    if field.kind in ("int", "float"):
        least, most = field.span or (1, None)
        candidates = [least, least + 1 if most is None else (least + most) // 2, most]
        number = next(each for each in candidates if each not in (None, field.default))
        return int(number) if field.kind == "int" else float(number)
    return (8, 8, 8) if field.kind == "ints" else "some-thing"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
def test_the_command_line_understands_every_field(form: Form, project: Project) -> None:
    assert form.verb in VERBS
    assert VERBS[form.verb].underscores == form.underscores
    values = {field.name: other_value(field) for field in form.fields}
    words = form.words(values, project)
    parsed = tyro.cli(form.options, args=words[len(form.verb) :])
    plain = dataclasses.asdict(parsed)
    for field in form.fields:
        found = plain[field.group][field.name] if field.group else plain[field.name]
        found = str(found) if isinstance(found, Path) else found
        assert found == values[field.name], field.name
        assert field.help, f"{field.name} has no help"
    usual = {field.name: field.default for field in form.fields}
    assert form.words(usual, project) == list(form.verb)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
def test_no_path_leads_out_of_the_project(form: Form, project: Project) -> None:
    fields = [field for field in form.fields if field.kind in ("path", "text")]
    assert fields
    for field in fields:
        for bad in OUTSIDE:
            with pytest.raises(UserError):
                form.words({field.name: bad}, project)


def test_links_do_not_lead_out_either(project: Project, tmp_path: Path) -> None:
    (project.path / "link").symlink_to(tmp_path)
    with pytest.raises(UserError, match="outside"):
        project.confine("link/x")
    workspace = Workspace(project.path, tmp_path / "home")
    for bad in (*OUTSIDE[:3], "link/x", ""):
        with pytest.raises(UserError):
            workspace.confine(bad)


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", 2), ("n_parallel", 65), ("timesteps", 1.5), ("timesteps", "many"), ("seed", -1),
     ("algo", "sarsa"), ("policy_layers", "a b"), ("experiment_name", "two\nlines")],
)  # fmt: skip
def test_what_is_out_of_range_is_named(name: str, value: Any, project: Project) -> None:
    with pytest.raises(UserError, match=name):
        FORMS[0].words({name: value}, project)


def test_a_value_is_never_an_option(project: Project) -> None:
    words = FORMS[0].words({"experiment_name": "--viz"}, project)
    assert tyro.cli(TrainSb3Command, args=words[2:]).experiment_name == "--viz"


def test_rllib_reads_the_file_that_the_form_writes(project: Project) -> None:
    form = next(form for form in FORMS if form.key == "rllib")
    typed = {"timesteps": 500, "lr": 0.01, "fcnet_hiddens": "32 16", "num_workers": 1}
    project.folder.mkdir()
    project.write_training_config(form.config(form.values({}) | typed | {"algo": "appo"}))
    path = project.folder / "rllib_config.yaml"
    file = read_config_file(path)
    assert (file.algorithm, file.stop, file.game["env_path"]) == ("appo", {"timesteps": 500}, ".")
    assert file.settings == {"lr": 0.01, "num_env_runners": 1}
    assert file.model == {"fcnet_hiddens": [32, 16]}
    # What the user adds stays, also as a comment, unless the form changes something.
    text = path.read_text() + "# mine\nmultiagent: {policies: [left, right]}\n"
    path.write_text(text)
    project.write_training_config(form.config(form.values({}) | typed | {"algo": "appo"}))
    assert path.read_text() == text
    project.write_training_config(form.config(form.values({}) | {"lr": 0.5}))
    file = read_config_file(path)
    assert (file.algorithm, file.stop, file.settings) == (None, {}, {"lr": 0.5})
    assert set(file.policies) == {"left", "right"}
    nested = {"algorithm": "ppo", "config": {"lr": 0.1, "kl_coeff": 0.5}}
    path.write_text(json.dumps(nested))  # which is YAML, too
    project.write_training_config(form.config(form.values({}) | typed))
    assert read_config_file(path).settings == {"lr": 0.01, "kl_coeff": 0.5, "num_env_runners": 1}
    path.write_text("[")
    with pytest.raises(UserError, match="is not YAML"):
        project.write_training_config(form.config(form.values({})))
    assert path.read_text() == "["


def test_the_training_config_is_what_the_trainer_reads(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = FORMS[0]
    values = form.values({}) | {"timesteps": 500, "gamma": 0.5, "policy_layers": "32 16"}
    project.folder.mkdir()
    project.write_settings("training_config.json", {"rllib_lr": 0.1})
    project.write_settings("training_config.json", form.config(values))
    monkeypatch.chdir(project.path)
    read = TrainSb3Command.defaults()
    assert (read.timesteps, read.policy_layers, read.env_path) == (500, (32, 16), ".")
    assert read.hyperparameters.given() == {"gamma": 0.5}
    config = project.read_settings("training_config.json")
    assert config["rllib_lr"] == 0.1
    assert form.values(config)["gamma"] == 0.5
