"""The configuration of a training of VR navigation, in seven groups, and its presets.

`RLConfig` is also the JSON file: every key may be left out, and unknown ones are errors.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from estragon.support.errors import UserError
from estragon.support.files import write_json
from estragon.support.options import check_span

SCENE = "res://scenes/features/vr_locomotion_test.tscn"
PORT = 8080
Task = Literal["goals", "obstacles", "maze"]


@dataclasses.dataclass
class NetworkConfig:
    """The policy's network."""

    policy: Literal["MlpPolicy", "MlpLstmPolicy"] = "MlpPolicy"
    """MlpLstmPolicy has a memory."""
    net_arch: list[int] = dataclasses.field(default_factory=lambda: [256, 256])
    """Units of each hidden layer."""
    activation_fn: Literal["relu", "tanh", "elu"] = "relu"


@dataclasses.dataclass
class PPOConfig:
    """Hyperparameters of PPO."""

    learning_rate: float = 3e-4
    n_steps: int = 256
    """Rollout length: steps of each environment between updates."""
    batch_size: int = 64
    n_epochs: int = 10
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    log_std_init: float = 0.0
    """Logarithm of the initial standard deviation of continuous actions."""
    log_std_final: float | None = None
    """The same at the end of the training, with a linear schedule; null: it is learned."""
    lstm_hidden_size: int = 256
    """Hidden units of the memory of MlpLstmPolicy."""


@dataclasses.dataclass
class RewardConfig:
    """Weights of the reward terms; `RewardCalculator` has the formulas."""

    goal_reached: float = 100.0
    progress: float = 1.0
    """Per metre closer to the goal."""
    smooth_movement: float = 0.1
    """Per metre nearer than ever before, with little acceleration."""
    comfort_bonus: float = 2.0
    """Per metre nearer than ever before, with a comfort score of 1."""
    collision_penalty: float = -10.0
    """Per collision."""
    fall_penalty: float = -50.0
    timeout_penalty: float = -20.0
    teleport_penalty: float = -1.0
    """Per teleport after the first `actions.free_teleports` of an episode."""


@dataclasses.dataclass
class ObservationConfig:
    """What the policy sees."""

    normalize: bool = True
    """Scale observations and rewards by their running mean and variance."""
    task_id: bool = False
    """Append which of `environment.tasks` is played, one number per task."""


@dataclasses.dataclass
class ActionConfig:
    """What actions do."""

    type: Literal["continuous", "discrete"] = "continuous"
    max_movement_speed: float = 2.0
    """m/s."""
    max_rotation_speed: float = 90.0
    """Degrees per second."""
    action_smoothing: float = 0.1
    """Share of the previous action in the next one, 0 to 1."""
    turn_angle: float = 45.0
    """Degrees of a discrete turn."""
    move_distance: float = 1.0
    """Metres of a discrete move."""
    free_teleports: int = 3


@dataclasses.dataclass
class EnvironmentConfig:
    """The game."""

    scene_path: str = SCENE
    num_environments: int = 8
    """Rigs that learn side by side, over all games."""
    max_episode_steps: int = 1000
    min_goal_distance: float = 10.0
    """Metres."""
    max_goal_distance: float = 30.0
    """Metres."""
    tasks: list[Task] = dataclasses.field(default_factory=lambda: ["goals"])
    """One of these is drawn for every episode."""
    port: int = PORT
    """Of the first game's HTTP API, with `wire` http."""
    wire: Literal["binary", "json", "http"] = "binary"


@dataclasses.dataclass
class CurriculumStage:
    """A part of the training with goals up to a distance."""

    name: str
    max_goal_distance: float
    timesteps: int


@dataclasses.dataclass
class TrainingConfig:
    """How long to train, and what is saved."""

    total_timesteps: int = 1_000_000
    """Of all environments together."""
    save_freq: int = 10_000
    """Steps between checkpoints."""
    eval_freq: int = 50_000
    """Steps between evaluations, which keep the best model; 0: none."""
    eval_episodes: int = 20
    stop_at_success: float = 0.0
    """Stop when an evaluation has this share of successes; 0: train all steps."""
    num_workers: int = 1
    """Games, each with its share of `environment.num_environments`."""
    use_curriculum: bool = False
    curriculum_stages: list[CurriculumStage] = dataclasses.field(default_factory=list)
    scene_reload_freq: int = 0
    """Steps between reloads of the scene; 0: never."""
    seed: int = 0
    output_dir: str = "user://ml_training"


