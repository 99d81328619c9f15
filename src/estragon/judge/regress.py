"""`estragon judge regress`: is a build worse than the baseline, beyond noise and tolerance?

A metric has regressed if it is worse than chance explains (Holm-corrected over all judged metrics)
and by more than the tolerance. All other differences are stated, but fail nothing.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import numpy as np

from estragon.judge import provenance
from estragon.judge.evaluation_file import (
    CRASHES,
    MEANS,
    MEMORY_GROWTH,
    REWARD,
    SLOWEST_STEP,
    STEP_CPU,
    SUCCESS,
    TIMES,
    Change,
    Evaluation,
    Number,
)
from estragon.judge.statistics import Comparison, compare, detectable_share, holm
from estragon.support.errors import UserError
from estragon.support.files import read_json, write_json

HIGHER, EITHER, LOWER = 1, 0, -1
DIRECTIONS = {"higher": HIGHER, "lower": LOWER, "same": EITHER}
IGNORE = "ignore"
MEMORY_MARGIN_MB = 8.0
"""What a game's memory may grow more than the baseline's in the whole evaluation."""
REPLACES = 20
"""Entries that a baseline's history keeps."""

Status = Literal["ok", "identical", "improved", "regression", "worse", "changed", "not compared"]
"""Of these, `regression` alone fails; `worse` and `changed` are of metrics that are not judged."""


@dataclasses.dataclass(frozen=True)
class MetricRule:
    """How a metric is judged."""

    direction: int
    """HIGHER or LOWER is better, or EITHER change is worse."""
    tolerance: float
    """Relative to the baseline's mean."""
    judged: bool = True


@dataclasses.dataclass(frozen=True)
class RegressionRules:
    """How all metrics are judged: what was asked for, and the defaults."""

    tolerance: float = 0.1
    timing_tolerance: float = 0.25
    timing: bool = False
    """Whether frame-time spikes fail a build."""
    alpha: float = 0.05
    given: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By metric, `higher`, `lower`, `same` or `ignore`, and perhaps `:TOLERANCE`."""

    def __post_init__(self) -> None:
        """Check what was given."""
        for name, text in self.given.items():
            self._parse(name, text)

    def of(self, name: str) -> MetricRule | None:
        """The rule of a metric; None: ignored."""
        if name in self.given:
            return self._parse(name, self.given[name])
        if name in (REWARD, SUCCESS):
            return MetricRule(HIGHER, self.tolerance)
        if name in TIMES:
            # All other times depend on what else the machine does: judged if asked for by name.
            judged = self.timing and name == SLOWEST_STEP
            return MetricRule(LOWER, self.timing_tolerance, judged)
        if name in (MEMORY_GROWTH, CRASHES):
            return MetricRule(LOWER, self.tolerance)
        # Nobody but the user knows what the game's own numbers mean, or if short episodes are good.
        return MetricRule(EITHER, self.tolerance, judged=False)

    def _parse(self, name: str, text: str) -> MetricRule | None:
        word, colon, tolerance = text.partition(":")
        try:
            margin = float(tolerance) if colon else self.tolerance
        except ValueError:
            margin = -1.0
        if word == IGNORE and not colon:
            return None
        if word not in DIRECTIONS or not 0.0 <= margin < np.inf:
            raise UserError(
                f"--metric {name}={text}: expected {name}=higher, lower, same or ignore, and "
                "perhaps :TOLERANCE"
            )
        return MetricRule(DIRECTIONS[word], margin)


class Finding(msgspec.Struct, forbid_unknown_fields=True):
    """One metric of a verdict."""

    name: str
    status: Status
    baseline: Number
    current: Number
    method: str
    better: str
    """higher, lower, or same."""
    judged: bool
    tolerance: Number
    """In the metric's unit."""
    interval: tuple[Number, Number] | None = None
    """95% interval of the difference."""
    p_value: Number | None = None
    """Holm-corrected, if it is judged."""
    detectable: Number | None = None
    """The smallest worsening that these episodes find with 95% confidence and 80% power."""
    detectable_share: Number | None = None
    """If all pairs are identical: the smallest share of episodes that, made worse, is found."""
    changed: int = 0
    """Pairs that differ."""
    pairs: int = 0


class Verdict(msgspec.Struct, forbid_unknown_fields=True):
    """What `--json` writes."""

    passed: bool
    findings: list[Finding]
    alpha: float
    notes: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        return read_json(path, cls)

    def write(self, path: Path) -> None:
        """Write it."""
        write_json(path, msgspec.to_builtins(self))

    @property
    def regressions(self) -> list[Finding]:
        """What fails the build."""
        return [each for each in self.findings if each.status == "regression"]


