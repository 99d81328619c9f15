"""Policies as ONNX: the layout that games expect, and the same actions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm

from estragon.cli import main
from estragon.onnx.compare import GodotRuntime, OnnxRuntime
from estragon.onnx.compare import compare as engines_compare
from estragon.onnx.metadata import read_metadata
from estragon.support.errors import UserError
from estragon.trainers.sb3.algorithms import ALGORITHMS, ModelSpec
from estragon.trainers.sb3.export import ExportedPolicy, compare, export
from estragon.trainers.sb3.settings import PolicyType
from estragon.trainers.spaces import checked_observations, game_shape, to_plain
from tests.trainers.conftest import Game
from tests.trainers.sb3.staging import model_path, train

OBS = spaces.Dict({"obs": spaces.Box(-np.inf, np.inf, (5,), np.float32)})
MANY = spaces.Dict(
    {
        "obs": spaces.Box(-np.inf, np.inf, (5,), np.float32),
        "grid": spaces.Box(0.0, 1.0, (2, 3), np.float32),
        "near": spaces.Discrete(4),
        "camera_2d": spaces.Box(0, 255, (36, 40, 3), np.uint8),
    }
)
PUSH = spaces.Box(-1.0, 1.0, (2,), np.float32)
CHOOSE: spaces.Discrete[np.int64] = spaces.Discrete(4)
STEER = spaces.MultiDiscrete([3, 2])


def model_of(
    algo: str,
    actions: spaces.Space[Any],
    observations: spaces.Dict = OBS,
    policy_type: PolicyType = "mlp",
    seed: int = 1,
) -> BaseAlgorithm:
    spec = ModelSpec(
        algo=algo,
        policy_type=policy_type,
        layers=(8, 7),
        hyperparameters={"lstm_hidden_size": 6},
        linear_lr_schedule=False,
        observation_space=to_plain(observations),
        action_space=to_plain(actions),
    )
    return spec.build_without_env(seed)


@pytest.mark.parametrize(
    ("algo", "does", "width"),
    [
        ("ppo", PUSH, 2),
        ("ppo", CHOOSE, 4),
        ("ppo", STEER, 5),
        ("a2c", CHOOSE, 4),
        ("sac", PUSH, 2),
        ("td3", PUSH, 2),
        ("ddpg", PUSH, 2),
        ("dqn", CHOOSE, 4),
        ("maskable_ppo", STEER, 5),
    ],
)
def test_every_algorithm_has_the_layout_of_godot_rl(
    algo: str, does: spaces.Space[Any], width: int, tmp_path: Path
) -> None:
    path = tmp_path / "policy.onnx"
    export(model_of(algo, does), algo, path)
    session = onnxruntime.InferenceSession(path)
    shapes = [(port.name, port.shape) for port in (*session.get_inputs(), *session.get_outputs())]
    assert shapes == [
        ("obs", ["batch", 5]),
        ("state_ins", ["batch"]),
        ("output", ["batch", width]),
        ("state_outs", ["batch"]),
    ]
    file = onnx.load(path)
    assert file.ir_version == 9
    assert file.opset_import[0].version == 13


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "policy.onnx"
    model = model_of("ppo", STEER, MANY, policy_type="cnn")
    model.num_timesteps = 1234
    export(model, "ppo", path)
    about = read_metadata(path)
    assert (about["algorithm"], about["training_steps"], about["memory"]) == ("ppo", "1234", "0")
    assert json.loads(about["observation_space"]) == {
        "camera_2d": {"space": "box", "size": [36, 40, 3]},
        "grid": {"space": "box", "size": [2, 3]},
        "near": {"space": "discrete", "size": [4]},
        "obs": {"space": "box", "size": [5]},
    }
    assert [each["size"] for each in json.loads(about["action_space"])] == [3, 2]
    assert about["normalization"] == "none"
    assert set(json.loads(about["versions"])) == {"estragon", "stable-baselines3", "torch"}


def test_a_thousand_observations_and_edges_are_compared() -> None:
    shapes = [game_shape(part) for part in MANY.spaces.values()]
    drawn = list(checked_observations(MANY.spaces, shapes, np.random.default_rng(0)))
    obs = np.concatenate([parts[list(MANY.spaces).index("obs")] for _, parts in drawn])
    assert len(obs) >= 1_000
    for edge in (0.0, 1.0, -1.0, 1e6, -1e6):
        assert (obs == edge).all(axis=1).any()
    image = np.concatenate(
        [parts[list(MANY.spaces).index("camera_2d")] for _, parts in drawn if len(parts[0]) > 100]
    )
    assert (image == 255.0).all(axis=(1, 2, 3)).any()


def test_a_memory_is_fed_back(tmp_path: Path) -> None:
    path = tmp_path / "policy.onnx"
    model = model_of("recurrent_ppo", PUSH)
    export(model, "recurrent_ppo", path)
    session = onnxruntime.InferenceSession(path)
    state: Any = np.zeros((3, 12), np.float32)
    memory, starts = None, np.ones(3, bool)
    random = np.random.default_rng(2)
    for _ in range(10):
        seen = random.normal(size=(3, 5)).astype(np.float32)
        output, state = session.run(None, {"obs": seen, "state_ins": state})
        actions, memory = model.predict({"obs": seen}, memory, starts, deterministic=True)
        starts = np.zeros(3, bool)
        assert np.allclose(np.clip(output, -1, 1), actions, atol=1e-5)
    assert np.abs(state).max() > 0.0


@pytest.mark.parametrize(("opset", "policy_type"), [(9, "mlp"), (11, "cnn"), (17, "cnn")])
def test_several_observations_are_several_inputs(
    opset: int, policy_type: Any, tmp_path: Path
) -> None:
    model = model_of("ppo", STEER, MANY, policy_type=policy_type)
    export(model, "ppo", tmp_path / "policy.onnx", opset=opset)
    ports = onnxruntime.InferenceSession(tmp_path / "policy.onnx").get_inputs()
    assert {port.name: port.shape[1:] for port in ports} == {
        "obs": [5],
        "grid": [2, 3],
        "near": [1],
        "camera_2d": [36, 40, 3],
        "state_ins": [],
    }


def test_several_observations_as_one_array(tmp_path: Path) -> None:
    model = model_of("ppo", STEER, MANY, policy_type="cnn")
    export(model, "ppo", tmp_path / "policy.onnx", as_array=True)
    ports = onnxruntime.InferenceSession(tmp_path / "policy.onnx").get_inputs()
    size = 5 + 6 + 1 + 36 * 40 * 3
    assert [(port.name, port.shape) for port in ports] == [
        ("obs", ["batch", size]),
        ("state_ins", ["batch"]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["recurrent_ppo", "ppo"])
def test_godot_itself_runs_it(
    algo: str, godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    path = tmp_path / "policy.onnx"
    recurrent = algo == "recurrent_ppo"
    model = model_of(algo, STEER) if recurrent else model_of(algo, STEER, MANY, "cnn")
    export(model, algo, path)
    for engine in (godot_runtime, onnx_runtime):
        engine.load(path)
    random = np.random.default_rng(0)
    assert engines_compare(godot_runtime, onnx_runtime, 8, random)["agrees"]


def test_a_file_that_acts_otherwise_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "policy.onnx"
    export(model_of("ppo", PUSH), "ppo", path)
    model = model_of("ppo", PUSH, seed=2)
    with pytest.raises(UserError, match="does not act like the model"):
        compare(path.read_bytes(), ExportedPolicy(model, "ppo", None), model, None)


def test_scales_are_inside(folder: Path, game: Game) -> None:
    words = ["--normalize", "--onnx_export_path", "policy", "--algo", "ppo"]
    assert train(game(kind="discrete"), *words) == 0
    assert main(["convert", "sb3", str(model_path(folder)), "-o", "converted.onnx"]) == 0
    first, second = folder / "policy.onnx", folder / "converted.onnx"
    assert first.read_bytes() == second.read_bytes()
    # Agents see numbers up to 1009: without scales all hidden neurons would be saturated.
    session = onnxruntime.InferenceSession(first)
    seen = np.array([[0, 1, 2, 500, 0], [0, 1, 2, 900, 0]], np.float32)
    output, _ = session.run(None, {"obs": seen, "state_ins": np.zeros(2, np.float32)})
    assert not np.allclose(output[0], output[1])


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_the_algorithm_of_a_file_is_found_out(
    algo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does = PUSH if algo in ("sac", "td3", "ddpg") else CHOOSE
    model_of(algo, does).save(tmp_path / "theirs.zip")
    other = "a2c" if algo == "ppo" else "ppo"
    assert main(["export", "sb3", str(tmp_path / "theirs.zip"), "--algo", other]) == 2
    assert f"was trained with {algo}, not {other}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--opset", "8"], "--opset: expected 9 to 17, got 8"),
        (["--ir-version", "99"], "--ir-version: expected 3 to"),
        (["-o", "/proc/none/x.onnx"], "cannot write /proc/none/x.onnx"),
        (["--use_obs_arrays"], "Unrecognized"),
    ],
)
def test_what_cannot_be_converted(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_of("ppo", PUSH).save(tmp_path / "m.zip")
    assert main(["export", "sb3", str(tmp_path / "m.zip"), *words]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "m.onnx").exists()
