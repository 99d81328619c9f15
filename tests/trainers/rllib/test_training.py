"""A run from YAML and from a controller's folder: what it learns, tells, obeys and leaves."""

import dataclasses
import json
import pickle
import re
import subprocess
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from estragon.trainers.rllib.plan import (
    algorithm_of,
    config_of_policies,
    model_config,
    plan_of,
)
from estragon.trainers.rllib.settings import (
    CodeMapping,
    FileConfig,
    RllibSettings,
    TableMapping,
    read_config_file,
)
from estragon.trainers.run import StopLimits
from tests.trainers.conftest import Game
from tests.trainers.rllib.cluster import free_port
from tests.trainers.rllib.staging import ROUNDS, manifest, run_folder, train
from tests.trainers.staging import read_metrics

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.filterwarnings("ignore")]
FLAT = """
env: godot
env_config:
  seed: 3
  show_window: false
multiagent:
  policies:
    left: {lr: 0.5}
    right: {}
  policy_mapping_fn: |
    def policy_mapping_fn(agent_id, episode, worker, **kwargs):
        return "left" if agent_id.startswith("policy0") else "right"
  policies_to_train: [left]
train_batch_size: 32
sgd_minibatch_size: 16
num_sgd_iter: 2
lr: 3e-4
lambda: 0.9
"""
NESTED = """
algorithm: PPO
checkpoint_frequency: 1
stop:
  training_iteration: 2
config:
  env: godot
  framework: torch
  horizon: 100
  multiagent:
    policies: [one]
  model: {fcnet_hiddens: [16], vf_share_layers: true}
  train_batch_size: 32
  minibatch_size: 16
  num_epochs: 1
"""


def test_both_forms_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "flat.yaml").write_text(FLAT)
    (folder / "nested.yaml").write_text(NESTED)
    flat, nested = read_config_file(Path("flat.yaml")), read_config_file(Path("nested.yaml"))
    told = capsys.readouterr().err
    assert "flat.yaml: running the code of its policy_mapping_fn" in told
    assert "nested.yaml: settings of an older RLlib, not used: horizon" in told
    assert flat.settings == {
        "train_batch_size_per_learner": 32,
        "minibatch_size": 16,
        "num_epochs": 2,
        "lr": 0.0003,
        "lambda_": 0.9,
    }
    assert flat.game == {"seed": 3, "show_window": False}
    assert flat.to_train == ("left",)
    assert nested.algorithm == "ppo"
    assert nested.stop == {"iterations": 2}
    assert nested.policies == {"one": {}}
    assert nested.model == {"fcnet_hiddens": [16], "vf_share_layers": True}


def test_arguments_of_the_game_come_from_the_file_and_the_command_line(folder: Path) -> None:
    (folder / "c.yaml").write_text("env_config: {arguments: {map: small, speed: 2}}")
    given = RllibSettings(config_file=Path("c.yaml"), env_path="x", arguments={"speed": 3})
    assert plan_of(given).game["arguments"] == {"map": "small", "speed": 3}