def check_regression(current: Evaluation, baseline: Evaluation, rules: RegressionRules) -> Verdict:
    """Compare all metrics that both have."""
    notes = _notes(current, baseline)
    compared = _comparisons(current, baseline)
    for name in rules.given:
        if name not in compared and rules.of(name) is not None:
            known = ", ".join(compared)
            raise UserError(f"--metric {name}: not in both files; they have {known}")
    for name in baseline.metric_names():
        rule = rules.of(name)
        if name not in compared and rule is not None and rule.judged:
            raise UserError(
                f"{name} is in the baseline, but not in the current evaluation; does the game "
                f"still report it? (--metric {name}=ignore)"
            )
    kept = {name: rule for name in compared if (rule := rules.of(name)) is not None}
    judged = [name for name, rule in kept.items() if rule.judged]
    raw = {name: compared[name].p_of(kept[name].direction) for name in judged}
    tested = {name: p for name, p in raw.items() if p is not None}
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    alpha = rules.alpha / max(1, len(tested))
    findings = [
        _finding(name, compared[name], rule, corrected.get(name), rules.alpha, alpha)
        for name, rule in kept.items()
    ]
    if any(each.judged and each.status == "not compared" for each in findings):
        notes.append("too few episodes to test; evaluate more")
    passed = not any(each.status == "regression" for each in findings)
    return Verdict(passed, findings, rules.alpha, notes)


def update_baseline(current: Evaluation, path: Path, reason: str) -> None:
    """Make an evaluation the baseline; its history says why, from what, and when."""
    if not reason.strip():
        raise UserError("--update needs --reason: it is kept in the baseline's history")
    before = Evaluation.read(path).baseline if path.exists() else []
    change = Change(
        reason=reason.strip(),
        date=provenance.now(),
        commit=current.build.commit + ("+" if current.build.changed else ""),
        command=current.command,
        machine=current.machine,
    )
    current.baseline = [change, *before][:REPLACES]
    current.write(path)


def describe(verdict: Verdict) -> str:
    """A table for people."""
    lines = [f"{'metric':22} {'baseline':>10} {'current':>10} {'change':>18}  verdict"]
    lines += [
        f"{each.name:22} {each.baseline:10.4g} {each.current:10.4g} {change_text(each):>18}  "
        f"{verdict_text(each)}"
        for each in verdict.findings
    ]
    lines += [f"note: {note}" for note in verdict.notes]
    if verdict.passed:
        lines.append("PASS: no regression")
    else:
        names = ", ".join(each.name for each in verdict.regressions)
        lines.append(f"FAIL: regression in {names}")
    return "\n".join(lines)


def change_text(finding: Finding) -> str:
    """The change, in percent of the baseline where it has one."""
    difference = finding.current - finding.baseline
    return f"{difference:+.4g}{_share(difference, finding.baseline, '+')}"


def verdict_text(finding: Finding) -> str:
    """The verdict on a metric, with what it rests on."""
    status = finding.status.upper() if finding.status == "regression" else finding.status
    parts = [] if finding.method == finding.status else [finding.method]
    if finding.p_value is not None and finding.status != "identical":
        parts.append(f"p {finding.p_value:.2g}")
    if finding.detectable is not None:
        share = _share(finding.detectable, finding.baseline)
        parts.append(f"would find {finding.detectable:.3g}{share}")
    if finding.detectable_share is not None:
        parts.append(f"would find changes in {finding.detectable_share:.0%} of episodes")
    if finding.pairs and finding.status != "identical":
        parts.append(f"{finding.changed} of {finding.pairs} episodes differ")
    if not finding.judged:
        parts.append("not judged")
    return f"{status} ({', '.join(parts)})" if parts else status


def _share(number: float, baseline: float, sign: str = "") -> str:
    """In percent of the baseline; nothing where that says nothing."""
    is_small = abs(number) < 10.0 * abs(baseline)
    return f" ({number / abs(baseline):{sign}.1%})" if is_small else ""


def _comparisons(current: Evaluation, baseline: Evaluation) -> dict[str, Comparison]:
    """By metric that both have, how it compares."""
    now, before = current.samples(), baseline.samples()
    found: dict[str, Comparison] = {}
    if not now or not before:
        for name in MEANS:
            one, two = getattr(baseline, name), getattr(current, name)
            if one is not None and two is not None:
                found[name] = Comparison("means only", one, two)
    else:
        order = _pairing(current, baseline)
        for name in [name for name in now if name in before]:
            paired = order is not None and len(now[name]) == len(before[name]) == len(order)
            values = now[name][order] if paired else now[name]
            found[name] = compare(before[name], values, paired=paired)
    found[CRASHES] = Comparison("count", baseline.game_crashes, current.game_crashes)
    found |= _performance(current, baseline)
    return found


