"""`estragon judge validate`: did a training run go well?"""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.judge.validate import ROOTS, Trend, describe, find_run, validate_run
from estragon.support.errors import CHECK_FAILED, OK
from estragon.support.files import ensure_writable
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class JudgeValidateCommand:
    """Check the metrics of a training run: thresholds, numbers that are not finite, the trend.

    Reads TensorBoard events, .csv and .metrics.jsonl files anywhere in the run's folder. Exit code:
    0 all checks passed, 1 a check failed, 2 bad input.
    """

    experiment: str
    """A run's folder, a file of metrics, or the name of an experiment; of that, the latest run."""
    min_reward: Annotated[float | None, optional("NUMBER")] = None
    """Smallest mean reward per episode at the end."""
    max_physics_time: Annotated[float | None, optional("MS")] = None
    """Largest physics time of a frame, if the game reports it."""
    require: tuple[str, ...] = ()
    """Further thresholds on the final value of a series, such as 'train/loss<=2'."""
    fail_on: tuple[Trend, ...] = ()
    """Trends of the reward that fail: plateau, decline."""
    logs: Annotated[Path | None, optional("FOLDER")] = None
    """Where to look for an experiment by name; by default where the trainers put their runs."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Also write the verdict to this file, for `estragon judge report`."""

    def run(self) -> int:
        """Check, print, write."""
        if self.json_file is not None:
            ensure_writable(self.json_file)
        folder = find_run(self.experiment, ROOTS if self.logs is None else (self.logs,))
        found = validate_run(
            folder,
            min_reward=self.min_reward,
            max_physics_ms=self.max_physics_time,
            require=self.require,
            fail_on=self.fail_on,
        )
        print(describe(found))
        if self.json_file is not None:
            found.write(self.json_file)
            print(f"wrote {self.json_file}")
        return OK if found.passed else CHECK_FAILED
