"""Numbers an algorithm learns by; one that is not given is the algorithm's own."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

from estragon.support.options import check_span, optional

NUMBER, WHOLE = optional("NUMBER"), optional("N")


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Those of all algorithms; each takes the ones it has."""

    learning_rate: Annotated[float | None, NUMBER] = None
    """How far an update goes."""
    batch_size: Annotated[int | None, WHOLE] = None
    """Steps in a minibatch."""
    n_steps: Annotated[int | None, WHOLE] = None
    """Steps of every agent between updates."""
    n_epochs: Annotated[int | None, WHOLE] = None
    """Times that an update goes through what was collected."""
    gamma: Annotated[float | None, NUMBER] = None
    """What a reward of the next step is worth now."""
    gae_lambda: Annotated[float | None, NUMBER] = None
    """How far advantages look ahead: 0 one step, 1 to the end."""
    ent_coef: Annotated[float | None, NUMBER] = None
    """How much trying things out is worth."""
    clip_range: Annotated[float | None, NUMBER] = None
    """How far an update may change a choice's odds."""
    vf_coef: Annotated[float | None, NUMBER] = None
    """The weight of the value in the loss."""
    max_grad_norm: Annotated[float | None, NUMBER] = None
    """The longest a gradient may be."""
    lstm_hidden_size: Annotated[int | None, WHOLE] = None
    """How many numbers a memory holds."""
    buffer_size: Annotated[int | None, WHOLE] = None
    """Steps that are remembered for learning."""
    learning_starts: Annotated[int | None, WHOLE] = None
    """Steps by chance before learning begins."""
    train_freq: Annotated[int | None, WHOLE] = None
    """Steps of every agent between updates from the buffer."""
    gradient_steps: Annotated[int | None, WHOLE] = None
    """Minibatches of such an update; -1: as many as there were steps of every agent."""
    tau: Annotated[float | None, NUMBER] = None
    """How fast the target network follows."""
    target_update_interval: Annotated[int | None, WHOLE] = None
    """Steps between updates of the target network."""
    exploration_fraction: Annotated[float | None, NUMBER] = None
    """The part of the training in which chance choices become rare."""
    exploration_final_eps: Annotated[float | None, NUMBER] = None
    """How rare they become."""
    action_noise: Annotated[float | None, NUMBER] = None
    """Spread of the noise on the actions of td3 and ddpg."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("batch_size", "n_steps", "n_epochs", "lstm_hidden_size", "buffer_size"):
            self._check(name, 1.0, None)
        for name in ("train_freq", "target_update_interval"):
            self._check(name, 1.0, None)
        for name in ("gamma", "gae_lambda", "tau", "exploration_fraction", "exploration_final_eps"):
            self._check(name, 0.0, 1.0)
        for name in ("learning_rate", "ent_coef", "vf_coef", "max_grad_norm", "learning_starts"):
            self._check(name, 0.0, None)
        self._check("clip_range", 0.0, None)
        self._check("action_noise", 0.0, None)
        self._check("gradient_steps", -1.0, None)

    def given(self) -> dict[str, Any]:
        """Those that somebody said."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def over(self, other: Mapping[str, Any]) -> "Hyperparameters":
        """These, and for what they do not say, others."""
        known = {field.name for field in dataclasses.fields(self)}
        return Hyperparameters(**{k: v for k, v in other.items() if k in known} | self.given())

    def _check(self, name: str, least: float, most: float | None) -> None:
        check_span(name, getattr(self, name), least, most)
