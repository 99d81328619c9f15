"""The controller's folder: what is read from it, and what is left in it."""

import dataclasses
import json
from pathlib import Path

import pytest

from estragon.support.errors import UserError
from estragon.trainers.controller import Controller, TrainingConfig, slug, unknown_key
from estragon.trainers.sb3.settings import Sb3Hyperparameters


def configured(folder: Path, text: str) -> Controller:
    (folder / ".rlcontroller").mkdir()
    (folder / ".rlcontroller" / "training_config.json").write_text(text)
    return Controller()


def test_without_a_folder_nothing_is_said(folder: Path) -> None:
    config, unknown = Controller().training_config()
    assert config.options("sb3_") == {}
    assert not unknown
    assert not Controller().exists


def test_what_a_back_end_is_told(folder: Path) -> None:
    told = {"mode": "single_agent", "timesteps": 5, "sb3_gamma": 1, "rllib_num_workers": 2}
    config, unknown = configured(folder, json.dumps(told)).training_config()
    assert config.options("sb3_") == {"timesteps": 5, "gamma": 1.0}
    assert config.options("rllib_") == {"timesteps": 5, "num_workers": 2}
    assert not unknown


def test_keys_that_nobody_knows_are_named(folder: Path) -> None:
    _, unknown = configured(folder, '{"sb3_gama": 0.9, "moon": 1}').training_config()
    assert unknown == ["moon", "sb3_gama"]
    assert unknown_key("sb3_gama") == "sb3_gama (did you mean sb3_gamma?)"
    assert unknown_key("moon") == "moon"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"sb3_gamma": "high"}', "Expected `float | null`, got `str` - at `sb3_gamma`"),
        ('{"sb3_policy_type": "gru"}', "sb3_policy_type"),
        ('{"sb3_policy_layers": [64, "64"]}', "sb3_policy_layers"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "is not JSON"),
    ],
)
def test_a_wrong_file_is_one_clear_line(folder: Path, text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=r"training_config\.json") as raised:
        configured(folder, text).training_config()
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_file_knows_every_hyper_parameter() -> None:
    known = set(TrainingConfig.__struct_fields__)
    assert {f"sb3_{field.name}" for field in dataclasses.fields(Sb3Hyperparameters)} <= known


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
