"""GodotRLModel as a game uses it: memories of agents, actions, hot swap, worker threads."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from estragon.onnx.compare import GodotRuntime, OnnxRuntime
from tests.onnx.networks import Gru, export

PROBE = "res://tests/onnx_probe.gd"
MOVE_AND_KICK = {
    "move": {"size": 2, "action_type": "continuous"},
    "kick": {"size": 3, "action_type": "discrete"},
}


class Model:
    """The model in Godot."""

    def __init__(self, godot: GodotRuntime) -> None:
        self._godot = godot
        self.error = ""

    def open(self, path: Path) -> bool:
        return bool(self._ask("open", path=str(path)))

    def predict(self, obs: Any, agents: Any = None, *, in_a_thread: bool = False) -> Any:
        return self._ask("work" if in_a_thread else "predict", obs=obs, agents=agents)

    def act(self, obs: Any, space: Any, seed: int | None = None) -> Any:
        drawn = {"seed": seed or 0, "is_deterministic": seed is None}
        return self._ask("act", obs=obs, space=space, agents=None, **drawn)

    def use_threads(self, is_on: bool) -> None:
        self._ask("threads", is_on=is_on)

    def reset(self, agent: Any = None) -> None:
        self._ask("reset", agent=agent)

    def _ask(self, what: str, **arguments: Any) -> Any:
        self.said, _ = self._godot.ask({"do": "ask", "script": PROBE, "ask": what, **arguments})
        self.error = self.said["error"]
        return self.said["found"]


@pytest.fixture
def model(godot_runtime: GodotRuntime) -> Model:
    return Model(godot_runtime)


def write(network: nn.Module, path: Path, *given: torch.Tensor, names: list[str]) -> Path:
    """Export with any number of agents; inputs are named, outputs `output` and then as inputs."""
    outs = ["output", *(name.replace("_in", "_out") for name in names[1:])]
    inner = {name: {1: "batch"} if "deep" in name else {0: "batch"} for name in names + outs}
    torch.onnx.export(
        network.eval(),
        given,
        str(path),
        input_names=names,
        output_names=outs,
        dynamic_axes=inner,
        dynamo=False,
        opset_version=13,
    )
    return path


class Echo(nn.Module):
    """Says what it saw two steps ago: impossible without a memory."""

    def forward(self, obs: torch.Tensor, state_ins: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return state_ins[:, :1], torch.cat([state_ins[:, 1:], obs], 1)


class DeepEcho(nn.Module):
    """The same with a state of (layers, batch, 1), as torch's own memories have it."""

    def forward(self, obs: torch.Tensor, deep_in: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return deep_in[0], torch.cat([deep_in[1:], obs[None]], 0)


@pytest.fixture(params=["state_ins", "deep_in"])
def echo(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "echo.onnx"
    if request.param == "state_ins":
        return write(Echo(), path, torch.zeros(2, 1), torch.zeros(2, 2), names=["obs", "state_ins"])
    return write(
        DeepEcho(), path, torch.zeros(2, 1), torch.zeros(2, 2, 1), names=["obs", "deep_in"]
    )


@pytest.mark.filterwarnings("ignore")
def test_every_agent_remembers_for_itself(echo: Path, model: Model) -> None:
    assert model.open(echo), model.error
    assert model.said["has_memory"]
    seen: dict[str, list[float]] = {"ann": [], "bob": [], "cy": []}
    for step in range(8):
        names = ["ann", "bob", "cy"] if step % 3 else ["cy", "ann"]
        if step == 5:
            model.reset("ann")
            seen["ann"] = []
        obs = [[100.0 * ord(name[0]) + step] for name in names]
        for name, (value,), found in zip(names, obs, model.predict(obs, names), strict=True):
            expected = seen[name][-2] if len(seen[name]) >= 2 else 0.0
            assert found["output"] == [expected], (step, name)
            seen[name].append(value)
    model.reset()
    assert model.predict([[1.0], [2.0]], ["ann", "bob"])[0]["output"] == [0.0]


@pytest.mark.filterwarnings("ignore")
def test_a_memory_of_torch_goes_on_as_in_onnxruntime(
    tmp_path: Path, model: Model, onnx_runtime: OnnxRuntime
) -> None:
    path = export("gru", tmp_path / "gru.onnx", dynamo=False, opset=13)
    assert model.open(path), model.error
    onnx_runtime.load(path)
    random = np.random.default_rng(3)
    state = np.zeros((3, 16), np.float32)
    for _ in range(6):
        obs = random.normal(size=(3, 12)).astype(np.float32)
        right = onnx_runtime.run({"obs": obs, "state_ins": state})
        state = right["state_outs"]
        found = model.predict(obs.tolist(), ["a", "b", "c"])
        ours = np.array([agent["output"] for agent in found])
        assert np.allclose(ours, right["output"], 1e-4, 1e-5)


class Fixed(nn.Module):
    """Always the same numbers."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = nn.Parameter(torch.tensor([numbers]))

    def forward(self, obs: torch.Tensor, state_ins: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.numbers + 0.0 * obs[:, :1], state_ins


def fixed(folder: Path, *numbers: float) -> Path:
    path = folder / f"fixed{len(numbers)}.onnx"
    given = (torch.zeros(2, 4), torch.zeros(2))
    return write(Fixed(*numbers), path, *given, names=["obs", "state_ins"])


@pytest.mark.filterwarnings("ignore")
def test_means_and_logits(tmp_path: Path, model: Model) -> None:
    assert model.open(fixed(tmp_path, 0.25, -3.0, 1.0, 2.0, 0.0))
    assert model.said["output_size"] == 5
    assert model.act([0, 0, 0, 0], MOVE_AND_KICK) == {"move": [0.25, -1.0], "kick": 1}
    assert model.act({"obs": [0, 0, 0, 0]}, MOVE_AND_KICK)["kick"] == 1
    drawn = Counter(model.act([0] * 4, MOVE_AND_KICK, seed)["kick"] for seed in range(1, 300))
    weights = [math.exp(logit) for logit in (1.0, 2.0, 0.0)]
    for choice, weight in enumerate(weights):
        assert abs(drawn[choice] / 299 - weight / sum(weights)) < 0.1


@pytest.mark.filterwarnings("ignore")
def test_means_then_spreads(tmp_path: Path, model: Model) -> None:
    space = {"turn": {"size": 2, "action_type": "continuous"}}
    assert model.open(fixed(tmp_path, 0.1, -0.2, -2.0, -5.0))
    assert model.act([0] * 4, space)["turn"] == pytest.approx([0.1, -0.2])
    drawn = np.array([model.act([0] * 4, space, seed)["turn"] for seed in range(1, 200)])
    assert drawn.mean(0) == pytest.approx([0.1, -0.2], abs=0.05)
    assert drawn.std(0) == pytest.approx([math.exp(-2), math.exp(-5)], rel=0.3)


@pytest.mark.filterwarnings("ignore")
def test_what_does_not_fit_is_said(tmp_path: Path, model: Model) -> None:
    assert model.open(fixed(tmp_path, 0.0, 1.0))
    model.act([0] * 4, MOVE_AND_KICK)
    assert model.error == (
        "the model gives 2 numbers, the action space needs 5 "
        "(move: 2 continuous, kick: 3 discrete), or 7 with spreads"
    )
    assert model.predict([0, 0]) == {}
    assert model.error == "'obs' has 2 numbers, the model takes 4"
    assert model.predict([[0] * 4] * 2, ["only one"]) == []
    assert model.error == "1 agents for 2 observations"
    assert model.predict({"obs": {"not": "numbers"}}) == {}
    assert "made of numbers, not of Dictionary" in model.error
    assert model.predict([]) == []


@pytest.mark.filterwarnings("ignore")
def test_a_swap_that_fails_leaves_the_old_policy(tmp_path: Path, model: Model) -> None:
    assert model.open(fixed(tmp_path, 1.0, 2.0))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    assert not model.open(broken)
    assert "broken.onnx" in model.error
    assert model.predict([0] * 4)["output"] == [1.0, 2.0]
    assert model.open(fixed(tmp_path, 3.0, 4.0, 5.0))
    assert model.predict([0] * 4)["output"] == [3.0, 4.0, 5.0]


class SeveralEyes(nn.Module):
    """An image and a vector, as RLlib writes it: with sequence lengths."""

    def forward(
        self, vector: torch.Tensor, camera_2d: torch.Tensor, seq_lens: torch.Tensor
    ) -> torch.Tensor:
        flat = camera_2d.float().flatten(1)
        return torch.cat([vector, flat.sum(1, keepdim=True), seq_lens[:, None].float()], 1)


@pytest.mark.filterwarnings("ignore")
def test_several_inputs_by_name(tmp_path: Path, model: Model) -> None:
    given = (torch.zeros(2, 2), torch.zeros(2, 1, 2, 2, dtype=torch.uint8), torch.zeros(2))
    names = ["vector", "camera_2d", "seq_lens"]
    path = tmp_path / "eyes.onnx"
    torch.onnx.export(
        SeveralEyes(),
        given,
        str(path),
        input_names=names,
        output_names=["output"],
        dynamic_axes={name: {0: "n"} for name in [*names, "output"]},
        dynamo=False,
    )
    assert model.open(path), model.error
    one = {"vector": [1, 2], "camera_2d": "01020304"}
    two = {"camera_2d": [[[1, 0], [0, 250]]], "vector": [3, 4]}
    found = [agent["output"] for agent in model.predict([one, two])]
    assert found == [[1, 2, 10, 1], [3, 4, 251, 1]]
    model.predict({"vector": [1, 2]})
    assert model.error == "the observation lacks 'camera_2d'"


@pytest.mark.filterwarnings("ignore")
def test_a_model_for_one_agent_runs_many(tmp_path: Path, model: Model) -> None:
    path = tmp_path / "one.onnx"
    torch.manual_seed(1)
    network = Gru().eval()
    names: dict[str, Any] = {
        "input_names": ["obs", "state_ins"],
        "output_names": ["output", "state_outs"],
    }
    given = (torch.zeros(1, 12), torch.zeros(1, 16))
    torch.onnx.export(network, given, str(path), dynamo=False, opset_version=13, **names)
    assert model.open(path), model.error
    obs = torch.randn(3, 12)
    with torch.no_grad():
        right = network(obs, torch.zeros(3, 16))[0].numpy()
    found = np.array([agent["output"] for agent in model.predict(obs.tolist())])
    assert np.allclose(found, right, 1e-4, 1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_thread_gives_the_same(tmp_path: Path, model: Model) -> None:
    assert model.open(export("cnn", tmp_path / "cnn.onnx", dynamo=False, opset=13)), model.error
    obs = np.random.default_rng(0).uniform(0, 255, (3, 36, 36)).tolist()
    assert model.predict(obs, in_a_thread=True) == model.predict(obs)


def test_without_threads_it_gives_the_same_at_once(tmp_path: Path, model: Model) -> None:
    """As in a web build."""
    assert model.open(export("mlp", tmp_path / "mlp.onnx", dynamo=False, opset=13)), model.error
    obs = np.linspace(-1.0, 1.0, 12).tolist()
    expected = model.predict(obs)
    model.use_threads(False)
    try:
        assert model.predict(obs, in_a_thread=True) == expected
        assert model.predict(obs[:3], in_a_thread=True) in ({}, None)
        assert "3 numbers" in model.error
    finally:
        model.use_threads(True)
