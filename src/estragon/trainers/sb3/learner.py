"""A model with the games it learns in: made, gone on with, saved."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import DictReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv, VecMonitor, VecNormalize

from estragon.support.errors import UserError
from estragon.trainers.sb3 import replay
from estragon.trainers.sb3.algorithms import Algorithm, Plan, check_spaces
from estragon.trainers.sb3.device import choose_device
from estragon.trainers.sb3.model_file import About, ModelFile, save
from estragon.trainers.sb3.scales import read_scales, scaled, write_scales
from estragon.trainers.spaces import describe, from_plain, to_plain

if TYPE_CHECKING:
    from estragon.trainers.sb3.settings import Sb3Settings

USUAL_GAMMA = 0.99


@dataclasses.dataclass
class Learner:
    """A model and its games."""

    algorithm: Algorithm
    model: BaseAlgorithm
    about: About | None
    """None of a model of somebody else, which may be made in ways that we do not know."""
    scaling: VecNormalize | None
    is_resumed: bool

    @classmethod
    def new(cls, options: "Sb3Settings", algorithm: Algorithm, games: VecMonitor) -> Self:
        """One that knows nothing yet."""
        sees, does = games.observation_space, games.action_space
        check_spaces(algorithm, sees, does, options.policy_type)
        given = options.hyperparameters.given()
        about = About(
            algo=algorithm.name,
            policy_type=options.policy_type,
            layers=options.policy_layers,
            hyperparameters={key: given[key] for key in sorted(given) if key in algorithm.takes},
            linear_lr_schedule=options.linear_lr_schedule,
            sees=to_plain(sees),
            does=to_plain(does),
        )
        env: VecEnv = games
        scaling = None
        if options.normalize:
            env = scaling = scaled(games, given.get("gamma", USUAL_GAMMA))
        return cls(
            algorithm, _make(about, env, options, algorithm), about, scaling, is_resumed=False
        )

    @classmethod
    def resumed(cls, options: "Sb3Settings", source: ModelFile, games: VecMonitor) -> Self:
        """The one of a file; what is said now goes before what was said then."""
        if source.about is None:
            return cls._foreign(options, source, games)
        sees, does = games.observation_space, games.action_space
        before = source.about
        learned = [describe(from_plain(plain)) for plain in (before.sees, before.does)]
        if learned != [describe(sees), describe(does)]:
            raise UserError(
                f"{source.path} is of another game: it sees {learned[0]} and does {learned[1]}; "
                f"here it would see {describe(sees)} and do {describe(does)}"
            )
        numbers = options.hyperparameters.over(before.hyperparameters)
        about = About(
            algo=before.algo,
            policy_type=before.policy_type,
            layers=before.layers,
            hyperparameters=numbers.given(),
            linear_lr_schedule=options.linear_lr_schedule or before.linear_lr_schedule,
            sees=to_plain(sees),
            does=to_plain(does),
        )
        env: VecEnv = games
        scaling = None
        if source.scales is not None:
            env = scaling = scaled(games, about.hyperparameters.get("gamma", USUAL_GAMMA))
            write_scales(scaling, source.scales)
        elif options.normalize:
            raise UserError(f"--normalize: {source.path} was trained without")
        model = _make(about, env, options, source.algorithm, source.steps)
        source.restore(model)
        learner = cls(source.algorithm, model, about, scaling, is_resumed=True)
        if not options.inference:
            learner._recall(replay.path_beside(source.path))
        return learner

    @classmethod
    def _foreign(cls, options: "Sb3Settings", source: ModelFile, games: VecMonitor) -> Self:
        given = options.hyperparameters.given()
        changed = {key: given[key] for key in given if key in source.algorithm.takes}
        changed.pop("action_noise", None)
        device = choose_device(options.device, options.policy_type)
        return cls(
            source.algorithm, source.unpickle(games, device, changed), None, None, is_resumed=True
        )

    @property
    def env(self) -> VecEnv:
        """The games, as the model sees them."""
        env = self.model.get_env()
        if env is None:
            raise ValueError("a learner has games")
        return env

    @property
    def scales(self) -> "dict[str, np.ndarray] | None":
        """By which observations are brought to a common size, if they are."""
        return None if self.scaling is None else read_scales(self.scaling)

    def learn(self, steps: int, callback: BaseCallback) -> None:
        """So many steps of all agents."""
        more: dict[str, Any] = {}
        if self.algorithm.name == "maskable_ppo":
            from sb3_contrib.common.maskable.utils import is_masking_supported

            more["use_masking"] = is_masking_supported(self.env)
        self.model.learn(steps, callback, reset_num_timesteps=not self.is_resumed, **more)

    def save(self, path: Path, *, with_memory: bool = True) -> None:
        """Write the model, and beside it what it remembers."""
        memory = getattr(self.model, "replay_buffer", None)
        if with_memory and isinstance(memory, DictReplayBuffer):
            replay.save_replay(memory, replay.path_beside(path))
        save(self.model, path, self.about, self.scales)

    def _recall(self, path: Path) -> None:
        memory = getattr(self.model, "replay_buffer", None)
        if not isinstance(memory, DictReplayBuffer):
            return
        if path.exists():
            replay.load_replay(memory, path)
        else:
            print(f"{path} is not there: begins with an empty memory", file=sys.stderr)


def _make(
    about: About, env: VecEnv, options: "Sb3Settings", algorithm: Algorithm, steps_before: int = 0
) -> BaseAlgorithm:
    plan = Plan(
        algorithm,
        options.hyperparameters.over(about.hyperparameters),
        about.policy_type,
        about.layers,
        about.linear_lr_schedule,
        options.seed + steps_before,
        choose_device(options.device, about.policy_type),
    )
    return plan.model_for(env)
