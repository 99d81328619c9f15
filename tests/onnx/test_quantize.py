"""int8 by onnxruntime's quantiser: smaller, alike in both engines, and almost the same actions."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from estragon.onnx.compare import GodotRuntime, OnnxRuntime, compare
from estragon.onnx.metadata import read_metadata
from estragon.onnx.quantize import outputs_of, quantized
from estragon.onnx.torch_export import export_policy, recurrent_step, state_size
from estragon.support.errors import UserError
from tests.onnx.networks import export
from tests.onnx.test_tag_export import LAYOUTS, RULES, lively, written


class Pixels(nn.Module):
    """An image with its channels last, as games send it, through padded windows of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
            nn.Conv2d(6, 9, (2, 3), stride=(1, 2)),
            nn.Tanh(),
            nn.Conv2d(9, 4, 2, bias=False),
            nn.Flatten(),
            nn.LazyLinear(3),
        )

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net(obs.permute(0, 3, 1, 2).float() / 255.0), state_ins


def pixels(path: Path) -> Path:
    torch.manual_seed(0)
    network = Pixels().eval()
    inputs = [torch.rand(2, 12, 14, 3), torch.zeros(2)]
    network(*inputs)
    path.write_bytes(export_policy(network, inputs, ["obs", "state_ins"]))
    return path


def test_images_are_convolved_without_gathering(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    path = pixels(tmp_path / "pixels.onnx")
    assert "Cast" not in {node.op_type for node in onnx.load(path).graph.node}
    for engine in (godot_runtime, onnx_runtime):
        engine.load(path)
    steps = [name for name, _ in godot_runtime.profile(images(2), 0.01)]
    # scaling, transposition and activations are part of the convolutions
    assert [name.split()[0] for name in steps if name.startswith(("Conv", "MaxPool"))].count(
        "Conv"
    ) == 3
    assert not [name for name in steps if name.startswith(("Div", "Transpose", "Relu", "Tanh"))]
    assert compare(godot_runtime, onnx_runtime, 8, np.random.default_rng(0))["agrees"]


def images(batch: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        "obs": random.integers(256, size=(batch, 12, 14, 3)).astype(np.float32),
        "state_ins": np.zeros(batch, np.float32),
    }


def test_an_image_network(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    path, small = pixels(tmp_path / "pixels.onnx"), tmp_path / "pixels.int8.onnx"
    small.write_bytes(quantized(path.read_bytes(), [images(4, seed) for seed in range(32)]))
    assert read_metadata(small)["quantization"] == "int8"
    for engine in (godot_runtime, onnx_runtime):
        engine.load(small)
    feed = images(5, seed=99)
    ours, right = godot_runtime.run(feed)["output"], onnx_runtime.run(feed)["output"]
    # a sum that rounds the other way moves by one step of 256
    assert np.abs(ours - right).max() < 0.02
    assert np.abs(ours - outputs_of(path, [feed])).max() < 0.05


def test_a_policy_of_tag(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    from estragon.onnx.tag_export import sample_observations

    policy = lively("seeker", seed=4)
    path, small = written(policy, tmp_path), tmp_path / "small.onnx"
    seen = sample_observations(policy, RULES, LAYOUTS)[:512]
    state = np.zeros(1, np.float32)
    feeds = [{"obs": row[None], "state_ins": state} for row in seen[:256]]
    small.write_bytes(quantized(path.read_bytes(), feeds))
    assert small.stat().st_size < 0.7 * path.stat().st_size
    rest = {"obs": seen[256:], "state_ins": np.zeros(256, np.float32)}
    godot_runtime.load(small)
    assert np.allclose(godot_runtime.run(rest)["output"], outputs_of(small, [rest]), atol=1e-4)
    steps = [name for name, _ in godot_runtime.profile(rest, 0.01)]
    assert not [name for name in steps if name.startswith("DequantizeLinear")]
    apart = np.abs(outputs_of(path, [rest]) - outputs_of(small, [rest])).max(axis=1)
    assert np.mean(apart > 1e-3) < 0.3


def test_what_cannot_be_quantized(tmp_path: Path) -> None:
    feeds = [{"obs": np.zeros((1, 12), np.float32), "state_ins": np.zeros(1, np.float32)}] * 32
    old = export("mlp", tmp_path / "old.onnx", dynamo=False, opset=11)
    with pytest.raises(UserError, match="opset 13 or newer, got 11"):
        quantized(old.read_bytes(), feeds)
    new = export("mlp", tmp_path / "new.onnx", dynamo=False, opset=13)
    with pytest.raises(UserError, match="at least 16 observations to calibrate, got 3"):
        quantized(new.read_bytes(), feeds[:3])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bias", [True, False])
def test_a_recurrent_step_is_torchs(kind: type[nn.LSTM] | type[nn.GRU], bias: bool) -> None:
    torch.manual_seed(1)
    cell = kind(5, 4, num_layers=2, bias=bias)
    state = torch.zeros(3, state_size(cell))
    row = torch.randn(6, 3, 5)
    expected = cell(row)[0]
    for step in range(6):
        output, state = recurrent_step(cell, row[step], state)
        assert torch.allclose(output, expected[step], atol=1e-6)
