"""Stable-Baselines3's PPO on the same game: as its users begin, tuned, and with all of ours."""

import time
import warnings
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

import estragon.envs  # noqa: F401 - registers the environments
from estragon.selfplay.config import PPOConfig
from estragon.selfplay.kernels import extract_features
from estragon.support.errors import UserError
from estragon.support.parallel import available_cores
from estragon.tag.frozen import CLIP, SHY_OF_JUMPING, moves_in_heading_frame
from estragon.tag.gym_env import TagVectorEnv
from estragon.tag.rules import ACTION_SIZE, GOING_ON, OBS, Role, load_rules

try:
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise UserError(
        "benchmarks/training.py needs Stable-Baselines3: pip install 'estragon[sb3]', "
        "or name the other programs: estragon bench engine godot"
    ) from error

DEFAULT_ENV = "Estragon/TagSeeker-v0"
TRIAL_UPDATES, TRIAL_HORIZON = 3, 4
KL_SLACK = 1.5
"""SB3 stops an update at this many times its `target_kl`."""
SB3_CONFIG = PPOConfig(
    arenas=512, horizon=64, epochs=4, minibatch=4096, learning_rate=7e-4, entropy=0.003
)
"""What was found to suit SB3's own policy: see docs/training.md."""


class HeadingFrame:
    """What our policies have built in, for one that has not: turned sight, moves by number."""

    def __init__(self, size: int) -> None:
        """Read observations of `size` numbers."""
        self.moves = moves_in_heading_frame()
        self._mean, self._scale = np.zeros(size, np.float32), np.ones(size, np.float32)

    def see(self, observations: np.ndarray, agents: np.ndarray) -> np.ndarray:
        """New (rows, size) float32 from world-axes (rows, agents, size) and who looks, (rows,)."""
        features = np.empty((len(agents), len(self._mean)), dtype=np.float32)
        extract_features(observations, agents, self._mean, self._scale, features)
        return features

    def act(self, picks: np.ndarray, forward: np.ndarray) -> np.ndarray:
        """Actions (rows, 3) float32 for moves and jumps (rows, 2) and forward vectors (rows, 2)."""
        ahead, aside = self.moves[picks[:, 0]].T
        x, z = forward.T
        actions = np.empty((len(picks), ACTION_SIZE), dtype=np.float32)
        actions[:, 0] = ahead * x - aside * z
        actions[:, 1] = ahead * z + aside * x
        actions[:, 2] = picks[:, 1]
        return actions


