"""Options of a Stable-Baselines3 run: what `estragon train sb3` and a controller's file set.

Imports no training library, so that `--help` works without one.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tyro

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import optional
from estragon.trainers.settings import (
    PARALLEL,
    PATH,
    SEED,
    BaseHyperparameters,
    Count,
    Device,
    Number,
    Share,
    Span,
    TrainerSettings,
    check_spans,
)

AlgorithmName = Literal["ppo", "a2c", "sac", "td3", "ddpg", "dqn", "recurrent_ppo", "maskable_ppo"]
PolicyType = Literal["mlp", "cnn", "lstm"]
Activation = Literal["tanh", "relu", "elu"]
LogStd = Annotated[float | None, optional("NUMBER"), Span(-10, 2)]


@dataclasses.dataclass(frozen=True)
class Sb3Hyperparameters(BaseHyperparameters):
    """Hyperparameters of all algorithms; those not set have the algorithm's own default."""

    learning_rate: Number = None
    """Learning rate of the optimizer."""
    batch_size: Count = None
    """Steps per minibatch."""
    n_steps: Count = None
    """Rollout length: steps of each agent between updates."""
    n_epochs: Count = None
    """Passes over the rollout buffer per update."""
    gamma: Share = None
    """Discount factor."""
    gae_lambda: Share = None
    """Lambda of generalized advantage estimation, 0 to 1."""
    ent_coef: Number = None
    """Entropy coefficient."""
    clip_range: Number = None
    """PPO's clipping range."""
    target_kl: Number = None
    """An update stops early when the KL divergence exceeds this by half; by default never."""
    vf_coef: Number = None
    """Weight of the value loss."""
    max_grad_norm: Number = None
    """Maximum norm of the gradient."""
    log_std_init: LogStd = None
    """Logarithm of the initial standard deviation of continuous actions; 0 is a deviation of 1."""
    log_std_final: LogStd = None
    """The same at the end of the training, with a linear schedule; by default it is learned."""
    lstm_hidden_size: Count = None
    """Hidden units of the LSTM."""
    buffer_size: Count = None
    """Size of the replay buffer in steps."""
    learning_starts: Annotated[int | None, optional("N"), Span(0)] = None
    """Random steps before learning starts."""
    train_freq: Count = None
    """Steps of each agent between updates from the replay buffer."""
    gradient_steps: Annotated[int | None, optional("N"), Span(-1)] = None
    """Minibatches per such update; -1: as many as steps of each agent since the last one."""
    tau: Share = None
    """Soft update coefficient of the target network."""
    target_update_interval: Count = None
    """Steps between updates of the target network."""
    exploration_fraction: Share = None
    """Fraction of the training over which the exploration rate falls."""
    exploration_final_eps: Share = None
    """Final exploration rate."""
    action_noise: Number = None
    """Standard deviation of the action noise of td3 and ddpg."""

    def over(self, other: Mapping[str, Any]) -> "Sb3Hyperparameters":
        """These, completed by others where they are not set."""
        known = {name: value for name, value in other.items() if name in vars(self)}
        return Sb3Hyperparameters(**known | self.given())


