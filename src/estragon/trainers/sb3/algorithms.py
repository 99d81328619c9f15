"""The algorithms by name: what each can play, what it takes, and how it is made."""

import dataclasses
import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gymnasium import spaces

from estragon.support.errors import UserError
from estragon.trainers.sb3.settings import AlgorithmName, Hyperparameters, PolicyType
from estragon.trainers.spaces import describe, has_images, is_image

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.vec_env import VecEnv

ANY = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)
USUAL_OF_PPO: dict[str, Any] = {
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
"""The controller's own defaults; the others have those of their library."""
NOISE = 0.1
"""Standard deviation of what is added to the actions of policies that do not explore."""


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One of them."""

    name: AlgorithmName
    module: str
    class_name: str
    plays: tuple[type[spaces.Space[Any]], ...]
    """The kinds of actions it knows."""
    usual: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Hyper-parameters where nobody says otherwise, and its library says something else."""
    policy: str = "MultiInputPolicy"
    explores: bool = True
    """Whether its policy tries things out by itself."""

    @property
    def cls(self) -> "type[BaseAlgorithm]":
        """The class of the library."""
        found: type[BaseAlgorithm] = getattr(importlib.import_module(self.module), self.class_name)
        return found

    @property
    def takes(self) -> set[str]:
        """The hyper-parameters it has."""
        named = set(inspect.signature(self.cls.__init__).parameters)
        named |= set() if self.explores else {"action_noise"}
        # Of off-policy algorithms it is something else: rewards that are added up.
        named -= {"n_steps"} if "buffer_size" in named else set()
        named |= {"lstm_hidden_size"} if self.name == "recurrent_ppo" else set()
        return named & {field.name for field in dataclasses.fields(Hyperparameters)}

    @property
    def learns_from_replay(self) -> bool:
        """Whether it is off-policy."""
        return "buffer_size" in self.takes


ALGORITHMS: dict[str, Algorithm] = {
    each.name: each
    for each in (
        Algorithm("ppo", "stable_baselines3", "PPO", ANY, USUAL_OF_PPO),
        Algorithm("a2c", "stable_baselines3", "A2C", ANY),
        Algorithm("sac", "stable_baselines3", "SAC", (spaces.Box,)),
        Algorithm("td3", "stable_baselines3", "TD3", (spaces.Box,), explores=False),
        Algorithm("ddpg", "stable_baselines3", "DDPG", (spaces.Box,), explores=False),
        Algorithm("dqn", "stable_baselines3", "DQN", (spaces.Discrete,)),
        Algorithm(
            "recurrent_ppo",
            "sb3_contrib",
            "RecurrentPPO",
            ANY,
            USUAL_OF_PPO,
            policy="MultiInputLstmPolicy",
        ),
        Algorithm(
            "maskable_ppo",
            "sb3_contrib",
            "MaskablePPO",
            (spaces.Discrete, spaces.MultiDiscrete),
            USUAL_OF_PPO,
        ),
    )
}


def choose(name: str | None, policy_type: PolicyType) -> Algorithm:
    """The algorithm that is asked for; a policy with a memory needs the one that has it."""
    if policy_type == "lstm" and name in (None, "ppo"):
        name = "recurrent_ppo"
    found = ALGORITHMS.get(name or "ppo")
    if found is None:
        raise UserError(f"algo: no '{name}'; there is {', '.join(ALGORITHMS)}")
    if policy_type == "lstm" and found.name != "recurrent_ppo":
        raise UserError(f"policy_type lstm: only ppo can have a memory, not {found.name}")
    return found


def check_spaces(algorithm: Algorithm, sees: Any, does: Any, policy_type: PolicyType) -> None:
    """Whether it can play this game."""
    if not isinstance(does, algorithm.plays):
        able = [each.name for each in ALGORITHMS.values() if isinstance(does, each.plays)]
        raise UserError(
            f"{algorithm.name} cannot do {describe(does)}; for this game there is {', '.join(able)}"
        )
    if policy_type == "cnn" and not has_images(sees):
        raise UserError(
            f"policy_type cnn: no observation of the game is an image ({describe(sees)}; the key "
            "of an image contains 2d)"
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a model is made."""

    algorithm: Algorithm
    hyperparameters: Hyperparameters
    policy_type: PolicyType = "mlp"
    layers: tuple[int, ...] = (64, 64)
    linear: bool = False
    """Whether the learning rate falls to 0."""
    seed: int | None = None
    device: str = "cpu"

    def model_for(self, env: "VecEnv") -> "BaseAlgorithm":
        """A new model for these games."""
        words = self._words(env.observation_space, env.action_space)
        try:
            return self.algorithm.cls(env=env, **words)
        except (AssertionError, ValueError) as error:
            raise UserError(f"{self.algorithm.name}: {error}") from error

    def model_without_games(self, sees: spaces.Dict, does: spaces.Space[Any]) -> "BaseAlgorithm":
        """A new model that cannot learn, only act."""
        from stable_baselines3.common.vec_env.vec_transpose import VecTransposeImage

        words = self._words(sees, does)
        if self.algorithm.learns_from_replay:
            words["buffer_size"] = 1
        if self.algorithm.name == "sac":
            words["target_entropy"] = 0.0  # SAC would look for it in the games
        made: Any = self.algorithm.cls
        model: BaseAlgorithm = made(env=None, _init_setup_model=False, **words)
        parts = {
            key: VecTransposeImage.transpose_space(part)
            if isinstance(part, spaces.Box) and is_image(part)
            else part
            for key, part in sees.spaces.items()
        }
        model.observation_space, model.action_space = spaces.Dict(parts), does
        model.n_envs = 1
        model._setup_model()  # noqa: SLF001
        return model

    def _words(self, sees: Any, does: Any) -> dict[str, Any]:
        algorithm = self.algorithm
        words: dict[str, Any] = {**algorithm.usual, **self.hyperparameters.given()}
        words = {name: value for name, value in words.items() if name in algorithm.takes}
        policy: dict[str, Any] = {"net_arch": list(self.layers)}
        if "lstm_hidden_size" in words:
            policy["lstm_hidden_size"] = words.pop("lstm_hidden_size")
        if self.policy_type != "cnn" and has_images(sees):
            from estragon.trainers.sb3.extractor import FlatExtractor

            policy["features_extractor_class"] = FlatExtractor
        if not algorithm.explores:
            words["action_noise"] = _noise(does, words.pop("action_noise", NOISE))
        if self.linear:
            from stable_baselines3.common.utils import LinearSchedule

            usual = inspect.signature(algorithm.cls.__init__).parameters["learning_rate"].default
            words["learning_rate"] = LinearSchedule(words.get("learning_rate", usual), 0.0, 1.0)
        own = {"policy": algorithm.policy, "policy_kwargs": policy}
        return words | own | {"seed": self.seed, "device": self.device}


def _noise(does: spaces.Box, spread: float) -> Any:
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise

    size = does.shape
    return NormalActionNoise(np.zeros(size, np.float32), np.full(size, spread, np.float32))
