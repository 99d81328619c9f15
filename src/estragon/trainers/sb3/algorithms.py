"""The algorithms by name: which games each can play, what it takes, and how a model is built."""

import dataclasses
import inspect
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib import MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DDPG, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.vec_transpose import VecTransposeImage

from estragon.support.errors import UserError
from estragon.trainers.sb3.settings import Activation, AlgorithmName, PolicyType, Sb3Hyperparameters
from estragon.trainers.spaces import describe, from_plain, has_images, is_image

ANY = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)
PPO_DEFAULTS: dict[str, Any] = {
    "learning_rate": 3e-4,
    "batch_size": 64,
    "n_steps": 2048,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "ent_coef": 0.01,
    "clip_range": 0.2,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
"""The controller's own defaults; the other algorithms have those of their library."""
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU}
ACTION_NOISE = 0.1
"""Default standard deviation of the action noise."""


@dataclasses.dataclass(frozen=True)
class Sb3Algorithm:
    """An algorithm of SB3 or sb3-contrib."""

    name: AlgorithmName
    cls: type[BaseAlgorithm]
    action_spaces: tuple[type[spaces.Space[Any]], ...]
    """The kinds of action space it supports."""
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Hyperparameters with another default than the library's."""
    policy: str = "MultiInputPolicy"
    needs_noise: bool = False
    """Whether its policy is deterministic and only explores with action noise."""

    @property
    def hyperparameters(self) -> set[str]:
        """Names of the hyperparameters that it has."""
        names = set(inspect.signature(self.cls.__init__).parameters)
        names |= {"action_noise"} if self.needs_noise else set()
        # Off-policy, it means something else: n-step returns.
        names -= {"n_steps"} if "buffer_size" in names else set()
        names |= {"lstm_hidden_size"} if self.name == "recurrent_ppo" else set()
        has_std = self.name in ("ppo", "a2c", "recurrent_ppo")
        names |= {"log_std_init", "log_std_final"} if has_std else set()
        return names & set(vars(Sb3Hyperparameters()))

    @property
    def is_off_policy(self) -> bool:
        """Whether it learns from a replay buffer."""
        return "buffer_size" in self.hyperparameters


DISCRETE = (spaces.Discrete, spaces.MultiDiscrete)
LSTM = "MultiInputLstmPolicy"
ALGORITHMS: dict[str, Sb3Algorithm] = {
    each.name: each
    for each in (
        Sb3Algorithm("ppo", PPO, ANY, PPO_DEFAULTS),
        Sb3Algorithm("a2c", A2C, ANY),
        Sb3Algorithm("sac", SAC, (spaces.Box,)),
        Sb3Algorithm("td3", TD3, (spaces.Box,), needs_noise=True),
        Sb3Algorithm("ddpg", DDPG, (spaces.Box,), needs_noise=True),
        Sb3Algorithm("dqn", DQN, (spaces.Discrete,)),
        Sb3Algorithm("recurrent_ppo", RecurrentPPO, ANY, PPO_DEFAULTS, LSTM),
        Sb3Algorithm("maskable_ppo", MaskablePPO, DISCRETE, PPO_DEFAULTS),
    )
}


def print_hyperparameters() -> None:
    """Print as JSON, by algorithm, the hyperparameters that it has, with their defaults."""
    found = {}
    for name, each in ALGORITHMS.items():
        parameters = inspect.signature(each.cls.__init__).parameters
        usual = {key: part.default for key, part in parameters.items()} | dict(each.defaults)
        found[name] = {key: usual.get(key) for key in sorted(each.hyperparameters)}
    print(json.dumps(found, default=str))


def choose(name: AlgorithmName | None, policy_type: PolicyType) -> Sb3Algorithm:
    """The algorithm of this name; ppo with an lstm policy is recurrent_ppo."""
    if policy_type == "lstm" and name in (None, "ppo"):
        name = "recurrent_ppo"
    found = ALGORITHMS[name or "ppo"]
    if policy_type == "lstm" and found.name != "recurrent_ppo":
        raise UserError(f"policy_type lstm: only ppo supports it, not {found.name}")
    return found


