"""The settings of a run: what is learned (`Task`) and how (`PPOConfig`)."""

from dataclasses import dataclass, fields
from typing import Literal

from estragon.support.errors import UserError
from estragon.tag.layout import Layout
from estragon.tag.rules import Rules

LEAGUE = "league"
RoleChoice = Literal["seeker", "hider", "both"]

BLOCKS = 2
"""Parts the arenas are played in, each by one thread. What is learned depends on it, not on how
many threads there are."""


@dataclass(frozen=True)
class Task:
    """What is to be learned."""

    rules: Rules
    layouts: list[Layout]
    seed: int
    role: RoleChoice
    opponent: str
    """`league`, `bot:NAME` or a policy file."""


@dataclass(frozen=True)
class PPOConfig:
    """Hyper-parameters; the defaults are what was found to learn fastest on the default game."""

    arenas: int = 2048
    """Arenas played side by side."""
    horizon: int = 16
    """Decisions played in every arena between two updates."""
    epochs: int = 2
    """How often an update goes through what was played."""
    minibatch: int = 1792
    """Rows a gradient step looks at, about."""
    learning_rate: float = 2e-3
    """Adam's step size at the start; it falls in a straight line."""
    final_learning_rate: float = 5e-5
    """Adam's step size at the end."""
    balancing: float = 1.0
    """How much less the role that wins too often learns from its likes, so that the other can catch
    up: twice the share that it loses, to this power; 0 for not at all."""
    discount: float = 0.995
    """Gamma: what a reward is worth a decision later."""
    smoothing: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.2
    """How far one update may move the chance of an action."""
    entropy: float = 0.010
    """Weight of the entropy in the loss: keeps trying things."""
    value_weight: float = 0.5
    """Weight of the value's error in the loss."""
    gradient_limit: float = 0.5
    """Gradients longer than this are shortened."""
    divergence_limit: float = 0.03
    """An update stops when the policy has moved this far (KL)."""
    reward_scale: float = 0.1
    """Rewards are multiplied by this before learning."""
    past: float = 0.3
    """Share of the arenas in which one side is an earlier self."""
    sparring: float = 0.3
    """Share of the arenas in which one side is a scripted bot."""
    snapshot_every: int = 25
    """Updates between two selves that the league remembers."""
    remembered: int = 64
    """Earlier selves kept; beyond that, every second of the older ones is forgotten."""
    hidden: int = 64
    """Width of both hidden layers."""

    def check(self) -> None:
        """Refuse numbers that make no sense, by name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in ("int", int) and value < 1:
                raise UserError(f"{field.name}: expected 1 or more, got {value}")
            if not 0 <= value < 2**20:
                raise UserError(f"{field.name}: expected 0 to {2**20}, got {value}")
        for name in ("discount", "smoothing"):
            if getattr(self, name) > 1:
                raise UserError(f"{name}: expected 0 to 1, got {getattr(self, name)}")
        if self.past + self.sparring > 1:
            raise UserError(
                f"past and sparring: expected at most 1, got {self.past + self.sparring}"
            )
        if self.arenas % BLOCKS or self.arenas < 8 * BLOCKS:
            raise UserError(
                f"arenas: expected a multiple of {BLOCKS}, {8 * BLOCKS} or more, got {self.arenas}"
            )
