"""Policies of RLlib as ONNX: memories, distributions of returns, and checkpoints of others."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from gymnasium import spaces

from estragon.cli import main
from estragon.support.errors import UserError
from estragon.trainers.rllib.checkpoint import ABOUT, CLASS_FILE, RLLIB_FILE, STATE, PolicySpaces
from estragon.trainers.rllib.env import flat_space
from estragon.trainers.rllib.onnx_export import OnnxPolicy, compare, exported
from estragon.trainers.rllib.plan import algorithm_of, config_of_policies
from estragon.trainers.rllib.training import TrainedPolicy
from estragon.trainers.spaces import to_plain
from tests.trainers.sb3.test_foreign import Evil, evil_tensors

pytestmark = pytest.mark.filterwarnings("ignore")
SEES = spaces.Dict({"near": spaces.Discrete(3), "obs": spaces.Box(-np.inf, np.inf, (4,))})
ACTIONS: dict[str, tuple[spaces.Space[Any], tuple[tuple[str, str, int], ...]]] = {
    "push": (spaces.Box(-1.0, 1.0, (2,)), (("push", "continuous", 2),)),
    "kick": (spaces.Discrete(3), (("kick", "discrete", 3),)),
}
LSTM = {"use_lstm": True, "lstm_cell_size": 6, "fcnet_hiddens": [8]}


def policy_of(
    algo: str, action: str, model: dict[str, Any], seed: int = 0, **settings: Any
) -> TrainedPolicy:
    """An untrained policy."""
    torch.manual_seed(seed)
    does, layout = ACTIONS[action]
    both = {"p": (flat_space(SEES), does)}
    config = config_of_policies(algorithm_of(algo), settings, both, {"p": model})
    module = config.get_multi_rl_module_spec(spaces=both).build()["p"]
    role = PolicySpaces(to_plain(SEES), to_plain(does), layout)
    return TrainedPolicy(module.eval(), algo, role, 77)


@pytest.mark.parametrize(
    ("algo", "action", "model", "settings"),
    [
        ("ppo", "push", LSTM, {}),
        ("ppo", "kick", LSTM | {"vf_share_layers": True}, {}),
        ("appo", "kick", LSTM, {}),
        ("impala", "push", {}, {}),
        ("sac", "push", {}, {}),
        ("dqn", "kick", {}, {"dueling": False}),
        ("dqn", "kick", {}, {"num_atoms": 7, "v_min": -3.0, "v_max": 5.0}),
        ("dqn", "kick", {}, {"num_atoms": 7, "v_min": -3.0, "v_max": 5.0, "dueling": False}),
    ],
)
def test_it_acts_like_the_policy(
    algo: str, action: str, model: dict[str, Any], settings: dict[str, Any]
) -> None:
    policy = policy_of(algo, action, model, **settings)
    session = onnxruntime.InferenceSession(exported(policy))
    shapes = {port.name: port.shape for port in session.get_inputs()}
    memory = [12] if "use_lstm" in model else []
    assert shapes["state_ins"] == ["batch", *memory]
    about = session.get_modelmeta().custom_metadata_map
    assert (about["algorithm"], about["training_steps"]) == (algo, "77")
    assert json.loads(about["action_space"])[0]["key"] == action
    other = policy_of(algo, action, model, seed=1, **settings)
    with pytest.raises(UserError, match="does not act like"):
        compare(session, other, OnnxPolicy(other))


def test_a_checkpoint_of_plain_rllib_needs_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, flag = tmp_path / "theirs", tmp_path / "flag"
    folder.mkdir()
    (folder / RLLIB_FILE).write_text("{}")
    (folder / CLASS_FILE).write_bytes(pickle.dumps(Evil(flag)))
    assert main(["export", "rllib", str(folder), "-o", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "runs code that is stored in it; use --trust" in error
    assert error.count("\n") == 1
    assert not flag.exists()
    (folder / CLASS_FILE).write_bytes(b"cut")
    assert main(["export", "rllib", str(folder), "-o", str(tmp_path), "--trust"]) == 2
    assert "cannot use" in capsys.readouterr().err


def test_evil_tensors_in_a_checkpoint_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, flag = tmp_path / "checkpoint_000001", tmp_path / "flag"
    folder.mkdir()
    role = {"sees": to_plain(SEES), "does": to_plain(ACTIONS["kick"][0]), "actions": []}
    about = {
        "algo": "ppo",
        "settings": {},
        "model": {},
        "models": {"p": {}},
        "policies": {"p": role},
    }
    (folder / ABOUT).write_text(json.dumps(about))
    (folder / STATE).write_bytes(evil_tensors(flag))
    assert main(["export", "rllib", str(folder), "-o", str(tmp_path)]) == 2
    assert "is damaged" in capsys.readouterr().err
    assert not flag.exists()
