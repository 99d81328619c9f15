"""Numbers an algorithm learns by; one that nobody gives is the algorithm's own."""

import dataclasses
from typing import Annotated, Any

from estragon.support.errors import UserError
from estragon.support.options import check_span, optional

NUMBER, WHOLE = optional("NUMBER"), optional("N")


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Those that controllers know; a YAML file may have all that RLlib has."""

    train_batch_size: Annotated[int | None, WHOLE] = None
    """Steps of agents in an update."""
    sgd_minibatch_size: Annotated[int | None, WHOLE] = None
    """Steps in a minibatch."""
    num_sgd_iter: Annotated[int | None, WHOLE] = None
    """Times that an update goes through what was collected."""
    rollout_fragment_length: Annotated[int | None, WHOLE] = None
    """Steps of agents that an env runner collects before it hands them over."""
    lr: Annotated[float | None, NUMBER] = None
    """How far an update goes."""
    gamma: Annotated[float | None, NUMBER] = None
    """What a reward of the next step is worth now."""
    lambda_: Annotated[float | None, optional("NUMBER", name="lambda")] = None
    """How far advantages look ahead: 0 one step, 1 to the end."""
    clip_param: Annotated[float | None, NUMBER] = None
    """How far an update may change a choice's odds."""
    entropy_coeff: Annotated[float | None, NUMBER] = None
    """How much trying things out is worth."""
    vf_loss_coeff: Annotated[float | None, NUMBER] = None
    """The weight of the value in the loss."""
    grad_clip: Annotated[float | None, NUMBER] = None
    """The longest a gradient may be."""
    fcnet_hiddens: Annotated[tuple[int, ...] | None, optional("N …")] = None
    """How many neurons the layers have; by default 64 and 64."""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in ("train_batch_size", "sgd_minibatch_size", "num_sgd_iter"):
            self._check(name, 1.0, None)
        self._check("rollout_fragment_length", 1.0, None)
        for name in ("gamma", "lambda_"):
            self._check(name, 0.0, 1.0)
        for name in ("lr", "clip_param", "entropy_coeff", "vf_loss_coeff", "grad_clip"):
            self._check(name, 0.0, None)
        sizes = self.fcnet_hiddens
        if sizes is not None and (not sizes or min(sizes) < 1):
            raise UserError(f"fcnet_hiddens: expected sizes, got {sizes}")

    def given(self) -> dict[str, Any]:
        """Those that somebody said."""
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def _check(self, name: str, least: float, most: float | None) -> None:
        check_span(name.rstrip("_"), getattr(self, name), least, most)
