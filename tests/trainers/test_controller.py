"""The controller's folder: what is read from it, and what is left in it."""

import dataclasses
import json
from pathlib import Path

import pytest

from estragon.support.errors import UserError
from estragon.trainers.controller import Controller, slug
from estragon.trainers.rllib.settings import RllibSettings
from estragon.trainers.sb3.settings import Sb3Hyperparameters, Sb3Settings


def configured(folder: Path, text: str) -> Controller:
    (folder / ".rlcontroller").mkdir()
    (folder / ".rlcontroller" / "training_config.json").write_text(text)
    return Controller()


def test_without_a_folder_nothing_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Sb3Settings.from_controller() == RllibSettings.from_controller() == {}
    assert Sb3Settings.defaults() == Sb3Settings()
    assert not Controller().exists
    assert not capsys.readouterr().err


def test_what_a_back_end_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = {"mode": "single_agent", "timesteps": 5, "sb3_gamma": 1, "rllib_num_workers": 2}
    told |= {"env_path": "", "rllib_resume_from": "", "rllib_lambda": 0.5, "sb3_viz": None}
    configured(folder, json.dumps(told))
    assert Sb3Settings.from_controller() == {"timesteps": 5, "gamma": 1.0}
    assert Sb3Settings.defaults() == Sb3Settings(
        timesteps=5, hyperparameters=Sb3Hyperparameters(gamma=1.0)
    )
    assert RllibSettings.from_controller() == {"timesteps": 5, "num_workers": 2, "lambda_": 0.5}
    assert not capsys.readouterr().err


def test_names_of_rllib_in_the_file(folder: Path) -> None:
    told = {"rllib_stop_timesteps_total": 7, "timesteps": 5, "rllib_env_speedup": 3}
    configured(folder, json.dumps(told | {"rllib_stop_file_path": "x/STOP"}))
    found = RllibSettings.from_controller()
    assert found == {"timesteps": 7, "speedup": 3.0, "stop_file": Path("x/STOP")}


def test_keys_that_nobody_knows_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configured(folder, '{"sb3_gama": 0.9, "moon": 1}')
    assert Sb3Settings.from_controller() == {}
    said = "training_config.json: unknown keys, not used: moon, sb3_gama (did you mean sb3_gamma?)"
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"sb3_gamma": "high"}', "Expected `float | null`, got `str` - at `sb3_gamma`"),
        ('{"sb3_policy_type": "gru"}', "sb3_policy_type"),
        ('{"sb3_policy_layers": [64, "64"]}', "sb3_policy_layers"),
        ('{"mode": "no_agent"}', "mode"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "is not JSON"),
    ],
)
def test_a_wrong_file_is_one_clear_line(folder: Path, text: str, complaint: str) -> None:
    configured(folder, text)
    with pytest.raises(UserError, match=r"training_config\.json") as raised:
        Sb3Settings.defaults()
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_file_knows_every_hyper_parameter(folder: Path) -> None:
    names = [field.name for field in dataclasses.fields(Sb3Hyperparameters)]
    configured(folder, json.dumps({f"sb3_{name}": 1 for name in names}))
    assert Sb3Settings.from_controller() == dict.fromkeys(names, 1)


def test_stop_is_forgotten_when_a_run_begins_and_seen_while_it_lasts(folder: Path) -> None:
    controller = configured(folder, "{}")
    controller.stop_file.touch()
    controller.clear_stop()
    assert not controller.stop_requested()
    controller.stop_file.touch()
    assert not controller.stop_requested()  # it looks only now and then
    assert Controller().stop_requested()


def test_runs_of_the_same_second_have_records_of_their_own(folder: Path) -> None:
    controller = configured(folder, "{}")
    records = [controller.begin_run("My Game!", {"backend": "sb3"}) for _ in range(3)]
    assert len({record.path for record in records}) == 3
    assert "_my-game" in records[0].path.name
    records[0].add({"kind": "iteration"})
    records[0].end("finished", model="model.zip")
    about = json.loads(records[0].path.read_text())
    assert about["status"] == "finished"
    assert about["backend"] == "sb3"
    assert about["model"] == "model.zip"
    metrics = records[0].path.with_name(about["metrics"])
    assert json.loads(metrics.read_text()) == {"kind": "iteration"}
    assert json.loads(records[1].path.read_text())["status"] == "running"


def test_a_slug_is_part_of_a_file_name() -> None:
    assert slug("Pong v1/../x") == "pong-v1-x"
    assert slug("…") == "run"
