"""Small torch policies as people make them, written by both of torch's exporters."""

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import nn

BATCH = {0: "batch"}


class Mlp(nn.Module):
    """The godot_rl form: an observation and a state that is handed on."""

    def __init__(self, size: int = 12, hidden: int = 32, actions: int = 3) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size, hidden),
            nn.Tanh(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, actions),
        )

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net(obs), state_ins


class Fancy(nn.Module):
    """Normalisation, softmax and friends in one net."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = nn.functional.gelu(self.norm(self.first(obs.clamp(-2.0, 2.0))))
        logits = self.last(nn.functional.silu(x))
        means, spreads = logits.chunk(2, dim=-1)
        chosen = torch.where(means > 0, means.exp(), nn.functional.elu(means))
        return torch.cat([torch.softmax(logits, -1), chosen, spreads.square()], -1), state_ins


class Cnn(nn.Module):
    """An image net."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 5, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(16, 4),
        )

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.net(obs / 255.0), state_ins


class Gru(nn.Module):
    """A memory of one step at a time; the state is (batch, hidden)."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.last = nn.GRU(12, 16, batch_first=True), nn.Linear(16, 3)

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out, state = self.memory(obs.unsqueeze(1), state_ins.unsqueeze(0))
        return self.last(out.squeeze(1)), state.squeeze(0)


class Lstm(nn.Module):
    """A memory of two parts, side by side in one state."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.last = nn.LSTM(12, 16, batch_first=True), nn.Linear(16, 3)

    def forward(
        self, obs: torch.Tensor, state_ins: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, cell = state_ins[:, :16].contiguous(), state_ins[:, 16:].contiguous()
        out, (hidden, cell) = self.memory(obs.unsqueeze(1), (hidden[None], cell[None]))
        return self.last(out.squeeze(1)), torch.cat([hidden[0], cell[0]], -1)


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "mlp": (Mlp, (12,), ()),
    "fancy": (Fancy, (12,), ()),
    "cnn": (Cnn, (3, 36, 36), ()),
    "gru": (Gru, (12,), (16,)),
    "lstm": (Lstm, (12,), (32,)),
}
"""Network, shape of an observation and of a state."""


def export(name: str, path: Path, *, dynamo: bool, opset: int, seed: int = 0) -> Path:
    """Write an untrained network of this name, with any number of agents at once."""
    kind, obs_shape, state_shape = NETWORKS[name]
    torch.manual_seed(seed)
    network = kind().eval()
    given = (torch.rand(2, *obs_shape), torch.rand(2, *state_shape))
    names: dict[str, Any] = {
        "input_names": ["obs", "state_ins"],
        "output_names": ["output", "state_outs"],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            batch = torch.export.Dim("batch")
            torch.onnx.export(
                network,
                given,
                str(path),
                opset_version=opset,
                dynamo=True,
                verbose=False,
                dynamic_shapes=({0: batch}, {0: batch}),
                **names,
            )
        else:
            axes = dict.fromkeys(names["input_names"] + names["output_names"], BATCH)
            torch.onnx.export(
                network,
                given,
                str(path),
                opset_version=opset,
                dynamo=False,
                dynamic_axes=axes,
                **names,
            )
    return path
