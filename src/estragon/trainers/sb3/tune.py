"""Hyperparameter search with Optuna: one study per task, its trials in the same games."""

import contextlib
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import FrozenTrial, TrialState
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from estragon.support.errors import INTERRUPTED, OK, UserError
from estragon.support.files import ensure_writable, write_json, write_whole
from estragon.support.interrupts import STOP_SIGNALS, StopRequest, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.controller import slug
from estragon.trainers.metrics import Episodes
from estragon.trainers.sb3.algorithms import Sb3Algorithm, choose
from estragon.trainers.sb3.learner import Sb3Adapter, quiet_logger
from estragon.trainers.sb3.settings import Sb3Hyperparameters, TuneSettings
from estragon.trainers.sb3.training import open_games
from estragon.trainers.settings import note, use_one_thread

LOG, LINEAR = "log", "linear"
SEARCH_SPACE: dict[str, tuple[float, ...] | tuple[str, float, float]] = {
    "learning_rate": (LOG, 1e-5, 3e-3),
    "batch_size": (64, 128, 256, 512),
    "n_steps": (16, 32, 64, 128, 256),
    "n_epochs": (3, 5, 10, 20),
    "gamma": (0.95, 0.97, 0.98, 0.99, 0.995, 0.999),
    "gae_lambda": (LINEAR, 0.8, 1.0),
    "ent_coef": (LOG, 1e-5, 0.1),
    "clip_range": (0.1, 0.2, 0.3, 0.4),
    "vf_coef": (LINEAR, 0.2, 1.0),
    "max_grad_norm": (LOG, 0.3, 5.0),
    "lstm_hidden_size": (32, 64, 128),
    "learning_starts": (200, 500, 1000, 2000),
    "gradient_steps": (1, 2, 4, 8, 16),
    "tau": (0.005, 0.01, 0.02, 0.05),
    "target_update_interval": (200, 500, 1000, 2000),
    "exploration_fraction": (LINEAR, 0.1, 0.6),
    "exploration_final_eps": (LINEAR, 0.01, 0.1),
    "action_noise": (LINEAR, 0.05, 0.4),
}
"""A scale with bounds, or choices."""
NOT_SEARCHED = {"sac": {"ent_coef"}, "dqn": {"tau"}}
"""SAC learns its entropy coefficient; DQN updates its target network at once."""
DIVERGED = "diverged"
SHOWN = 10


def tune(settings: TuneSettings) -> int:
    """Run trials and write the report; 0 when all are done, 130 when interrupted."""
    folder = settings.experiment_dir / slug(settings.study_name)
    ensure_writable(folder / "study.log")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(folder / "study.log"))),
        study_name=settings.study_name,
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=settings.seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=2),
    )
    _check_task(study, settings)
    if settings.policy_type != "cnn":
        use_one_thread()
    with (
        contextlib.closing(open_games(settings.as_training(), None)) as games,
        Progress() as progress,
        deferred_interrupts(progress.say, STOP_SIGNALS) as request,
    ):
        progress.step("trials", announced=False)
        finished = itertools.count(1)

        def after_trial(study: optuna.Study, trial: FrozenTrial) -> None:
            reward = "" if trial.value is None else f", reward {trial.value:.3f}"
            note(f"trial {trial.number}: {trial.state.name.lower()}{reward}")
            progress.update(next(finished), settings.trials)
            if request.made:
                study.stop()

        study.optimize(
            lambda trial: _objective(trial, settings, games, request),
            n_trials=settings.trials,
            callbacks=[after_trial],
        )
    _write_report(study, settings, folder)
    return INTERRUPTED if request.made else OK


def _objective(
    trial: optuna.Trial, settings: TuneSettings, games: VecMonitor, request: StopRequest
) -> float:
    """Train with suggested hyperparameters; the mean reward of the last slice."""
    algorithm = choose(settings.algo, settings.policy_type)
    suggested = _suggest(trial, algorithm, settings.hyperparameters)
    if suggested.n_steps is not None and suggested.batch_size is not None:
        batch_size = min(suggested.batch_size, suggested.n_steps * games.num_envs)
        suggested = dataclasses.replace(suggested, batch_size=batch_size)
    options = dataclasses.replace(
        settings.as_training(), hyperparameters=suggested, seed=settings.seed + trial.number
    )
    learner = Sb3Adapter.new(options, algorithm, games)
    learner.model.set_logger(quiet_logger(None))
    pruning = _Pruning(trial, settings, request)
    try:
        learner.learn(settings.timesteps, pruning)
    except UserError as error:
        if DIVERGED not in str(error):
            raise
        raise optuna.TrialPruned(DIVERGED) from error
    if pruning.is_pruned:
        raise optuna.TrialPruned
    return pruning.reward