class ArenasAsVecEnv(VecEnv):
    """Arenas in which SB3 plays one role and the usual bot the other, on all cores."""

    def __init__(self, role: Role, arenas: int, reward_scale: float, seed: int = 0) -> None:
        """Prepare the arenas; the environment's own observations and Box actions."""
        self._many = TagVectorEnv(arenas, role)
        self._first_seed = seed
        self._reward_scale = np.float32(reward_scale)
        self._actions = np.zeros((arenas, ACTION_SIZE), dtype=np.float32)
        # Every end is a termination, so PPO never asks for the last sight of an episode: one
        # empty info for all is the least that SB3 can be made to go through.
        self._infos: list[dict[str, Any]] = [{}] * arenas
        super().__init__(arenas, *self._spaces())

    def reset(self) -> np.ndarray:
        """Begin with the seed, as our trainer does."""
        return self._see(self._many.arenas.reset(self._first_seed))

    def step_async(self, actions: np.ndarray) -> None:
        """Take note of the moves; `step_wait` plays them."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One decision in every arena."""
        many = self._many
        results = many.arenas.step(many.with_opponent(self._move(self._actions)))
        rewards = results.rewards[:, many.me] * self._reward_scale
        return self._see(results.observations), rewards, results.ends != GOING_ON, self._infos

    def close(self) -> None:
        """Nothing to close: arenas are arrays."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The same in every arena; SB3 asks for `render_mode`."""
        return [getattr(self._many, attr_name)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Not needed by PPO."""
        raise NotImplementedError

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        """Not needed by PPO."""
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Nothing is wrapped."""
        return [False] * self.num_envs

    def _spaces(self) -> tuple[gymnasium.Space, gymnasium.Space]:
        return self._many.single_observation_space, self._many.single_action_space

    def _see(self, observations: np.ndarray) -> np.ndarray:
        return observations[:, self._many.me].copy()

    def _move(self, actions: np.ndarray) -> np.ndarray:
        return actions


class ArenasInHeadingFrame(ArenasAsVecEnv):
    """The same, seen and moved in the way that our policies have built in."""

    def __init__(self, role: Role, arenas: int, reward_scale: float, seed: int = 0) -> None:
        """Prepare the arenas and the turning."""
        self.frame = HeadingFrame(load_rules().observation.size)
        super().__init__(role, arenas, reward_scale, seed)
        self._agents = np.full(arenas, self._many.me)

    def _spaces(self) -> tuple[gymnasium.Space, gymnasium.Space]:
        size = self._many.arenas.rules.observation.size
        sight = spaces.Box(-CLIP, CLIP, (size,), np.float32)
        return sight, spaces.MultiDiscrete([len(self.frame.moves), 2])

    def _see(self, observations: np.ndarray) -> np.ndarray:
        return self.frame.see(observations, self._agents)

    def _move(self, actions: np.ndarray) -> np.ndarray:
        forward = self._many.arenas.observations[:, self._many.me, OBS.forward : OBS.forward + 2]
        return self.frame.act(actions, forward)


class Trunk(BaseFeaturesExtractor):
    """Two layers that policy and value share, as in our network; SB3's `net_arch` has none."""

    def __init__(self, observation_space: gymnasium.Space, hidden: int) -> None:
        """Make both layers `hidden` wide."""
        super().__init__(observation_space, hidden)
        size = observation_space.shape[0]
        self._layers = nn.Sequential(
            nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """(rows, hidden) for (rows, size)."""
        return self._layers(observations)


class DefaultSb3:
    """PPO as its users begin: one environment, raw sight, Box actions, nothing tuned."""

    def __init__(self, threads: int) -> None:
        """Let SB3 wrap the environment in its usual way (Monitor, DummyVecEnv).

        Args:
            threads: of torch.
        """
        self._threads = threads
        self._model = PPO("MlpPolicy", gymnasium.make(DEFAULT_ENV), device="cpu", seed=0)
        self._model.set_logger(Logger(None, []))

    def update(self) -> int:
        """Play and learn once; returns the agent-steps."""
        return _update(self._model, self._threads)

    def close(self) -> None:
        """Let the environment go."""
        self._model.get_env().close()


class LearnsOneRole:
    """A PPO of SB3 that learns a role against the usual bot, with a learning rate that falls."""

    def __init__(self, config: PPOConfig, budget: int, threads: int, seed: int) -> None:
        """Fall over `budget` agent-steps; torch gets `threads`, the arenas all cores."""
        self.agent_steps = 0
        self._seed = seed
        self._config, self._budget, self._threads = config, budget, threads
        self._model: PPO

    def update(self) -> int:
        """Play and learn once; returns the agent-steps."""
        steps = _update(self._model, self._threads)
        self.agent_steps += steps
        return steps

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The policy's own choice, without chance: (rows, 3) float32 for (rows, size) float32."""
        actions, _ = self._model.predict(observations, deterministic=True)
        return actions

    def _make(self, env: VecEnv, **options: Any) -> PPO:
        """PPO with everything of the config that SB3 has a place for."""
        config = self._config
        rows = config.arenas * config.horizon
        parts = max(1, round(rows / config.minibatch))
        with warnings.catch_warnings():
            # The last of the equal parts may lack a few rows; SB3 would rather it did not.
            warnings.filterwarnings("ignore", "You have specified a mini-batch size")
            model = PPO(
                "MlpPolicy",
                env,
                learning_rate=lambda _: self._learning_rate(),
                n_steps=config.horizon,
                batch_size=-(-rows // parts),
                n_epochs=config.epochs,
                gamma=config.gamma,
                gae_lambda=config.gae_lambda,
                clip_range=config.clip,
                ent_coef=config.entropy,
                vf_coef=config.value_coef,
                max_grad_norm=config.max_grad_norm,
                target_kl=config.target_kl / KL_SLACK,
                device="cpu",
                seed=self._seed,
                **options,
            )
        model.set_logger(Logger(None, []))
        return model

    def _learning_rate(self) -> float:
        share = min(1.0, self.agent_steps / self._budget)
        start, end = self._config.learning_rate, self._config.final_learning_rate
        return start + share * (end - start)


class TunedSb3(LearnsOneRole):
    """PPO and policy of SB3 on the environment as it is, with settings that suit it."""

    def __init__(
        self, role: Role, budget: int, threads: int, config: PPOConfig = SB3_CONFIG, seed: int = 0
    ) -> None:
        """Prepare to learn `role` against its usual bot."""
        super().__init__(config, budget, threads, seed)
        self._model = self._make(ArenasAsVecEnv(role, config.arenas, config.reward_scale, seed))


class Sb3WithOurs(LearnsOneRole):
    """PPO with our config, network, frame and moves: only the trainer is SB3's."""

    def __init__(
        self, role: Role, config: PPOConfig, budget: int, threads: int, seed: int = 0
    ) -> None:
        """Prepare to learn `role` against its usual bot."""
        super().__init__(config, budget, threads, seed)
        env = ArenasInHeadingFrame(role, config.arenas, config.reward_scale, seed)
        self._frame = env.frame
        self._model = self._make(
            env,
            policy_kwargs={
                "net_arch": [],
                "features_extractor_class": Trunk,
                "features_extractor_kwargs": {"hidden": config.hidden},
                "ortho_init": True,
                "optimizer_kwargs": {"eps": 1e-5, "fused": True},
            },
        )
        with torch.no_grad():
            self._model.policy.action_net.bias[-1] = SHY_OF_JUMPING

    def act(self, observations: np.ndarray) -> np.ndarray:
        """The policy's own choice, without chance: (rows, 3) float32 for (rows, size) float32."""
        rows = len(observations)
        features = self._frame.see(observations[:, None], np.zeros(rows, dtype=np.int64))
        return self._frame.act(
            super().act(features), observations[:, OBS.forward : OBS.forward + 2]
        )


def faster_threads(config: PPOConfig) -> int:
    """Torch threads for SB3: one or as many as cores, whichever is faster at a few small updates.

    With a busy neighbour the difference is large: torch's threads keep waiting for each other.
    """
    small = replace(config, horizon=TRIAL_HORIZON)
    shortest = {}
    for threads in {1, available_cores()}:
        model = Sb3WithOurs("seeker", small, 10**9, threads)
        spent = []
        for _ in range(1 + TRIAL_UPDATES):
            start = time.perf_counter()
            model.update()
            spent.append(time.perf_counter() - start)
        shortest[threads] = min(spent[1:])
    return min(shortest, key=shortest.__getitem__)


def _update(model: PPO, threads: int) -> int:
    """One rollout and what is learned from it."""
    torch.set_num_threads(threads)
    steps = model.n_steps * model.n_envs
    model.learn(steps, reset_num_timesteps=False, log_interval=None)
    return steps
