"""What a film says of a run and its stages, in numbers and in words."""

import numpy as np
from msgspec import Struct

MINUTE, HOUR = 60, 3600


class StageFacts(Struct, frozen=True):
    """One stage of the training."""

    name: str
    """Its share of the training: 5%."""
    agent_steps: int
    training_sec: float | None
    """Spent on learning until then; None where the run does not say."""
    win_rates: dict[str, float]
    """Against each bot the role was measured with, 0 to 1, by `seeker_vs_random` and so on."""
    elo: dict[str, float]
    """By role."""

    @property
    def title(self) -> str:
        """What it is called."""
        return steps_text(self.agent_steps) if self.agent_steps else "untrained"

    @property
    def subtitle(self) -> str:
        """When it was."""
        if not self.agent_steps:
            return "before the training"
        if self.training_sec is None:
            return f"after {self.name} of the training"
        return f"after {time_text(self.training_sec)} of training"


class RoleCurve(Struct, frozen=True):
    """How often a role beat a bot, stage by stage."""

    role: str
    bot: str
    agent_steps: list[float]
    win_rates: list[float]

    def at(self, agent_steps: float) -> float:
        """The win rate at some moment, on a straight line between two stages."""
        return float(np.interp(agent_steps, self.agent_steps, self.win_rates))


class RunFacts(Struct, frozen=True):
    """The whole run."""

    name: str
    learned_by: str
    """self-play, or play against somebody."""
    stages: list[StageFacts]
    curves: list[RoleCurve]
    """Of each role that learned, against the bot that is hard for it."""
    seeker_wins: float | None = None
    """How often, when the last stage's two play each other; None where only one role learned."""

    @property
    def last(self) -> StageFacts:
        """Where it ended."""
        return self.stages[-1]


def steps_text(agent_steps: float) -> str:
    """A number of steps as a person would say it."""
    if agent_steps < 1e6:
        return f"{agent_steps:,.0f} steps"
    return f"{agent_steps / 1e6:.1f} million steps"


def time_text(seconds: float) -> str:
    """A time as a person would say it."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