@dataclasses.dataclass(frozen=True)
class Sb3Settings(TrainerSettings):
    """Options of a Stable-Baselines3 run."""

    algo: Annotated[AlgorithmName | None, optional("NAME")] = None
    """The algorithm: ppo, a2c, sac, td3, ddpg, dqn, recurrent_ppo or maskable_ppo; default: that of
    the resumed model, or ppo."""
    policy_type: PolicyType = "mlp"
    """mlp: fully connected layers; cnn: with convolutions for images before them; lstm:
    recurrent."""
    policy_layers: tuple[int, ...] = (64, 64)
    """Units of each hidden layer."""
    activation: Annotated[Activation | None, optional("NAME")] = None
    """Activation function of the hidden layers: tanh, relu or elu; default: the algorithm's own."""
    timesteps: Annotated[int, Span(1)] = 1_000_000
    """Steps of all agents together; when resuming, this many more."""
    n_parallel: Annotated[int, PARALLEL] = 1
    """Number of game processes, 1 to 64."""
    experiment_dir: Path = Path("logs/sb3")
    """Directory of the runs."""
    experiment_name: str = "experiment"
    """The run directory is <experiment_dir>/<experiment_name>_<number>, always a new one."""
    seed: Annotated[int, SEED] = 0
    """Seed of the games and of the initial weights."""
    resume_model_path: Annotated[Path | None, PATH] = None
    """A model to resume, or to play with --inference."""
    trust: bool = False
    """Load a model that Estragon did not write; loading it can run any code stored in it."""
    save_model_path: Annotated[Path | None, PATH] = None
    """Also save the final model to this path."""
    save_checkpoint_frequency: Annotated[int | None, optional("STEPS"), Span(1)] = None
    """Steps between checkpoints."""
    onnx_export_path: Annotated[Path | None, PATH] = None
    """Export the final policy as ONNX, for games."""
    demos: Annotated[Path | None, PATH] = None
    """Demonstrations recorded in a game, for behavior cloning before training."""
    demo_rounds: Annotated[int, Span(1)] = 100
    """Maximum number of epochs of behavior cloning."""
    linear_lr_schedule: bool = False
    """Decrease the learning rate linearly to 0."""
    normalize: bool = False
    """Normalize observations and rewards; a resumed model keeps its own setting."""
    hyperparameters: tyro.conf.OmitArgPrefixes[Sb3Hyperparameters] = dataclasses.field(
        default_factory=Sb3Hyperparameters
    )

    CONTROLLER_PREFIX: ClassVar[str] = "sb3_"
    HYPERPARAMETERS: ClassVar[type[BaseHyperparameters]] = Sb3Hyperparameters
    CONTROLLER_KEYS: ClassVar[dict[str, str]] = {
        "algo": "algo",
        "n_parallel": "n_parallel",
        "normalize": "normalize",
        "policy_layers": "policy_layers",
        "policy_type": "policy_type",
        "speedup": "speedup",
        "viz": "viz",
    }

    def check(self) -> None:
        """Raise UserError for values that cannot work."""
        super().check()
        if not self.policy_layers or min(self.policy_layers) < 1:
            raise UserError(f"--policy_layers: expected sizes, got {self.policy_layers}")
        if self.inference and self.resume_model_path is None:
            raise UserError("--inference needs a model; use --resume_model_path")
        for path in (self.save_model_path, self.onnx_export_path):
            if path is not None:
                ensure_writable(path)


@dataclasses.dataclass(frozen=True)
class TuneSettings:
    """Options of a search for hyperparameters."""

    env_path: Annotated[str | None, PATH] = None
    """A project folder, a .pck or an exported game."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; by default the game's main scene."""
    algo: AlgorithmName = "ppo"
    """The algorithm."""
    policy_type: PolicyType = "mlp"
    """As in `estragon train sb3`."""
    policy_layers: tuple[int, ...] = (64, 64)
    """Units of each hidden layer."""
    trials: Annotated[int, Span(1)] = 30
    """Number of trials to run now."""
    timesteps: Annotated[int, Span(1)] = 50_000
    """Steps of each trial."""
    slices: Annotated[int, Span(1)] = 10
    """Number of times a trial is evaluated and may be pruned."""
    n_parallel: int = 1
    """Number of game processes."""
    normalize: bool = False
    """Normalize observations and rewards."""
    study_name: str = "study"
    """Name of the study, and of its directory."""
    experiment_dir: Path = Path("logs/tune")
    """Directory of the studies."""
    seed: int = 0
    """Seed of the trials."""
    device: Device = "auto"
    """As in `estragon train sb3`."""
    hyperparameters: tyro.conf.OmitArgPrefixes[Sb3Hyperparameters] = dataclasses.field(
        default_factory=Sb3Hyperparameters
    )

    def check(self) -> None:
        """Reject values that are out of range."""
        check_spans(self, "--")

    def as_training(self) -> Sb3Settings:
        """The settings of a trial's training."""
        own = {field.name for field in dataclasses.fields(self)}
        shared = own & {field.name for field in dataclasses.fields(Sb3Settings)}
        return Sb3Settings(**{name: getattr(self, name) for name in shared})