@dataclasses.dataclass
class RLConfig:
    """All groups."""

    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    ppo: PPOConfig = dataclasses.field(default_factory=PPOConfig)
    rewards: RewardConfig = dataclasses.field(default_factory=RewardConfig)
    observations: ObservationConfig = dataclasses.field(default_factory=ObservationConfig)
    actions: ActionConfig = dataclasses.field(default_factory=ActionConfig)
    environment: EnvironmentConfig = dataclasses.field(default_factory=EnvironmentConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)

    @classmethod
    def preset(cls, name: str) -> Self:
        """One of `PRESETS`."""
        if name not in PRESETS:
            raise UserError(f"no preset '{name}'; choose from {', '.join(PRESETS)}")
        config = cls()
        PRESETS[name](config)
        return config

    @classmethod
    def from_dict(cls, found: Any, base: Self | None = None) -> Self:
        """Read plain data over `base`, by default over the defaults; UserError names the key."""
        merged = (base or cls()).to_dict()
        if not isinstance(found, Mapping):
            raise UserError(f"expected groups such as training, got {found!r:.60}")
        for group, values in found.items():
            known = _known(group, merged, "")
            if not isinstance(values, Mapping):
                raise UserError(f"{group}: expected keys and values, got {values!r:.60}")
            for key, value in values.items():
                _known(key, known, f"{group}.")
                known[key] = value
        try:
            config = msgspec.convert(merged, cls)
        except msgspec.ValidationError as error:
            raise UserError(str(error).replace("$.", "")) from error
        config.check()
        return config

    @classmethod
    def from_json(cls, path: Path, base: Self | None = None) -> Self:
        """Read a file over `base`, by default over the defaults."""
        try:
            found = msgspec.json.decode(path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror or error}") from error
        except msgspec.DecodeError as error:
            raise UserError(f"{path} is not JSON: {error}") from error
        try:
            return cls.from_dict(found, base)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """As plain data, which `from_dict` reads."""
        return dataclasses.asdict(self)

    def to_json(self, path: Path) -> None:
        """Write a file, which `from_json` reads."""
        write_json(path, self.to_dict())

    def check(self) -> None:
        """Raise UserError for values that cannot work."""
        environment, training = self.environment, self.training
        for name, least, most in LIMITS:
            group, key = name.split(".")
            check_span(name, getattr(getattr(self, group), key), least, most)
        if not self.network.net_arch or min(self.network.net_arch) < 1:
            raise UserError(f"network.net_arch: expected sizes, got {self.network.net_arch}")
        if environment.num_environments % training.num_workers:
            raise UserError(
                f"environment.num_environments: expected a multiple of training.num_workers "
                f"{training.num_workers}, got {environment.num_environments}"
            )
        if not environment.tasks or len(set(environment.tasks)) < len(environment.tasks):
            raise UserError(f"environment.tasks: expected different ones, got {environment.tasks}")
        if environment.min_goal_distance > environment.max_goal_distance:
            raise UserError("environment.min_goal_distance: expected at most max_goal_distance")
        if training.use_curriculum and not training.curriculum_stages:
            raise UserError("training.curriculum_stages: expected stages with use_curriculum")
        for stage in training.curriculum_stages:
            check_span(f"stage {stage.name}: timesteps", stage.timesteps, 1)
            check_span(f"stage {stage.name}: max_goal_distance", stage.max_goal_distance, 1, 100)

    @property
    def rigs(self) -> int:
        """Environments in each game."""
        return self.environment.num_environments // self.training.num_workers

    def parameters(self, *, full_range: bool = False) -> dict[str, Any]:
        """The game's parameters, in the form of a parameter file.

        Args:
            full_range: without the curriculum, as for an evaluation.
        """
        environment, actions = self.environment, self.actions
        common: dict[str, Any] = {
            "task": {"choice": list(environment.tasks)},
            "max_steps": environment.max_episode_steps,
            "max_movement_speed": actions.max_movement_speed,
            "max_rotation_speed": actions.max_rotation_speed,
            "action_smoothing": actions.action_smoothing,
            "turn_angle": actions.turn_angle,
            "move_distance": actions.move_distance,
            # A game with mazes alone has no such parameters.
            **(
                self._distances(environment.max_goal_distance)
                if environment.tasks != ["maze"]
                else {}
            ),
            "reward_scale": 1.0,
            **{name: getattr(self.rewards, name) for name in IN_THE_GAME},
        }
        if full_range or not self.training.use_curriculum:
            return {"parameters": common}
        stages = self.training.curriculum_stages
        total = sum(stage.timesteps for stage in stages)
        lessons: list[dict[str, Any]] = []
        done = 0
        for stage in stages:
            done += stage.timesteps
            lesson: dict[str, Any] = {"name": stage.name}
            lesson["parameters"] = self._distances(stage.max_goal_distance)
            if stage is not stages[-1]:
                lesson["until"] = {"progress": done / total}
            lessons.append(lesson)
        return {"parameters": common, "curriculum": lessons}

    def constant_parameters(self) -> dict[str, Any]:
        """Those that are the same in every episode, for a game without a trainer."""
        drawn = self.parameters(full_range=True)["parameters"]
        same = {name: value for name, value in drawn.items() if not isinstance(value, dict)}
        return same | {"actions": self.actions.type, "task": self.environment.tasks[0]}

    def _distances(self, farthest: float) -> dict[str, float]:
        """Stages with goals nearer than the usual ones begin at half their range."""
        nearest = self.environment.min_goal_distance
        if nearest >= farthest:
            nearest = farthest / 2
        return {"goal_min_m": nearest, "goal_max_m": farthest}


