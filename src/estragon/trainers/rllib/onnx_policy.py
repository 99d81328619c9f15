"""A policy of RLlib as one network: observations, a state and lengths in, action numbers out.

The outputs are what games of Godot RL Agents expect, in the order of the game's actions: logits (or
values) of choices, and of continuous actions the means, then the logarithms of their spreads where
the policy has any.
"""

from typing import Any

import torch
from gymnasium import spaces
from ray.rllib.core.columns import Columns
from torch import nn

from estragon.support.errors import UserError
from estragon.trainers.rllib.player import Player
from estragon.trainers.spaces import is_image

LENGTHS = "seq_lens"


class OnnxPolicy(nn.Module):
    """What is exported."""

    def __init__(self, player: Player) -> None:
        """Take the networks of a policy."""
        super().__init__()
        self.policy: Any = player.module
        self.parts = player.sees.spaces
        self.algo = player.algo
        self.order = columns(player) if self.algo in ("ppo", "appo", "impala") else None

    def input_shapes(self) -> list[tuple[int, ...]]:
        """Of one agent's observations, as a game sends them."""
        return [
            (1,) if isinstance(part, spaces.Discrete) else tuple(part.shape or ())
            for part in self.parts.values()
        ]

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Observations, then the state, which is passed on."""
        *seen, state = inputs
        rows = [
            self._plain(part, value) for part, value in zip(self.parts.values(), seen, strict=True)
        ]
        batch = {Columns.OBS: rows[0] if len(rows) == 1 else torch.cat(rows, dim=1)}
        if self.algo == "dqn":
            return self._values(self.policy.encoder(batch)["encoder_out"]), state
        if self.algo == "sac":
            said = self.policy.pi(self.policy.pi_encoder(batch)["encoder_out"])
            return torch.tanh(said[:, : said.shape[1] // 2]), state
        said = self.policy.pi(self.policy.encoder(batch)["encoder_out"]["actor"])
        return said if self.order is None else said[:, self.order], state

    def _values(self, encoded: torch.Tensor) -> torch.Tensor:
        """Of every choice."""
        if self.policy.num_atoms > 1:
            raise UserError("dqn with num_atoms above 1 cannot be written as ONNX")
        values: torch.Tensor = self.policy.af(encoded)
        if self.policy.uses_dueling:
            values = values - values.mean(dim=-1, keepdim=True) + self.policy.vf(encoded)
        return values

    def _plain(self, part: spaces.Space[Any], value: torch.Tensor) -> torch.Tensor:
        if isinstance(part, spaces.Discrete):
            choices = torch.arange(int(part.n), dtype=torch.float32)
            return 1.0 - torch.clamp(torch.abs(value - choices), 0.0, 1.0)
        if is_image(part):
            return value / 255.0
        return value.reshape(-1, int(torch.tensor(part.shape).prod()))


def columns(player: Player) -> list[int] | None:
    """Where the numbers of each action are, in the game's order; None: they are in order."""
    actions = player.role.actions
    does = player.does
    if isinstance(does, spaces.Discrete | spaces.MultiDiscrete):
        return None
    found: list[int] = []
    if isinstance(does, spaces.Box):
        means = int(does.shape[0])
        place = 0
        for _, _, size in actions:
            found += [*range(place, place + size), *range(means + place, means + place + size)]
            place += size
        return found
    # Mixed ones are a Dict, whose keys RLlib has in the order of the alphabet.
    places, place = {}, 0
    for key, kind, size in sorted(actions):
        places[key] = place
        place += 2 * size if kind == "continuous" else size
    for key, kind, size in actions:
        found += range(places[key], places[key] + (2 * size if kind == "continuous" else size))
    return found