def check_spaces(
    algorithm: Sb3Algorithm, observations: Any, actions: Any, policy_type: PolicyType
) -> None:
    """UserError if the algorithm or policy does not support the spaces of a game."""
    if not isinstance(actions, algorithm.action_spaces):
        able = [
            each.name for each in ALGORITHMS.values() if isinstance(actions, each.action_spaces)
        ]
        raise UserError(
            f"{algorithm.name} does not support actions that are {describe(actions)}; use "
            f"{', '.join(able)}"
        )
    if policy_type == "cnn" and not has_images(observations):
        raise UserError(
            f"policy_type cnn: no observation of the game is an image ({describe(observations)}); "
            "the key of an image contains 2d"
        )


class FlatExtractor(BaseFeaturesExtractor):
    """What `policy_type mlp` sees of images: their pixels, beside all other observations."""

    def __init__(self, observation_space: spaces.Dict) -> None:
        width = sum(get_flattened_obs_dim(space) for space in observation_space.spaces.values())
        super().__init__(observation_space, features_dim=width)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        """(batch, features_dim)."""
        return torch.cat([each.flatten(1) for each in observations.values()], dim=1)


def set_up(
    algorithm: Sb3Algorithm, arguments: dict[str, Any], observations: Any, actions: Any
) -> BaseAlgorithm:
    """A new model without games, for spaces as SB3 has them: images have their channels first."""
    if algorithm.is_off_policy:
        arguments["buffer_size"] = 1
    if algorithm.name == "sac":
        arguments["target_entropy"] = 0.0  # SAC would look for it in the games
    made: Any = algorithm.cls
    model: BaseAlgorithm = made(env=None, _init_setup_model=False, device="cpu", **arguments)
    model.observation_space, model.action_space = observations, actions
    model.n_envs = 1
    model._setup_model()  # noqa: SLF001
    return model


class ModelSpec(msgspec.Struct, frozen=True):
    """How to build a model, as plain data; saved with it."""

    algo: str
    policy_type: PolicyType
    layers: tuple[int, ...]
    hyperparameters: dict[str, float | int]
    linear_lr_schedule: bool
    observation_space: dict[str, Any] = msgspec.field(name="sees")
    action_space: dict[str, Any] = msgspec.field(name="does")
    counters: dict[str, int] = {}
    format: int = 1
    activation: Activation | None = None

    @property
    def algorithm(self) -> Sb3Algorithm:
        """The algorithm."""
        return ALGORITHMS[self.algo]

    def build(self, env: VecEnv, *, seed: int, device: str) -> BaseAlgorithm:
        """A new model that learns in these games."""
        arguments = self._arguments(env.observation_space, env.action_space)
        try:
            return self.algorithm.cls(env=env, seed=seed, device=device, **arguments)
        except (AssertionError, ValueError) as error:
            raise UserError(f"{self.algo}: {error}") from error

    def build_without_env(self, seed: int | None = None) -> BaseAlgorithm:
        """A new model that can act, but not learn."""
        observations: Any = from_plain(self.observation_space)
        actions = from_plain(self.action_space)
        arguments = self._arguments(observations, actions)
        parts = {
            key: VecTransposeImage.transpose_space(part) if is_image(part) else part
            for key, part in observations.spaces.items()
        }
        return set_up(self.algorithm, arguments | {"seed": seed}, spaces.Dict(parts), actions)

    def _arguments(self, observations: Any, actions: Any) -> dict[str, Any]:
        algorithm = self.algorithm
        found: dict[str, Any] = {**algorithm.defaults, **self.hyperparameters}
        found = {key: value for key, value in found.items() if key in algorithm.hyperparameters}
        policy: dict[str, Any] = {"net_arch": list(self.layers)}
        if self.activation is not None:
            policy["activation_fn"] = ACTIVATIONS[self.activation]
        found.pop("log_std_final", None)  # the learner's schedule
        for name in ("lstm_hidden_size", "log_std_init"):
            if name in found:
                policy[name] = found.pop(name)
        if self.policy_type != "cnn" and has_images(observations):
            policy["features_extractor_class"] = FlatExtractor
        if algorithm.needs_noise:
            size, std = actions.shape, found.pop("action_noise", ACTION_NOISE)
            found["action_noise"] = NormalActionNoise(
                np.zeros(size, np.float32), np.full(size, std, np.float32)
            )
        if self.linear_lr_schedule:
            default = inspect.signature(algorithm.cls.__init__).parameters["learning_rate"].default
            found["learning_rate"] = LinearSchedule(found.get("learning_rate", default), 0.0, 1.0)
        return found | {"policy": algorithm.policy, "policy_kwargs": policy}
