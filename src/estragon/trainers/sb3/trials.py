"""The trials of a study, one after the other in the same games."""

import contextlib
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import optuna
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecMonitor

from estragon.support.errors import UserError
from estragon.support.interrupts import STOP_SIGNALS, StopRequest, deferred_interrupts
from estragon.support.progress import Progress
from estragon.trainers.metrics import Episodes
from estragon.trainers.sb3.algorithms import choose
from estragon.trainers.sb3.callback import quiet_logger
from estragon.trainers.sb3.games import open_games
from estragon.trainers.sb3.learner import Learner
from estragon.trainers.sb3.search import suggest
from estragon.trainers.settings import use_one_thread

if TYPE_CHECKING:
    from estragon.trainers.sb3.tune import Tune

DIVERGED = "diverged"


class Trials:
    """Plays trials."""

    def __init__(self, options: "Tune") -> None:
        """Of this study."""
        self._options = options
        self._training = options.as_training()
        self._algorithm = choose(options.algo, options.policy_type)

    def run(self, study: optuna.Study) -> bool:
        """All that are asked for; False if somebody stopped it."""
        if self._options.policy_type != "cnn":
            use_one_thread()
        with (
            contextlib.closing(open_games(self._training, None)) as games,
            Progress() as progress,
            deferred_interrupts(progress.say, STOP_SIGNALS) as request,
        ):
            progress.step("trials", announced=False)
            for number in range(self._options.trials):
                study.optimize(lambda trial: self._try(trial, games, request), n_trials=1)
                last = study.trials[-1]
                value = "" if last.value is None else f", reward {last.value:.3f}"
                print(f"trial {last.number}: {last.state.name.lower()}{value}", file=sys.stderr)
                progress.update(number + 1, self._options.trials)
                if request.made:
                    return False
        return True

    def _try(self, trial: optuna.Trial, games: VecMonitor, request: StopRequest) -> float:
        numbers = suggest(trial, self._algorithm, self._options.hyperparameters)
        if numbers.n_steps is not None and numbers.batch_size is not None:
            collected = numbers.n_steps * games.num_envs
            numbers = dataclasses.replace(numbers, batch_size=min(numbers.batch_size, collected))
        options = dataclasses.replace(
            self._training, hyperparameters=numbers, seed=self._options.seed + trial.number
        )
        learner = Learner.new(options, self._algorithm, games)
        learner.model.set_logger(quiet_logger(None))
        judge = _Judge(trial, self._options.timesteps, self._options.slices, request)
        try:
            learner.learn(self._options.timesteps, judge)
        except UserError as error:
            if DIVERGED not in str(error):
                raise
            raise optuna.TrialPruned(DIVERGED) from error
        if judge.is_cut:
            raise optuna.TrialPruned
        return judge.last


class _Judge(BaseCallback):
    """Looks at a trial a few times, and ends it where it does worse than others did."""

    def __init__(self, trial: Any, steps: int, slices: int, request: StopRequest) -> None:
        super().__init__()
        self._trial, self._request = trial, request
        self._every, self._slices = steps / slices, slices
        self._episodes = Episodes()
        self._looked = 0
        self.last = 0.0
        self.is_cut = False

    def _on_step(self) -> bool:
        for seat in self.locals["dones"].nonzero()[0]:
            info = self.locals["infos"][seat]
            self._episodes.add(info["episode"]["r"], info["episode"]["l"], {})
        if self.num_timesteps >= self._every * (self._looked + 1):
            self._looked += 1
            if self._episodes:
                self.last = self._episodes.reward_mean
                self._episodes = Episodes()
            self._trial.report(self.last, self._looked)
            is_last = self._looked >= self._slices
            self.is_cut = not is_last and self._trial.should_prune()
        self.is_cut = self.is_cut or self._request.made
        return not self.is_cut
