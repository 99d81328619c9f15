"""One curriculum for all env runners: the lesson is decided here and pushed to every runner."""

from collections.abc import Mapping, Sequence
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.env_runner_group import EnvRunnerGroup

from estragon.trainers.curriculum import FEED, RunCurriculum
from estragon.trainers.rllib.env import ended_of, feeds_of
from estragon.trainers.run import Run

STATE = "estragon_lessons"
"""The attribute of an algorithm under which its callback finds the lessons."""


class RunnerLessons:
    """The curriculum of an algorithm, and the draws of its env runners."""

    def __init__(
        self, algorithm: Algorithm, curriculum: RunCurriculum, saved: Mapping[str, Any] | None
    ) -> None:
        """Begin, or continue in the lesson and with the draws of a checkpoint."""
        self.curriculum = curriculum
        self._group: EnvRunnerGroup = algorithm.env_runner_group
        self._feeds = {int(runner): feed for runner, feed in (saved or {FEED: {}})[FEED].items()}
        """By number of the env runner, the state of its draws when it last reported them."""
        setattr(algorithm, STATE, self)
        self.begin(self._group)

    def count(self, result: Mapping[str, Any], run: Run) -> None:
        """Count the episodes of an iteration, and push the lesson if it changed."""
        before, steps = self.curriculum.lesson, run.counters.timesteps
        self._feeds |= feeds_of(result)
        for _, reward, _, info, lesson in ended_of(result):
            self.curriculum.add(reward, info, lesson=lesson, progress=run.progress, timesteps=steps)
        lesson = self.curriculum.lesson
        if lesson != before:
            self._group.foreach_env_runner(lambda runner: runner.set_lesson(lesson))

    def begin(self, group: EnvRunnerGroup, runners: Sequence[int] | None = None) -> None:
        """Tell env runners that have not played yet where they are; all, or some by number."""
        lesson, feeds = self.curriculum.lesson, self._feeds
        group.foreach_env_runner(
            lambda runner: runner.continue_lesson(lesson, feeds),
            remote_worker_ids=None if runners is None else list(runners),
            local_env_runner=runners is None,
        )

    def save(self) -> dict[str, Any]:
        """For a checkpoint; an env runner that has not reported yet is in the lesson, too."""
        lesson = {"lesson": self.curriculum.lesson}
        feeds = {str(number): {**feed, **lesson} for number, feed in self._feeds.items()}
        return self.curriculum.save(feeds)


class LessonCallback(RLlibCallback):
    """Brings env runners that were started again into the current lesson."""

    def on_env_runners_recreated(  # noqa: D102
        self,
        *,
        algorithm: Algorithm,
        env_runner_group: EnvRunnerGroup,
        env_runner_indices: list[int],
        **_: Any,
    ) -> None:
        lessons: RunnerLessons | None = getattr(algorithm, STATE, None)
        if lessons is not None:
            lessons.begin(env_runner_group, env_runner_indices)
