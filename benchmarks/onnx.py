"""How long a decision takes in Godot's ONNX runtime, beside onnxruntime and plain loops."""

import itertools
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from estragon.judge.bench import Figure
from estragon.onnx.compare import GodotRuntime, OnnxRuntime

BATCHES = (1, 32)
SMALL = (84, 64, 64, 3)
PROBE = "res://tests/onnx_probe.gd"


def mlp(*sizes: int) -> nn.Module:
    """Dense layers with tanh between."""
    layers: list[nn.Module] = []
    for width, following in itertools.pairwise(sizes):
        layers += [nn.Linear(width, following), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Gru(nn.Module):
    """64 numbers of memory."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.last = nn.GRU(84, 64), nn.Linear(64, 3)

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        """One step from an empty memory."""
        action: torch.Tensor = self.last(self.memory(obs[None])[0][0])
        return action


def cnn() -> nn.Module:
    """A small image net: 36×36 in colour."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 64),
        nn.ReLU(),
        nn.Linear(64, 4),
    )


def measure(seconds: float) -> list[Figure]:
    """Microseconds a decision of one agent, alone and among 32."""
    networks: dict[str, tuple[nn.Module, Sequence[int]]] = {
        "mlp_84_64_64_3": (mlp(*SMALL), (84,)),
        "mlp_84_128_128_3": (mlp(84, 128, 128, 3), (84,)),
        "gru_84_64_3": (Gru(), (84,)),
        "cnn_36x36": (cnn(), (3, 36, 36)),
    }
    figures = []
    with tempfile.TemporaryDirectory() as folder, GodotRuntime() as godot:
        runtime = OnnxRuntime()
        for name, (network, shape) in networks.items():
            path = _export(network, shape, Path(folder) / f"{name}.onnx")
            godot.load(path)
            runtime.load(path)
            for agents in BATCHES:
                obs = np.random.default_rng(0).normal(size=(agents, *shape)).astype(np.float32)
                ours = godot.time({"obs": obs}, seconds) / agents
                theirs = runtime.time({"obs": obs}, seconds) / agents
                figures += [
                    _figure(f"onnx_{name}_{agents}", ours, agents, "in Godot, pure GDScript"),
                    _figure(f"onnxruntime_{name}_{agents}", theirs, agents, "from Python"),
                ]
        request = {"do": "ask", "script": PROBE, "ask": "plain", "sizes": list(SMALL)}
        plain = float(godot.ask(request | {"seconds": seconds})[0]["usec"])
        figures.append(_figure("plain_loops_mlp_84_64_64_3", plain, 1, "GDScript without blocks"))
    return figures


def _figure(name: str, usec: float, agents: int, note: str) -> Figure:
    return Figure(name, usec, "µs an agent", 1, agents, 1, note)


def _export(network: nn.Module, shape: Sequence[int], path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (torch.zeros(2, *shape),),
            str(path),
            input_names=["obs"],
            output_names=["output"],
            dynamic_axes={"obs": {0: "batch"}, "output": {0: "batch"}},
            dynamo=False,
        )
    return path