def _suggest(
    trial: optuna.Trial, algorithm: Sb3Algorithm, given: Sb3Hyperparameters
) -> Sb3Hyperparameters:
    """Hyperparameters for a trial; those that are given stay."""
    fixed = given.given()
    suggested: dict[str, float] = {}
    searched = algorithm.hyperparameters - NOT_SEARCHED.get(algorithm.name, set()) - set(fixed)
    for name, values in SEARCH_SPACE.items():
        if name not in searched:
            continue
        match values:
            case (str(scale), low, high):
                suggested[name] = trial.suggest_float(name, low, high, log=scale == LOG)
            case _:
                suggested[name] = trial.suggest_categorical(name, values)
    return Sb3Hyperparameters(**suggested | fixed)


class _Pruning(BaseCallback):
    """Reports a trial's reward after each slice, and ends it if it does worse than others did."""

    def __init__(self, trial: optuna.Trial, settings: TuneSettings, request: StopRequest) -> None:
        super().__init__()
        self._trial, self._request = trial, request
        self._slices, self._slice_steps = settings.slices, settings.timesteps / settings.slices
        self._slice = 0
        self._episodes = Episodes()
        self.reward = 0.0
        self.is_pruned = False

    def _on_step(self) -> bool:
        for agent in self.locals["dones"].nonzero()[0]:
            episode = self.locals["infos"][agent]["episode"]
            self._episodes.add(episode["r"], episode["l"], {})
        if self.num_timesteps >= self._slice_steps * (self._slice + 1):
            self._slice += 1
            if self._episodes:
                self.reward = self._episodes.reward_mean
                self._episodes = Episodes()
            self._trial.report(self.reward, self._slice)
            self.is_pruned = self._slice < self._slices and self._trial.should_prune()
        self.is_pruned = self.is_pruned or self._request.made
        return not self.is_pruned


def _check_task(study: optuna.Study, settings: TuneSettings) -> None:
    """UserError if the study has trials of another task, which cannot be compared."""
    task = {
        "game": f"{settings.env_path} {settings.scene or ''}".strip(),
        "algo": settings.algo,
        "timesteps": settings.timesteps,
        "given": settings.hyperparameters.given(),
    }
    before = study.user_attrs.get("task", task)
    if before != task:
        raise UserError(
            f"study '{settings.study_name}' is of another task, {json.dumps(before)}; use another "
            "--study_name"
        )
    study.set_user_attr("task", task)


def _write_report(study: optuna.Study, settings: TuneSettings, folder: Path) -> None:
    completed = study.get_trials(states=(TrialState.COMPLETE,))
    completed.sort(key=lambda trial: -float(trial.value or 0.0))
    pruned = len(study.get_trials(states=(TrialState.PRUNED,)))
    lines = [
        f"# {settings.study_name}: {settings.algo}, {settings.timesteps:,} steps per trial",
        "",
        f"{len(study.trials)} trials, {len(completed)} completed, {pruned} pruned.",
        "",
    ]
    if completed:
        names = sorted(completed[0].params)
        lines += [f"| trial | reward | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
        for trial in completed[:SHOWN]:
            cells = [_short(trial.params.get(name)) for name in names]
            lines.append(f"| {trial.number} | {trial.value:.3f} | {' | '.join(cells)} |")
        lines += ["", "Importance of each hyperparameter:", ""]
        lines += [f"- {name}: {share:.0%}" for name, share in _importance(study).items()]
        best = {**settings.hyperparameters.given(), **completed[0].params}
        write_json(folder / "best.json", {f"sb3_{name}": value for name, value in best.items()})
        flags = " ".join(f"--{name} {_short(value)}" for name, value in best.items())
        print(f"best: {completed[0].value:.3f} with {flags}")
    write_whole(folder / "report.md", ("\n".join(lines) + "\n").encode())
    note(f"report: {folder / 'report.md'}")


def _importance(study: optuna.Study) -> dict[str, float]:
    try:
        return optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
    except (RuntimeError, ValueError):
        return {}  # too few trials


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
