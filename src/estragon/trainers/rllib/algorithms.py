"""The algorithms of RLlib: what each can play, and the numbers it takes."""

import dataclasses
from collections.abc import Callable
from typing import Any

from gymnasium import spaces
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.algorithms.appo import APPOConfig
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.impala import IMPALAConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig

from estragon.support.errors import UserError
from estragon.trainers.spaces import describe

COMMON = {"train_batch_size", "rollout_fragment_length", "lr", "gamma", "grad_clip"}
LAYERS = {"fcnet_hiddens"}


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One of them."""

    name: str
    config: Callable[[], AlgorithmConfig]
    takes: frozenset[str]
    """The hyper-parameters it has."""
    usual: dict[str, Any]
    """Settings that suit games better than RLlib's."""

    def can_do(self, does: spaces.Space[Any]) -> bool:
        """Whether it has actions of that kind."""
        if self.name == "dqn":
            return isinstance(does, spaces.Discrete)
        if self.name == "sac":
            return isinstance(does, spaces.Box)
        return True


OFTEN = {"min_time_s_per_iteration": 2}
MEMORY = {
    "type": "MultiAgentEpisodeReplayBuffer",
    "capacity": 100_000,
}
ALGORITHMS = {
    each.name: each
    for each in (
        Algorithm(
            "ppo",
            PPOConfig,
            frozenset(
                COMMON
                | LAYERS
                | {"sgd_minibatch_size", "num_sgd_iter", "lambda_", "clip_param"}
                | {"entropy_coeff", "vf_loss_coeff"}
            ),
            {
                "train_batch_size_per_learner": 2048,
                "minibatch_size": 256,
                "num_epochs": 8,
                "lr": 0.0003,
                "entropy_coeff": 0.0,
                "vf_clip_param": 1e9,
                "kl_coeff": 0.0,
                "use_kl_loss": False,
                "clip_param": 0.2,
                "lambda_": 0.95,
                "grad_clip": 0.5,
            },
        ),
        Algorithm(
            "appo",
            APPOConfig,
            frozenset(
                COMMON | LAYERS | {"lambda_", "clip_param", "entropy_coeff", "vf_loss_coeff"}
            ),
            OFTEN | {"num_learners": 0},
        ),
        Algorithm(
            "impala",
            IMPALAConfig,
            frozenset(COMMON | LAYERS | {"entropy_coeff", "vf_loss_coeff"}),
            OFTEN | {"num_learners": 0},
        ),
        Algorithm("dqn", DQNConfig, frozenset(COMMON | LAYERS), {"replay_buffer_config": MEMORY}),
        Algorithm("sac", SACConfig, frozenset(COMMON | LAYERS), {"replay_buffer_config": MEMORY}),
    )
}


def algorithm_of(name: str) -> Algorithm:
    """By name."""
    if name not in ALGORITHMS:
        raise UserError(f"no algorithm {name}; there is {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def check_actions(algorithm: Algorithm, policy: str, does: spaces.Space[Any]) -> None:
    """Refuse an algorithm that cannot do what a policy has to."""
    if not algorithm.can_do(does):
        others = ", ".join(each.name for each in ALGORITHMS.values() if each.can_do(does))
        raise UserError(
            f"{algorithm.name} cannot do {describe(does)} ({policy}); for this game there is "
            f"{others}"
        )
