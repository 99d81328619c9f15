"""Which hyper-parameters are worth trying, for every algorithm."""

from typing import TYPE_CHECKING

from estragon.trainers.sb3.algorithms import Algorithm
from estragon.trainers.sb3.settings import Hyperparameters

if TYPE_CHECKING:
    import optuna

Choices = tuple[float, ...]
Range = tuple[str, float, float]
LOG, EVEN = "log", "even"
SPACE: dict[str, Choices | Range] = {
    "learning_rate": (LOG, 1e-5, 3e-3),
    "batch_size": (64, 128, 256, 512),
    "n_steps": (16, 32, 64, 128, 256),
    "n_epochs": (3, 5, 10, 20),
    "gamma": (0.95, 0.97, 0.98, 0.99, 0.995, 0.999),
    "gae_lambda": (EVEN, 0.8, 1.0),
    "ent_coef": (LOG, 1e-5, 0.1),
    "clip_range": (0.1, 0.2, 0.3, 0.4),
    "vf_coef": (EVEN, 0.2, 1.0),
    "max_grad_norm": (LOG, 0.3, 5.0),
    "lstm_hidden_size": (32, 64, 128),
    "learning_starts": (200, 500, 1000, 2000),
    "gradient_steps": (1, 2, 4, 8, 16),
    "tau": (0.005, 0.01, 0.02, 0.05),
    "target_update_interval": (200, 500, 1000, 2000),
    "exploration_fraction": (EVEN, 0.1, 0.6),
    "exploration_final_eps": (EVEN, 0.01, 0.1),
    "action_noise": (EVEN, 0.05, 0.4),
}
LEFT_AS_THEY_ARE = {"sac": {"ent_coef"}, "dqn": {"tau"}}
"""What SAC finds out by itself, and what DQN is better left with."""


def suggest(trial: "optuna.Trial", algorithm: Algorithm, given: Hyperparameters) -> Hyperparameters:
    """What a trial tries; what is given stays."""
    fixed = given.given()
    tried: dict[str, float] = {}
    for name, values in SPACE.items():
        if name in fixed or name not in algorithm.takes:
            continue
        if name in LEFT_AS_THEY_ARE.get(algorithm.name, ()):
            continue
        if isinstance(values[0], str):
            _, low, high = values
            tried[name] = trial.suggest_float(name, low, high, log=values[0] == LOG)
        else:
            found = trial.suggest_categorical(name, values)
            tried[name] = found
    return Hyperparameters(**tried | fixed)