def _performance(current: Evaluation, baseline: Evaluation) -> dict[str, Comparison]:
    found: dict[str, Comparison] = {}
    for name in TIMES:
        before, now = baseline.segment_values(name), current.segment_values(name)
        if len(before) and len(now):
            found[name] = compare(before, _speed(name, current, baseline) * now, paired=False)
    growth = [each.memory_growth() for each in (baseline, current)]
    if all(len(each) > 1 for each in growth):
        # In MB over the steps of the current evaluation after its first third.
        steps = sum(each.steps for each in current.segments[len(current.segments) // 3 + 1 :])
        before, now = (each * steps / 1e3 for each in growth)
        found[MEMORY_GROWTH] = compare(before, now, paired=False)
    return found


def _speed(name: str, current: Evaluation, baseline: Evaluation) -> float:
    """What to multiply a time with, to have it as on the baseline's machine."""
    work = [each.segment_values("calibration_ms") for each in (baseline, current)]
    is_known = all(len(each) and np.median(each) > 0.0 for each in work)
    return float(np.median(work[0]) / np.median(work[1])) if is_known and name == STEP_CPU else 1.0


def _pairing(current: Evaluation, baseline: Evaluation) -> np.ndarray | None:
    """By episode of the baseline, the same one of the other; None unless all are in both."""
    now, before = current.keys(), baseline.keys()
    places = {key: place for place, key in enumerate(now)}
    same = current.is_same_game(baseline) and set(now) == set(before)
    if not same or len(places) != len(now) or len(now) != len(before):
        return None
    order = np.array([places[key] for key in before])
    for place, each in zip(order, baseline.episodes, strict=True):
        if current.episodes[place].parameters != each.parameters:
            return None
    return order


def _finding(
    name: str,
    compared: Comparison,
    rule: MetricRule,
    corrected: float | None,
    alpha: float,
    alpha_each: float,
) -> Finding:
    margin = rule.tolerance * abs(compared.baseline)
    if name == MEMORY_GROWTH:
        margin = MEMORY_MARGIN_MB
    elif name == CRASHES:
        margin = 0.0
    worse = -compared.difference if rule.direction > 0 else compared.difference
    worse = abs(worse) if rule.direction == EITHER else worse
    p_worse = corrected if rule.judged else compared.p_of(rule.direction)
    p_better = compared.p_of(-rule.direction)
    is_worse = worse > margin and (p_worse is None or p_worse < alpha)
    is_better = -worse > margin and (p_better is None or p_better < alpha)
    status: Status = "ok"
    if compared.method == "identical":
        status = "identical"
    elif compared.method == "too few to test":
        status = "not compared"
    elif is_worse:
        status = "regression" if rule.judged else "worse" if rule.direction else "changed"
    elif is_better and rule.direction:
        status = "improved"
    tested = p_worse is not None and status != "identical"
    share = None
    if compared.method == "identical":
        share = detectable_share(compared.pairs, alpha_each)
    return Finding(
        name=name,
        status=status,
        baseline=compared.baseline,
        current=compared.current,
        method=compared.method,
        better={HIGHER: "higher", LOWER: "lower", EITHER: "same"}[rule.direction],
        judged=rule.judged,
        tolerance=margin,
        interval=compared.interval,
        p_value=p_worse,
        detectable=compared.detectable(alpha_each, margin) if tested else None,
        detectable_share=share,
        changed=compared.changed,
        pairs=compared.pairs,
    )


def _notes(current: Evaluation, baseline: Evaluation) -> list[str]:
    """What a reader should know about the comparison."""
    notes: list[str] = []
    for what, one, two in (
        ("model", baseline.model_digest, current.model_digest),
        ("scene", baseline.scene, current.scene),
        ("arguments", baseline.arguments, current.arguments),
        ("opponent", baseline.opponent, current.opponent),
        ("parameters", baseline.parameters, current.parameters),
    ):
        if one and one != two:
            notes.append(f"the {what} is not the baseline's")
    if not (current.episodes and baseline.episodes):
        notes.append("a file has no episodes: means are compared with the tolerance alone")
    if not current.complete:
        notes.append("the limit of steps was reached before all episodes had ended")
    if current.build.digest and current.build.digest == baseline.build.digest:
        notes.append("the game's files are the same as the baseline's")
    return notes


def metric_rules(words: Sequence[str]) -> dict[str, str]:
    """`NAME=RULE` by name."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise UserError(f"--metric: expected NAME=RULE, got '{word}'")
        found[name] = text
    return found
