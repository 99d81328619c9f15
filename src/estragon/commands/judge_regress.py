"""`estragon judge regress`: is a build worse than the baseline?"""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.judge.evaluation_file import Evaluation
from estragon.judge.regress import (
    RegressionRules,
    check_regression,
    describe,
    metric_rules,
    update_baseline,
)
from estragon.support.errors import CHECK_FAILED, OK
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class JudgeRegressCommand:
    """Compare an evaluation with a baseline: fail if it is worse beyond noise and tolerance.

    Episodes with the same seeds are compared in pairs. mean_reward, success_rate, memory growth and
    crashes are judged; all other metrics are shown. Exit code: 0 no regression, 1 regression, 2 bad
    input.
    """

    current: Path
    """The evaluation to judge, from `estragon judge evaluate`."""
    baseline: Path
    """The evaluation to compare with."""
    tolerance: float = 0.1
    """A change up to this share of the baseline's mean is no regression."""
    metric: tuple[str, ...] = ()
    """How to judge a metric: NAME=higher, NAME=lower (which is better), NAME=same (any change
    fails) or NAME=ignore; :TOLERANCE may follow, as in fruit=higher:0.05."""
    timing: bool = False
    """Also judge frame-time spikes: the slowest steps, relative to the mean step."""
    timing_tolerance: float = 0.25
    """The tolerance of times."""
    confidence: float = 0.95
    """1 minus the chance of a false alarm, over all judged metrics together."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Also write the verdict to this file, for `estragon judge report`."""
    update: bool = False
    """Make the current evaluation the baseline, whatever the verdict; needs --reason."""
    reason: str = ""
    """Why the baseline changes; kept in its history."""

    def run(self) -> int:
        """Compare, print, write."""
        check_span("--tolerance", self.tolerance, 0.0)
        check_span("--timing_tolerance", self.timing_tolerance, 0.0)
        check_span("--confidence", self.confidence, 0.5, 0.9999)
        if self.json_file is not None:
            ensure_writable(self.json_file)
        current = Evaluation.read(self.current)
        if self.update:
            update_baseline(current, self.baseline, self.reason)
            print(f"wrote {self.baseline}")
            return OK
        rules = RegressionRules(
            tolerance=self.tolerance,
            timing_tolerance=self.timing_tolerance,
            timing=self.timing,
            alpha=1.0 - self.confidence,
            given=metric_rules(self.metric),
        )
        verdict = check_regression(current, Evaluation.read(self.baseline), rules)
        print(describe(verdict))
        if self.json_file is not None:
            verdict.write(self.json_file)
            print(f"wrote {self.json_file}")
        return OK if verdict.passed else CHECK_FAILED