IN_THE_GAME = (
    "goal_reached",
    "progress",
    "smooth_movement",
    "comfort_bonus",
    "collision_penalty",
    "fall_penalty",
    "timeout_penalty",
)
"""Rewards that the game pays itself; teleports are not part of these tasks."""
LIMITS: tuple[tuple[str, float, float | None], ...] = (
    ("ppo.learning_rate", 0, 1),
    ("ppo.n_steps", 1, None),
    ("ppo.batch_size", 2, None),
    ("ppo.n_epochs", 1, None),
    ("ppo.gamma", 0, 1),
    ("ppo.gae_lambda", 0, 1),
    ("ppo.clip_range", 0, 1),
    ("ppo.ent_coef", 0, None),
    ("ppo.vf_coef", 0, None),
    ("ppo.max_grad_norm", 0, None),
    ("ppo.log_std_init", -10, 2),
    ("ppo.log_std_final", -10, 2),
    ("ppo.lstm_hidden_size", 1, None),
    ("actions.max_movement_speed", 0.1, 10),
    ("actions.max_rotation_speed", 1, 720),
    ("actions.action_smoothing", 0, 0.99),
    ("actions.turn_angle", 1, 180),
    ("actions.move_distance", 0.1, 10),
    ("actions.free_teleports", 0, None),
    ("environment.num_environments", 1, 1024),
    ("environment.max_episode_steps", 1, 100_000),
    ("environment.min_goal_distance", 1, 100),
    ("environment.max_goal_distance", 1, 100),
    ("environment.port", 0, 65_535),
    ("training.total_timesteps", 1, None),
    ("training.save_freq", 1, None),
    ("training.eval_freq", 0, None),
    ("training.eval_episodes", 1, None),
    ("training.stop_at_success", 0, 1),
    ("training.num_workers", 1, 64),
    ("training.scene_reload_freq", 0, None),
    ("training.seed", 0, 2**31 - 1),
)


def _quick_test(config: RLConfig) -> None:
    config.training.total_timesteps = 10_000
    config.training.save_freq = 2_000
    config.training.eval_freq = 5_000
    config.training.eval_episodes = 8
    config.environment.max_episode_steps = 200


def _full_training(config: RLConfig) -> None:
    config.training.total_timesteps = 5_000_000
    config.training.save_freq = 100_000
    config.training.eval_freq = 250_000
    config.environment.max_episode_steps = 1_000


def _curriculum_learning(config: RLConfig) -> None:
    config.training.total_timesteps = 3_000_000
    config.training.use_curriculum = True
    config.training.curriculum_stages = [
        CurriculumStage("easy", 10.0, 500_000),
        CurriculumStage("medium", 20.0, 1_000_000),
        CurriculumStage("hard", 30.0, 1_500_000),
    ]


def _comfort_optimized(config: RLConfig) -> None:
    config.training.total_timesteps = 1_000_000
    config.rewards.comfort_bonus = 5.0
    config.rewards.smooth_movement = 0.5
    config.actions.action_smoothing = 0.3


PRESETS: dict[str, Callable[[RLConfig], None]] = {
    "quick_test": _quick_test,
    "full_training": _full_training,
    "curriculum_learning": _curriculum_learning,
    "comfort_optimized": _comfort_optimized,
}


def _known(key: str, among: dict[str, Any], prefix: str) -> dict[str, Any]:
    if key not in among:
        near = difflib.get_close_matches(key, among, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(among)}"
        raise UserError(f"unknown key {prefix}{key}; {hint}")
    found: dict[str, Any] = among[key]
    return found
