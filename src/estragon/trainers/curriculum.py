"""The parameters of a run: where they come from, which lesson is taught, what is reported."""

from collections.abc import Mapping
from typing import Any

from estragon.support.errors import UserError
from estragon.support.parameters import Curriculum, Plan, Rule
from estragon.trainers.metrics import OWN_INFO_KEYS, Episodes, mean

CURRICULUM, FEED, PLAN = "curriculum", "feed", "plan"
"""Keys of what a checkpoint keeps; RLlib keeps a feed per env runner."""


class RunCurriculum:
    """Which lesson the agents of a run are in, when each began, and what a metric says of it."""

    def __init__(
        self,
        plan: Plan,
        rule: Rule | None = None,
        saved: Mapping[str, Any] | None = None,
        timesteps: int = 0,
    ) -> None:
        """Begin with the first lesson, or where the checkpoint `saved` was."""
        self.plan = plan
        self._curriculum = Curriculum(plan, rule)
        if saved:
            self._curriculum.restore(saved[CURRICULUM])
        self.begun: list[dict[str, Any]] = []
        self._note_lesson(timesteps)

    @property
    def lesson(self) -> int:
        """The number of the lesson, from 0."""
        return self._curriculum.lesson

    @property
    def name(self) -> str:
        """The lesson's name."""
        return self._curriculum.name

    def add(
        self,
        reward: float,
        info: Mapping[str, Any],
        *,
        lesson: int,
        progress: float,
        timesteps: int,
    ) -> bool:
        """Count an episode that was played in a lesson; returns whether the lesson changed.

        Episodes of another lesson than the current one say nothing about it.
        """
        if lesson != self.lesson or "game_lost" in info:
            return False
        self._curriculum.progress = progress
        changed = self._curriculum.add(reward, info)
        if changed:
            self._note_lesson(timesteps)
            print(f"lesson {self.lesson} ({self.name}) at {timesteps:,} steps", flush=True)
        return changed

    def metric(self, episodes: Episodes) -> dict[str, Any]:
        """What an iteration's metric says, with the means of the episodes' parameters."""
        means = {name: mean(values) for name, values in episodes.parameters.items()}
        if len(self.plan.lessons) == 1:
            return {"parameters": means}
        return {"lesson": self.lesson, "lesson_name": self.name, "parameters": means}

    def summary(self) -> dict[str, Any]:
        """What the run's manifest says at the end."""
        return {"lesson": self.lesson, "lesson_name": self.name, "lessons": self.begun}

    def save(self, feed: Any) -> dict[str, Any]:
        """For a checkpoint, with the state of the environment's draws."""
        return {CURRICULUM: self._curriculum.save(), FEED: feed, PLAN: self.plan.plain()}

    @property
    def needs_infos(self) -> bool:
        """Whether a criterion is on a key of the game's infos."""
        return bool(self._info_keys())

    def check_infos(self, infos: Mapping[str, Any]) -> None:
        """UserError for a criterion on a key that the game's infos, given at a reset, lack."""
        for lesson, key in self._info_keys().items():
            if key not in infos:
                known = ", ".join(sorted(set(infos) - OWN_INFO_KEYS)) or "nothing"
                raise UserError(
                    f"lesson {lesson}: until success_rate: the game's info has no '{key}'; it has "
                    f"{known} (choose with key)"
                )

    def _info_keys(self) -> dict[str, str]:
        return {
            lesson.name: lesson.until.key
            for lesson in self.plan.lessons
            if lesson.until and lesson.until.success_rate is not None
        }

    def _note_lesson(self, timesteps: int) -> None:
        self.begun.append({"lesson": self.lesson, "name": self.name, "timesteps": timesteps})


def check_progress(plan: Plan, *, has_limit: bool) -> None:
    """UserError for a criterion on the share of a training that has no end."""
    for lesson in plan.lessons:
        if not has_limit and lesson.until and lesson.until.progress is not None:
            raise UserError(
                f"lesson {lesson.name}: until progress: the run has no limit of steps or time, so "
                "the next lesson is never reached"
            )
