"""Callbacks for scenes of SpaceTime: performance in TensorBoard, and reloads of the scene."""

from collections.abc import Callable, Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from estragon.support.errors import UserError

RATIOS = ("physics_frame_time_ratio", "render_frame_time_ratio", "chunk_count_ratio")
"""What `performance` in an info has, each relative to its budget."""


class PerformanceMetricsCallback(BaseCallback):
    """Logs `performance` of the games' infos, and after every rollout what `GET /performance` says.

    Args:
        read: what returns the latter, such as `GodotAPIClient.get_performance_metrics`.
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]] | None = None) -> None:
        super().__init__()
        self._read = read

    def _on_step(self) -> bool:
        infos = self.locals.get("infos") or [{}]
        if performance := infos[0].get("performance"):
            for name, value in zip(RATIOS, performance, strict=False):
                self.logger.record(f"performance/{name}", value)
        return True

    def _on_rollout_end(self) -> None:
        if self._read is None:
            return
        try:
            found = self._read()
        except UserError:
            return  # it is restarting; what it says next time will do
        for group in ("engine", "memory"):
            for name, value in found.get(group, {}).items():
                if isinstance(value, int | float):
                    self.logger.record(f"performance/{name}", value)


class SceneReloadCallback(BaseCallback):
    """Reloads the scene every so many steps; the episodes being played are truncated."""

    def __init__(self, reload_interval: int = 10_000) -> None:
        super().__init__()
        self.reload_interval = reload_interval
        self.reloads = 0
        self._reloaded_at = 0

    def _on_training_start(self) -> None:
        self._reloaded_at = self.num_timesteps

    def _on_step(self) -> bool:
        if self.num_timesteps - self._reloaded_at >= self.reload_interval:
            self._reloaded_at = self.num_timesteps
            self.training_env.unwrapped.reload_scene()  # type: ignore[attr-defined]
            self.reloads += 1
            self.logger.record("performance/scene_reloads", self.reloads)
        return True
