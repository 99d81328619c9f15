"""The settings of a run: what is learned (`Task`) and how (`PPOConfig`)."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import tyro

from estragon.support.errors import UserError
from estragon.tag.layout import Layout
from estragon.tag.rules import Rules

if TYPE_CHECKING:
    from estragon.tag.variation import Variation

LEAGUE = "league"
RoleChoice = Literal["seeker", "hider", "both"]

BLOCKS = 2
"""Parts the arenas are divided into, each played by one thread. The result depends on this number,
not on the number of threads."""

OLD_NAMES = {
    "discount": "gamma",
    "smoothing": "gae_lambda",
    "gradient_limit": "max_grad_norm",
    "divergence_limit": "target_kl",
    "value_weight": "value_coef",
    "past_from": "opening",
}
"""Names of hyperparameters in earlier runs; as options they still work."""
GONE = {"balancing"}
"""Hyperparameters of earlier runs that nothing reads any more."""


@dataclass(frozen=True)
class Task:
    """What to learn."""

    rules: Rules
    layouts: list[Layout]
    seed: int
    role: RoleChoice
    opponent: str
    """`league`, `bot:NAME` or a policy file."""
    variation: "Variation | None" = None
    """Rule numbers and layouts that differ between the episodes learned from; evaluations play by
    the rules and layouts above."""


@dataclass(frozen=True)
class PPOConfig:
    """Hyperparameters; the defaults learned fastest on the default game."""

    arenas: int = 2048
    """Number of arenas."""
    horizon: int = 16
    """Rollout length: decisions per arena between updates."""
    epochs: int = 1
    """Passes over the rollout buffer per update."""
    minibatch: int = 1792
    """Approximate number of agent-steps per minibatch."""
    learning_rate: float = 4e-3
    """Initial learning rate of Adam; it decreases linearly."""
    final_learning_rate: float = 5e-4
    """Final learning rate of Adam."""
    gamma: Annotated[float, tyro.conf.arg(aliases=["--discount"])] = 0.995
    """Discount factor (gamma) per decision."""
    gae_lambda: Annotated[float, tyro.conf.arg(aliases=["--smoothing"])] = 0.95
    """Lambda of generalized advantage estimation (GAE)."""
    clip: float = 0.2
    """PPO's clipping range."""
    entropy: float = 0.05
    """Initial entropy coefficient: higher values explore more. It decreases by equal factors in
    equal times."""
    final_entropy: float = 0.0002
    """Final entropy coefficient."""
    value_coef: Annotated[float, tyro.conf.arg(aliases=["--value-weight"])] = 0.5
    """Weight of the value loss."""
    max_grad_norm: Annotated[float, tyro.conf.arg(aliases=["--gradient-limit"])] = 0.5
    """Maximum norm of the gradient."""
    target_kl: Annotated[float, tyro.conf.arg(aliases=["--divergence-limit"])] = 0.03
    """An update stops early when the KL divergence exceeds this."""
    reward_scale: float = 0.1
    """Rewards are multiplied by this before learning."""
    past: float = 0.5
    """Share of arenas in which one side is a past self."""
    opening: Annotated[float, tyro.conf.arg(aliases=["--past-from"])] = 0.25
    """Share of the run before past selves play. Until then, the current policies play each other in
    their arenas, more hiders than seekers meet bots, and neither role has a handicap."""
    sparring: float = 0.3
    """Share of arenas in which one side is a scripted bot."""
    snapshot_every: int = 25
    """Updates between snapshots for the league."""
    remembered: int = 64
    """Maximum number of past selves in the league; when full, every second of the older ones is
    dropped."""
    handicap: float = 0.75
    """By how much the learning rate of a role falls at most while it wins too often against the
    other one: 0 is not at all, 1 to nothing."""
    symmetry: bool = True
    """Learn from mirror images and quarter turns of the matches too, where they map the layouts
    onto themselves."""
    critic: bool = False
    """Learn with critics that also see where the opponent is; the policies do not."""
    hidden: int = 64
    """Units of each of the two hidden layers of the policies."""
    critic_hidden: int = 32
    """Units of each of the two hidden layers of the critics."""

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> Self:
        """Read the settings of a run, also of one that used the older names."""
        known = {OLD_NAMES.get(name, name): saved[name] for name in saved if name not in GONE}
        if "entropy" in known:  # it used to be constant
            known.setdefault("final_entropy", known["entropy"])
        if "hidden" in known:  # what earlier runs did without
            before = {"opening": 0.0, "handicap": 0.0, "symmetry": False}
            known = before | {"critic_hidden": known["hidden"]} | known
        return cls(**known)

    def check(self) -> None:
        """Reject invalid values, by name."""
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type in ("int", int) and value < 1:
                raise UserError(f"{field.name}: expected 1 or more, got {value}")
            if not 0 <= value < 2**20:
                raise UserError(f"{field.name}: expected 0 to {2**20}, got {value}")
        for name in ("gamma", "gae_lambda", "opening", "handicap"):
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
