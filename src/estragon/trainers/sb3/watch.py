"""What happens beside the learning: numbers told, checkpoints saved, requests to stop obeyed."""

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, TensorBoardOutputFormat

from estragon.support.progress import Progress
from estragon.trainers.episodes import Episodes
from estragon.trainers.metric_lines import Metrics, iteration_metric

REPLAY_ITERATION_STEPS = 1000
"""Off-policy learning has no rounds: an iteration is at least so many steps."""
TRAIN = "train/"
CONTROLLERS_NAMES = {
    "policy_gradient_loss": "policy_loss",
    "actor_loss": "policy_loss",
    "value_loss": "vf_loss",
    "critic_loss": "vf_loss",
}
"""What the library calls it → what the controller does; both are told."""


class Watch(BaseCallback):
    """Called by the algorithm after every step of all agents, and between its rounds."""

    def __init__(
        self,
        policies: Sequence[str],
        metrics: Metrics,
        progress: Progress,
        *,
        in_rounds: bool,
        checkpoint_every: int | None,
        checkpoint: Callable[[int], bool],
        is_over: Callable[[], bool],
        stream: TextIO | None = None,
    ) -> None:
        """Watch a run.

        Args:
            policies: the policy's name of every agent.
            metrics: where iterations are told.
            progress: how far it is, for people.
            in_rounds: whether the algorithm collects, then learns, then collects again.
            checkpoint_every: so many steps; None: never.
            checkpoint: saves one after so many steps; whether that could be done.
            is_over: whether somebody has asked to stop.
            stream: where a line for each iteration goes.
        """
        super().__init__()
        self._policies, self._metrics, self._progress = policies, metrics, progress
        self._in_rounds, self._is_over = in_rounds, is_over
        self._every, self._checkpoint = checkpoint_every, checkpoint
        self._stream = stream if stream is not None else sys.stdout
        self._kept = _Kept()
        self._episodes: dict[str, Episodes] = {}
        self._total = 0
        self._iteration = 0
        self._checkpoints = 0
        self._first_steps = self._last_steps = 0
        self._saved_at = 0
        self._began = self._iteration_began = time.monotonic()

    @property
    def episodes_total(self) -> int:
        """How many have ended."""
        return self._total

    def _on_training_start(self) -> None:
        self.logger.output_formats.append(self._kept)
        self._first_steps = self._last_steps = self._saved_at = self.num_timesteps
        self._began = self._iteration_began = time.monotonic()
        self._progress.step("training", announced=False)

    def _on_rollout_start(self) -> None:
        if not self._in_rounds:
            self._save_if_due()  # now the last step is remembered, too
        if self._in_rounds and self.num_timesteps > self._last_steps:
            self._tell()

    def _on_step(self) -> bool:
        self._count_episodes(self.locals["dones"], self.locals["infos"])
        if self._in_rounds:
            self._save_if_due()
        if not self._in_rounds and self.num_timesteps - self._last_steps >= REPLAY_ITERATION_STEPS:
            self._tell()
        done = self.num_timesteps - self._first_steps
        rate = done / max(time.monotonic() - self._began, 1e-9)
        total = self.model._total_timesteps - self._first_steps  # noqa: SLF001
        self._progress.update(done, total, f" steps, {rate:,.0f}/s")
        return not self._is_over()

    def _on_training_end(self) -> None:
        self._save_if_due()
        if self.num_timesteps > self._last_steps:
            self._tell()

    def _save_if_due(self) -> None:
        if self._every and self.num_timesteps - self._saved_at >= self._every:
            self._saved_at = self.num_timesteps
            self._checkpoints += self._checkpoint(self.num_timesteps)

    def _count_episodes(self, dones: Any, infos: list[dict[str, Any]]) -> None:
        for seat in dones.nonzero()[0]:
            info = infos[seat]
            episodes = self._episodes.setdefault(self._policies[seat], Episodes())
            episodes.add(info["episode"]["r"], info["episode"]["l"], info)
            self._total += 1

    def _tell(self) -> None:
        now = time.monotonic()
        self._iteration += 1
        stats = self._learner_stats()
        learned = getattr(self.model, "_n_updates", 0) > 0
        self._metrics.emit(
            iteration_metric(
                iteration=self._iteration,
                env_steps=self.num_timesteps,
                agent_steps=self.num_timesteps,
                trained=float(learned),
                env_steps_this_iter=self.num_timesteps - self._last_steps,
                time_this_iter_s=now - self._iteration_began,
                time_total_s=now - self._began,
                episodes=self._episodes,
                episodes_total=self._total,
                learner=dict.fromkeys(self._policies, stats),
                checkpoints=self._checkpoints,
            )
        )
        print(self._line(), file=self._stream, flush=True)
        self._last_steps, self._iteration_began = self.num_timesteps, now
        self._episodes = {}

    def _line(self) -> str:
        last = self._metrics.last
        told = f"iteration {self._iteration}: {self.num_timesteps:,} steps, {self._total} episodes"
        if last["episodes_this_iter"]:
            told += f", reward {last['episode_reward_mean']:.3f}"
            told += f", length {last['episode_len_mean']:.1f}"
        for key, value in last["custom_metrics"].items():
            told += f", {key} {value:.3f}" if value is not None else ""
        return f"{told}, {last['env_throughput']:,.0f} steps/s"

    def _learner_stats(self) -> dict[str, float]:
        found = self._kept.values | self.logger.name_to_value
        stats = {
            key.removeprefix(TRAIN): float(value)
            for key, value in found.items()
            if key.startswith(TRAIN) and isinstance(value, int | float)
        }
        for theirs, ours in CONTROLLERS_NAMES.items():
            if theirs in stats:
                stats[ours] = stats[theirs]
        if "entropy_loss" in stats:
            stats["entropy"] = -stats["entropy_loss"]
        return stats


class _Kept(KVWriter):
    """Remembers what the library's logger last wrote, since it forgets that itself."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Remember."""
        self.values |= key_values

    def close(self) -> None:
        """Nothing is open."""


class _Events(TensorBoardOutputFormat):
    """TensorBoard's files; a full disk ends them, not the training."""

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Write, or give up for good."""
        if self._is_closed:
            return
        try:
            super().write(key_values, key_excluded, step)
        except OSError as error:
            self._is_closed = True
            print(f"WARNING: no more TensorBoard: {error}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the files, where that can be done."""
        with contextlib.suppress(OSError):
            super().close()


def quiet_logger(folder: str | None) -> Logger:
    """The library's own numbers go to TensorBoard alone, or nowhere."""
    return Logger(folder, [_Events(folder)] if folder is not None else [])
