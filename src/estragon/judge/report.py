"""`estragon judge report`: a verdict as Markdown, one HTML file, JUnit XML, or a short summary."""

import base64
import dataclasses
import html
import os
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from estragon.judge.evaluation_file import MEMORY_GROWTH, TIMES, Evaluation
from estragon.judge.regress import Finding, Verdict, change_text, verdict_text
from estragon.judge.validate import Validation
from estragon.support.errors import UserError
from estragon.support.files import write_whole

FORMATS = (".md", ".html", ".xml")
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #26241f; background: #fff;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.verdict { padding: .6rem 1rem; border-radius: .4rem; color: #fff; font-weight: 600; }
.pass { background: #2b7a4b; } .fail { background: #b3362b; } .none { background: #6b665f; }
.table { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e8e5df;
  vertical-align: top; }
th, td:first-child { white-space: nowrap; }
tr.bad td { background: #fbe9e7; } tr.good td { background: #e9f5ee; }
img { max-width: 100%; height: auto; border: 1px solid #e8e5df; border-radius: .4rem; }
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """A section of a report."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: Sequence[str] = ()
    """By row, `bad`, `good` or nothing."""


@dataclasses.dataclass(frozen=True)
class Report:
    """What all formats show."""

    title: str
    passed: bool | None
    """None: there was nothing to compare with."""
    verdict: str
    tables: list[Table]
    notes: list[str]
    links: list[tuple[str, str]]
    """Name and address."""


def make_report(
    evaluation: Evaluation,
    verdict: Verdict | None = None,
    validation: Validation | None = None,
    *,
    title: str = "",
    links: Sequence[tuple[str, str]] = (),
    short: bool = False,
) -> Report:
    """Put together what is known; short: only what is judged, for a pull request."""
    tables: list[Table] = []
    failed: list[str] = []
    if verdict is not None:
        failed += [f"regression in {each.name}" for each in verdict.regressions]
        tables.append(_comparison(verdict, judged_only=short))
    if validation is not None:
        failed += [f"training: {each.name}" for each in validation.checks if not each.passed]
        rows = [
            (each.name, "ok" if each.passed else "FAIL", each.text) for each in validation.checks
        ]
        marks = ["" if each.passed else "bad" for each in validation.checks]
        tables.append(Table("Training", ("check", "", "found"), rows, marks))
    if not short or not tables:
        tables.append(_metrics(evaluation))
    if not short:
        tables.append(_provenance(evaluation))
    judged = verdict is not None or validation is not None
    passed = not failed if judged else None
    text = f"FAIL: {', '.join(failed)}" if failed else "PASS" if judged else "Not judged"
    notes = [] if verdict is None else list(verdict.notes)
    name = title or f"{evaluation.model} on {evaluation.scene or evaluation.game}"
    return Report(name, passed, text, tables, notes, list(links))


def write_report(
    path: Path,
    report: Report,
    evaluation: Evaluation,
    baseline: Evaluation | None = None,
    verdict: Verdict | None = None,
) -> None:
    """Write a file in the format of its name."""
    if path.suffix == ".md":
        text = to_markdown(report)
    elif path.suffix == ".html":
        from estragon.judge.report_charts import draw_report

        text = to_html(report, draw_report(evaluation, baseline, verdict))
    elif path.suffix == ".xml":
        text = to_junit(report, verdict)
    else:
        raise UserError(f"--output {path}: expected a name that ends in {', '.join(FORMATS)}")
    write_whole(path, text.encode())


def to_markdown(report: Report) -> str:
    """The report as Markdown."""
    sign = {True: "✅", False: "❌", None: "➖"}[report.passed]
    parts = [f"# {_plain(report.title)}", f"{sign} **{_plain(report.verdict)}**"]
    for table in report.tables:
        lines = [f"| {' | '.join(table.head)} |", "|" + "---|" * len(table.head)]
        lines += [f"| {' | '.join(map(_plain, row))} |" for row in table.rows]
        parts += [f"## {table.title}", "\n".join(lines)]
    if report.notes:
        parts.append("\n".join(f"- {_plain(note)}" for note in report.notes))
    if report.links:
        parts.append("\n".join(f"- [{_plain(name)}](<{link}>)" for name, link in report.links))
    return "\n\n".join(parts) + "\n"


def to_html(report: Report, charts: Sequence[tuple[str, bytes]]) -> str:
    """The report as one file that needs no other."""
    colour = {True: "pass", False: "fail", None: "none"}[report.passed]
    esc = html.escape
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{esc(report.title)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{esc(report.title)}</h1><p class="verdict {colour}">{esc(report.verdict)}</p>',
    ]
    if report.notes:
        parts.append("<ul>" + "".join(f"<li>{esc(note)}</li>" for note in report.notes) + "</ul>")
    if report.links:
        listed = "".join(
            f'<li><a href="{esc(to)}">{esc(name)}</a></li>' for name, to in report.links
        )
        parts.append(f"<h2>Traces and films</h2><ul>{listed}</ul>")
    for number, table in enumerate(report.tables):
        parts.append(_html_table(table))
        if number == 0:
            for name, picture in charts:
                data = base64.b64encode(picture).decode()
                parts.append(f'<p><img alt="{esc(name)}" src="data:image/png;base64,{data}"></p>')
    return "\n".join([*parts, "</body></html>"]) + "\n"


def to_junit(report: Report, verdict: Verdict | None) -> str:
    """One test case per judged metric and per check of the training."""
    cases: list[tuple[str, str, str, bool]] = []
    for each in verdict.findings if verdict else []:
        if each.judged:
            text = f"{each.name}: {change_text(each)}, {verdict_text(each)}"
            cases.append(("regression", each.name, text, each.status == "regression"))
    for table in report.tables:
        if table.title == "Training":
            for name, result, text in table.rows:
                cases.append(("training", name, text, result == "FAIL"))
    return junit(report.title, cases)


def junit(title: str, cases: Sequence[tuple[str, str, str, bool]]) -> str:
    """JUnit XML of test cases: group, name, text, whether it failed."""
    suite = ET.Element("testsuite", name=_xml(title))
    for group, name, text, failed in cases:
        _case(suite, group, name, text, failed=failed)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, "unicode") + "\n"


def link_to(target: str, report: Path) -> str:
    """An address as it is, a file as seen from the report."""
    if re.match(r"https?://", target):
        return target
    if not Path(target).exists():
        raise UserError(f"--link {target} does not exist; expected a file or an http address")
    return Path(os.path.relpath(target, report.parent)).as_posix()


def _comparison(verdict: Verdict, *, judged_only: bool) -> Table:
    kept = [each for each in verdict.findings if each.judged or not judged_only]
    order = sorted(kept, key=lambda each: (each.status != "regression", not each.judged))
    rows = [
        (
            each.name,
            f"{each.baseline:.4g}",
            f"{each.current:.4g}",
            change_text(each),
            _interval(each),
            verdict_text(each),
        )
        for each in order
    ]
    marks = [{"regression": "bad", "improved": "good"}.get(each.status, "") for each in order]
    head = ("metric", "baseline", "current", "change", "95% interval", "verdict")
    return Table("Compared with the baseline", head, rows, marks)


def _interval(finding: Finding) -> str:
    if finding.interval is None:
        return ""
    return f"{finding.interval[0]:+.3g} to {finding.interval[1]:+.3g}"


def _metrics(evaluation: Evaluation) -> Table:
    rows = [
        (name, f"{mean:.4g}", f"{low:.4g} to {high:.4g}", TIMES.get(name, ""))
        for name, (mean, low, high) in evaluation.intervals.items()
    ]
    rows += [
        (name, f"{value:.4g}", "", "at the end") for name, value in evaluation.reported.items()
    ]
    if len(growth := evaluation.memory_growth()):
        rows.append((MEMORY_GROWTH, f"{growth.mean():.3g}", "", "per 1,000 steps"))
    return Table("Evaluation", ("metric", "mean", "95% interval", ""), rows)


def _provenance(evaluation: Evaluation) -> Table:
    build = evaluation.build
    changed = " with changes" if build.changed else ""
    known = {
        "episodes": f"{len(evaluation.episodes)}, seed {evaluation.seed}",
        "model": f"{evaluation.model} {evaluation.model_digest}",
        "opponent": evaluation.opponent,
        "game": " ".join(part for part in (evaluation.game, evaluation.scene) if part),
        "arguments": ", ".join(f"{key}={value}" for key, value in evaluation.arguments.items()),
        "commit": f"{build.commit}{changed}" if build.commit else "",
        "digest of the game": build.digest,
        "crashes": str(evaluation.game_crashes),
        "versions": ", ".join(f"{key} {value}" for key, value in evaluation.versions.items()),
        "machine": evaluation.machine,
        "date": f"{evaluation.date} UTC" if evaluation.date else "",
        "command": evaluation.command,
    }
    rows = [(key, value) for key, value in known.items() if value.strip()]
    return Table("Provenance", ("", ""), rows)


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(each)}</th>" for each in table.head)
    marks = table.marks or [""] * len(table.rows)
    rows = [
        f'<tr class="{mark}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for mark, row in zip(marks, table.rows, strict=True)
    ]
    body = "".join(rows)
    return (
        f'<h2>{html.escape(table.title)}</h2><div class="table"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{body}</tbody></table></div>"
    )


def _case(suite: ET.Element, group: str, name: str, text: str, *, failed: bool) -> None:
    case = ET.SubElement(suite, "testcase", classname=f"estragon.{group}", name=_xml(name))
    if failed:
        ET.SubElement(case, "failure", message=_xml(text))
    else:
        ET.SubElement(case, "system-out").text = _xml(text)


def _plain(text: str) -> str:
    """Without what Markdown or HTML would read as markup, on one line."""
    return re.sub(r"([\\`*_\[\]|<>])", r"\\\1", " ".join(text.split()))


def _xml(text: str) -> str:
    """Without what XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