def test_the_file_of_the_page(folder: Path) -> None:
    page = (ROOT / "docs" / "rllib.md").read_text()
    (folder / "c.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    found = read_config_file(Path("c.yaml"))
    assert found.algorithm == "ppo"
    assert found.stop == {"timesteps": 500_000}
    assert set(found.policies) == {"seeker", "hider"}
    assert found.mapping is not None
    assert found.mapping("hider:3") == "hider"


def test_the_example_file_changes_nothing(folder: Path) -> None:
    found = read_config_file(ROOT / "rllib_config.yaml")
    assert found == FileConfig(
        game={"env_path": None, "show_window": False, "seed": 0},
        checkpoint_frequency=20,
        model={"fcnet_hiddens": [64, 64]},
        settings={"gamma": 0.99},
    )


def test_every_option_of_the_example_file_is_known_in_both_forms(folder: Path) -> None:
    example = (ROOT / "rllib_config.yaml").read_text()
    flat = re.sub(r"^( *)#(?=\S| +\w+:)", r"\1", example, flags=re.MULTILINE)
    flat = "\n".join(line for line in flat.splitlines() if re.match(r" *[\w-]+:", line))
    top, _, rest = flat.partition("env: godot\n")
    (folder / "flat.yaml").write_text(flat)
    (folder / "nested.yaml").write_text(f"{top}config:\n{textwrap.indent(rest, '  ')}\n")
    found, nested = read_config_file(Path("flat.yaml")), read_config_file(Path("nested.yaml"))
    assert found.mapping is not None
    assert nested.mapping is not None
    assert found.mapping("enemies:3") == nested.mapping("enemies:3") == "policy_2"
    assert dataclasses.replace(found, mapping=None) == dataclasses.replace(nested, mapping=None)
    assert found.algorithm == "ppo"
    assert set(found.stop) == {"timesteps", "seconds", "iterations", "reward"}
    assert len(found.settings) == 12
    config = config_of_policies(algorithm_of("ppo"), found.settings, {}, {})
    assert config.num_epochs == 30
    assert model_config(found.model).use_lstm


def test_mappings_travel_to_other_processes() -> None:
    code = "def policy_mapping_fn(agent_id):\n    return agent_id[0]\n"
    for mapping, right in (
        (CodeMapping(code, "here"), "e"),
        (TableMapping({"enemy:3": "boss", "enemy": "crowd"}), "boss"),
    ):
        again = pickle.loads(pickle.dumps(mapping))  # noqa: S301 - our own
        assert mapping("enemy:3", None) == again("enemy:3", episode=None) == right
    assert TableMapping({"enemy": "crowd"})("enemy:7") == "crowd"
    assert TableMapping({"enemy": "crowd"})("friend:1") == "friend"


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_two_policies_from_a_file(
    folder: Path, game: Game, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTROLLER_METRICS", "1")
    (folder / "rllib_config.yaml").write_text(FLAT)
    assert train(game(kind="discrete", agents=4)) == 0
    metrics = read_metrics(capsys.readouterr().out)
    assert [metric["training_iteration"] for metric in metrics] == [1, 2]
    left, right = (metrics[-1]["policies"][name] for name in ("left", "right"))
    assert left["completed_episodes"] > 0
    assert right["completed_episodes"] > 0
    assert left["learner"]["cur_lr"] == 0.5
    assert "policy_loss" in left["learner_stats"]
    assert "policy_loss" not in right["learner_stats"], "it is not trained"
    assert metrics[-1]["num_agent_steps_sampled"] == metrics[-1]["timesteps_total"] == 64
    assert metrics[-1]["num_env_steps_sampled"] == 16


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_a_controllers_folder(folder: Path, game: Game, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line goes before its file, that before YAML; STOP is removed, then obeyed."""
    home = folder / ".rlcontroller"
    home.mkdir()
    (home / "STOP").touch()
    said = {
        "mode": "multi_agent",
        "experiment_name": "My Run",
        "timesteps": 10_000_000,
        "rllib_num_workers": 3,
        "rllib_train_batch_size": 64,
        "rllib_num_sgd_iter": 1,
        "rllib_stop_mode": "none",
        "rllib_stop_file_path": ".rlcontroller/STOP",
        "rllib_checkpoint_frequency": 2,
        "rllib_gamma": 0.5,
    }
    (home / "training_config.json").write_text(json.dumps(said))
    (folder / "rllib_config.yaml").write_text(NESTED.replace("train_batch_size: 32", "gamma: 0.9"))
    stopper = threading.Thread(target=_stop_later, args=(home,))
    stopper.start()
    assert train(game(kind="box"), "--sgd_minibatch_size", "32") == 0
    stopper.join()
    (record,) = home.glob("runs/*_my-run.json")
    found = json.loads(record.read_text())
    assert found["status"] == "stopped"
    assert found["policies"] == ["one"]
    settings = found["settings"]
    assert settings["gamma"] == 0.5
    assert settings["minibatch_size"] == 32
    assert settings["train_batch_size_per_learner"] == 64
    assert found["env_runners"] == 0, "the command line says so"
    lines = record.with_suffix(".metrics.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["policies"]["one"]["completed_episodes"] > 0
    saved = sorted(path.name for path in run_folder(folder, "My Run_1").glob("checkpoint_*"))
    assert "checkpoint_000002" in saved
    assert f"{saved[-1]}\n" in capsys.readouterr().out.partition("--restore ")[2]


def _stop_later(home: Path) -> None:
    while not any(
        len(path.read_text().splitlines()) >= 2 for path in home.glob("runs/*.metrics.jsonl")
    ):
        time.sleep(0.05)
    (home / "STOP").touch()


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_a_game_that_somebody_else_starts(folder: Path, game: Game) -> None:
    port = str(free_port())
    again_until_it_connects = 'for n in $(seq 300); do "$0" "$@" && exit 0; sleep 0.2; done; exit 1'
    words = [str(game(kind="box")), f"--port={port}", "--env_seed=1"]
    with subprocess.Popen(["sh", "-c", again_until_it_connects, *words]) as by_hand:
        assert train("debug", *ROUNDS, "--port", port) == 0
        assert by_hand.wait(10.0) == 0
    assert manifest(folder)["env_runners"] == 0


def test_stop_modes_and_limits(folder: Path) -> None:
    def limits(**options: Any) -> StopLimits:
        return plan_of(RllibSettings(env_path="game", **options)).limits

    assert limits() == StopLimits(timesteps=1_000_000)
    assert limits(time_seconds=3.0) == StopLimits(seconds=3.0)
    assert limits(stop_mode="none", timesteps=96) == StopLimits()
    assert limits(stop_mode="timesteps", timesteps=96, time_seconds=3.0) == StopLimits(timesteps=96)
    assert limits(stop_mode="time_seconds", timesteps=96, time_seconds=3.0) == StopLimits(
        seconds=3.0
    )
    assert limits(stop_mode="time_seconds", timesteps=96) == StopLimits(timesteps=96)
    (folder / "rllib_config.yaml").write_text("stop: {training_iteration: 2, time_total_s: 5}\n")
    assert limits(timesteps=96) == StopLimits(timesteps=96, seconds=5, iterations=2)
