"""Models of plain Stable-Baselines3 are read without running a line of what is stored in them."""

import base64
import io
import json
import pickle
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnxruntime
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from estragon.cli import main
from estragon.trainers.sb3.algorithms import ALGORITHMS
from tests.trainers.sb3.test_export import CHOOSE, MANY, PUSH, STEER, model_of

Members = dict[str, bytes]


class Scene(gymnasium.Env[Any, Any]):
    """Whatever spaces a test needs; nobody plays in it."""

    def __init__(self, sees: spaces.Space[Any], does: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = sees, does

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}


class Evil:
    """Writes a file when it is unpickled."""

    def __init__(self, flag: Path) -> None:
        self.flag = flag

    def __reduce__(self) -> Any:
        return (Path.touch, (self.flag,))


class Odd(BaseFeaturesExtractor):
    """A network of one's own."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, 5)

    def forward(self, observations: Any) -> Any:
        return observations["obs"]


def rewrite(path: Path, change: Callable[[Members], None]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def poisoned(flag: Path) -> Callable[[Members], None]:
    """Every pickle in the description would write the flag."""
    payload = base64.b64encode(pickle.dumps(Evil(flag))).decode()

    def poison(members: Members) -> None:
        data = json.loads(members["data"])
        for value in data.values():
            if isinstance(value, dict) and ":serialized:" in value:
                value[":serialized:"] = payload
        members["data"] = json.dumps(data).encode()

    return poison


def set_attribute(key: str, value: Any) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members["data"] = json.dumps(json.loads(members["data"]) | {key: value}).encode()

    return change


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_without_unpickling(
    algo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, flag = tmp_path / "theirs.zip", tmp_path / "flag"
    does = PUSH if algo in ("sac", "td3", "ddpg") else CHOOSE
    model_of(algo, does).save(path)
    rewrite(path, poisoned(flag))
    assert main(["export", "sb3", str(path)]) == 0, capsys.readouterr().err
    assert f"theirs.onnx: {algo}, acts like the model" in capsys.readouterr().out
    assert not flag.exists()


@pytest.mark.parametrize("kind", ["dict", "image", "numbers"])
def test_dict_and_image_observations(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, flag = tmp_path / "theirs.zip", tmp_path / "flag"
    model: Any
    if kind == "dict":
        arguments = {"net_arch": [8], "activation_fn": torch.nn.ReLU}
        model = PPO("MultiInputPolicy", Scene(MANY, STEER), n_steps=64, policy_kwargs=arguments)
    elif kind == "image":
        image = spaces.Box(0, 255, (36, 40, 3), np.uint8)
        model = DQN("CnnPolicy", Scene(image, CHOOSE), buffer_size=1)
    else:
        low = np.array([-1.0, -2.0, 0.0], np.float32)
        model = PPO("MlpPolicy", Scene(spaces.Box(low, low + 4.0), PUSH), n_steps=64, use_sde=True)
    model.save(path)
    rewrite(path, poisoned(flag))
    assert main(["export", "sb3", str(path)]) == 0, capsys.readouterr().err
    assert not flag.exists()
    ports = onnxruntime.InferenceSession(path.with_suffix(".onnx")).get_inputs()
    shapes = {port.name: port.shape[1:] for port in ports if port.name != "state_ins"}
    assert (
        shapes
        == {
            "dict": {"camera_2d": [36, 40, 3], "grid": [2, 3], "near": [1], "obs": [5]},
            "image": {"obs": [36, 40, 3]},
            "numbers": {"obs": [3]},
        }[kind]
    )


def test_networks_of_ones_own_need_trust(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, flag = tmp_path / "theirs.zip", tmp_path / "flag"
    sees = spaces.Dict({"obs": spaces.Box(-1.0, 1.0, (5,), np.float32)})
    arguments = {"features_extractor_class": Odd}
    PPO("MultiInputPolicy", Scene(sees, PUSH), n_steps=64, policy_kwargs=arguments).save(path)
    words = ["export", "sb3", str(path)]
    assert main([*words, "--trust"]) == 0, capsys.readouterr().err
    path.with_suffix(".onnx").unlink()
    rewrite(path, poisoned(flag))
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "Odd" in error
    assert "runs code that is stored in it; use --trust" in error
    assert error.count("\n") == 1
    assert not flag.exists()
    assert not path.with_suffix(".onnx").exists()


def evil_tensors(flag: Path) -> bytes:
    stream = io.BytesIO()
    torch.save({"weight": Evil(flag)}, stream)
    return stream.getvalue()


def spaces_of(**changed: Any) -> dict[str, Any]:
    return {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", "n": "4", **changed}


HUGE = 10**9
BAD: dict[str, tuple[Callable[[Members, Path], None], str]] = {
    "evil tensors": (
        lambda members, flag: members.update({"policy.pth": evil_tensors(flag)}),
        "holds more than tensors",
    ),
    "no tensors": (lambda members, _: members.__delitem__("policy.pth"), "no policy.pth"),
    "cut tensors": (
        lambda members, _: members.update({"policy.pth": members["policy.pth"][:999]}),
        "damaged",
    ),
    "other tensors": (
        lambda members, _: members.update({"policy.pth": members["policy.optimizer.pth"]}),
        "tensors",
    ),
    "huge layers": (
        lambda members, _: set_attribute("policy_kwargs", {"net_arch": [HUGE]})(members),
        f"do not fit layers of [{HUGE}]",
    ),
    "huge choices": (
        lambda members, _: set_attribute("action_space", spaces_of(n=str(HUGE)))(members),
        "choices",
    ),
    "odd space": (
        lambda members, _: set_attribute("action_space", {":type:": "<class 'os.system'>"})(
            members
        ),
        "a space like <class 'os.system'>",
    ),
    "no description": (lambda members, _: members.update(data=b"{}"), "unknown algorithm"),
    "not JSON": (lambda members, _: members.update(data=b"\x80\x04evil"), "is not a model"),
    "a list": (lambda members, _: members.update(data=b"[1]"), "is not a model"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("trust", [False, True])
def test_bad_files_are_refused_in_one_line(
    case: str, trust: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = BAD[case]
    if trust and said in ("choices", "a space like <class 'os.system'>"):
        pytest.skip("a trusted file is unpickled instead")
    path, flag = tmp_path / "theirs.zip", tmp_path / "flag"
    model_of("ppo", PUSH).save(path)
    rewrite(path, lambda members: change(members, flag))
    start = time.monotonic()
    assert main(["export", "sb3", str(path), *(["--trust"] if trust else [])]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert time.monotonic() - start < 30.0
    assert not flag.exists()
    assert not path.with_suffix(".onnx").exists()


def test_cut_and_damaged_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "theirs.zip"
    model_of("ppo", PUSH).save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for number in range(24):
        cut = bytearray(whole[: random.integers(len(whole))]) if number % 2 else bytearray(whole)
        for place in random.integers(max(len(cut), 1), size=8 if number % 2 == 0 else 0):
            cut[place] ^= 0xFF
        path.write_bytes(cut)
        assert main(["export", "sb3", str(path)]) == 2, number
        assert capsys.readouterr().err.count("\n") == 1


def test_a_bomb_is_not_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", b" " * 2**29)
    assert main(["export", "sb3", str(path)]) == 2
    assert "larger than 256 MB" in capsys.readouterr().err


def test_a_huge_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "huge.zip"
    with path.open("wb") as stream:
        stream.truncate(2**34)
    assert main(["export", "sb3", str(path)]) == 2
    assert "larger than 8 GB" in capsys.readouterr().err
