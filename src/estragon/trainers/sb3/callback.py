"""What happens beside SB3's own learning loop: metrics, checkpoints, stop requests, TensorBoard."""

import contextlib
from collections.abc import Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from estragon.trainers.metrics import Episodes
from estragon.trainers.run import Run, warn

OFF_POLICY_ITERATION_STEPS = 1000
"""Off-policy algorithms have no rollouts: an iteration is at least this many steps."""
TRAIN = "train/"
CONTROLLER_NAMES = {
    "policy_gradient_loss": "policy_loss",
    "actor_loss": "policy_loss",
    "value_loss": "vf_loss",
    "critic_loss": "vf_loss",
}
"""SB3's name → the controller's; metrics have both."""


class RunCallback(BaseCallback):
    """Reports a run's iterations; called after every step of all agents and around rollouts."""

    def __init__(
        self, run: Run, policies: Sequence[str], *, on_policy: bool, checkpoint_every: int | None
    ) -> None:
        """Report to a run.

        Args:
            run: which decides when to stop.
            policies: the policy's name of every agent.
            on_policy: whether the algorithm alternates rollouts and updates.
            checkpoint_every: steps between checkpoints; None: none.
        """
        super().__init__()
        self._run, self._policies, self._on_policy = run, policies, on_policy
        self._every = checkpoint_every
        self._logged = _LastValues()
        self._episodes: dict[str, Episodes] = {}
        self._reported_at = self._saved_at = 0

    def _on_training_start(self) -> None:
        self.logger.output_formats.append(self._logged)
        self._reported_at = self._saved_at = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if not self._on_policy:
            self._save_if_due()  # the replay buffer now has the last step, too
        elif self.num_timesteps > self._reported_at:
            self._end_iteration()

    def _on_step(self) -> bool:
        counters = self._run.counters
        counters.timesteps = counters.env_steps = self.num_timesteps
        for agent in self.locals["dones"].nonzero()[0]:
            info = self.locals["infos"][agent]
            episodes = self._episodes.setdefault(self._policies[agent], Episodes())
            episodes.add(info["episode"]["r"], info["episode"]["l"], info)
        if self._on_policy:
            self._save_if_due()
        elif self.num_timesteps - self._reported_at >= OFF_POLICY_ITERATION_STEPS:
            self._end_iteration()
        self._run.show_progress()
        return not self._run.stop_requested()

    def _on_training_end(self) -> None:
        self._save_if_due()
        if self.num_timesteps > self._reported_at:
            self._end_iteration()

    def _save_if_due(self) -> None:
        if self._every and self.num_timesteps - self._saved_at >= self._every:
            self._saved_at = self.num_timesteps
            self._run.save_checkpoint()

    def _end_iteration(self) -> None:
        self._run.counters.iteration += 1
        self._run.end_iteration(
            self._episodes,
            dict.fromkeys(self._policies, self._learner_stats()),
            trained=getattr(self.model, "_n_updates", 0) > 0,
        )
        self._reported_at, self._episodes = self.num_timesteps, {}

    def _learner_stats(self) -> dict[str, float]:
        found = self._logged.values | self.logger.name_to_value
        stats = {
            key.removeprefix(TRAIN): float(value)
            for key, value in found.items()
            if key.startswith(TRAIN) and isinstance(value, int | float)
        }
        stats |= {
            ours: stats[theirs] for theirs, ours in CONTROLLER_NAMES.items() if theirs in stats
        }
        if "entropy_loss" in stats:
            stats["entropy"] = -stats["entropy_loss"]
        return stats


class _LastValues(KVWriter):
    """Keeps what SB3's logger wrote last, as the logger itself drops it."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Keep the values."""
        self.values |= key_values

    def close(self) -> None:
        """Close nothing."""


class _Events(TensorBoardOutputFormat):
    """TensorBoard's files; a full disk ends them, but not the training."""

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Write, or stop writing after an error."""
        if self._is_closed:
            return
        try:
            super().write(key_values, key_excluded, step)
        except OSError as error:
            self._is_closed = True
            warn(f"no more TensorBoard: {error}")

    def close(self) -> None:
        """Close the files."""
        with contextlib.suppress(OSError):
            super().close()


def quiet_logger(folder: str | None) -> Logger:
    """A logger of SB3 that writes to TensorBoard only, or nowhere."""
    return Logger(folder, [_Events(folder)] if folder is not None else [])
