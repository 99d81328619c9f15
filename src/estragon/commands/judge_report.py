"""`estragon judge report`: what was found, for people and for CI."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.judge.evaluation_file import Evaluation
from estragon.judge.regress import RegressionRules, Verdict, check_regression
from estragon.judge.report import link_to, make_report, to_markdown, write_report
from estragon.judge.validate import Validation
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_whole
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class JudgeReportCommand:
    """Write a report of an evaluation, with the verdict if there is one.

    The format follows from the name: .md, .html (one file with its pictures) or .xml (JUnit). Exit
    code: 0 written, 2 bad input; the verdict itself is the exit code of regress and validate.
    """

    metrics: Path
    """The evaluation, from `estragon judge evaluate`."""
    output: tuple[Path, ...] = (Path("report.html"),)
    """The files to write."""
    baseline: Annotated[Path | None, optional("FILE")] = None
    """The baseline, to draw beside it; without --verdict, also compared with the defaults."""
    verdict: Annotated[Path | None, optional("FILE")] = None
    """What `estragon judge regress --json` wrote."""
    validation: Annotated[Path | None, optional("FILE")] = None
    """What `estragon judge validate --json` wrote."""
    summary: Annotated[Path | None, optional("FILE.md")] = None
    """Also write a short summary, for a pull request."""
    link: tuple[str, ...] = ()
    """Traces, films and other files or addresses to link to, each NAME=PATH."""
    title: str = ""
    """Title; by default the model and the scene."""

    def run(self) -> None:
        """Read, then write."""
        if not self.output:
            raise UserError("--output: expected at least one file")
        for path in (*self.output, *([self.summary] if self.summary else [])):
            ensure_writable(path)
        current = Evaluation.read(self.metrics)
        baseline = Evaluation.read(self.baseline) if self.baseline else None
        verdict = Verdict.read(self.verdict) if self.verdict else None
        if verdict is None and baseline is not None:
            verdict = check_regression(current, baseline, RegressionRules())
        validation = Validation.read(self.validation) if self.validation else None
        for path in (*self.output, *([self.summary] if self.summary else [])):
            links = [self._link(each, path) for each in self.link]
            short = path == self.summary
            report = make_report(
                current, verdict, validation, title=self.title, links=links, short=short
            )
            if short:
                write_whole(path, to_markdown(report).encode())
            else:
                write_report(path, report, current, baseline, verdict)
            print(f"wrote {path}")

    def _link(self, text: str, report: Path) -> tuple[str, str]:
        name, equals, target = text.partition("=")
        if not equals:
            raise UserError(f"--link: expected NAME=PATH, got '{text}'")
        return name, link_to(target, report)
