"""Reports: all formats say the same, and nothing in a file can break them."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from estragon.cli import main
from estragon.judge.regress import RegressionRules, check_regression
from estragon.judge.report import make_report, to_html, to_junit, to_markdown
from estragon.judge.validate import Check, Validation
from tests.judge.staging import evaluation, segments

NOISE = np.random.default_rng(8).normal(0.0, 1.0, 60)
NASTY = '<script>alert("1")</script> | `x` ](y) & \x01'


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - we wrote it


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A baseline, and an evaluation that is worse."""
    before, now = tmp_path / "baseline.json", tmp_path / "now.json"
    evaluation(NOISE + 20.0, segments=segments()).write(before)
    evaluation(NOISE + 10.0, segments=segments(leak_mb=3.0)).write(now)
    return before, now


def test_all_formats(files: tuple[Path, Path], tmp_path: Path) -> None:
    before, now = files
    film = tmp_path / "films" / "a match.mp4"
    film.parent.mkdir()
    film.write_bytes(b"")
    outputs = [tmp_path / "out" / f"report{suffix}" for suffix in (".md", ".html", ".xml")]
    words = ["--metrics", str(now), "--baseline", str(before), "--summary", str(tmp_path / "s.md")]
    links = [f"the film={film}", "build=https://example.org/1?a=1&b=2"]
    code = main(["judge", "report", *words, "--link", *links, "--output", *map(str, outputs)])
    assert code == 0
    markdown, page, junit = (path.read_text() for path in outputs)
    for text in (markdown, page):
        assert "FAIL: regression in mean" in text
        assert "memory" in text
    assert "[the film](<../films/a match.mp4>)" in markdown
    assert 'href="../films/a match.mp4"' in page
    assert 'href="https://example.org/1?a=1&amp;b=2"' in page
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r'(?:src|href)="(?!data:|https://example|\.\./films)', page)
    suite = parse(junit)
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["mean_reward", "memory_growth_mb"]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(suite)), "2")
    summary = (tmp_path / "s.md").read_text()
    assert "FAIL" in summary
    assert "mean_episode_length" in markdown.replace("\\", "")
    assert "mean_episode_length" not in summary.replace("\\", "")


def test_a_failed_training_is_a_failed_report(files: tuple[Path, Path], tmp_path: Path) -> None:
    checks = [Check("reward", passed=False, text="-3 at the end"), Check("numbers", True, "")]
    Validation("run", checks).write(tmp_path / "validation.json")
    words = ["--metrics", str(files[0]), "--validation", str(tmp_path / "validation.json")]
    assert main(["judge", "report", *words, "--output", str(tmp_path / "r.xml")]) == 0
    suite = parse((tmp_path / "r.xml").read_text())
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["reward"]


def test_without_a_baseline_nothing_is_judged() -> None:
    report = make_report(evaluation(NOISE))
    assert report.passed is None
    assert "Not judged" in to_markdown(report)


def test_nothing_in_a_file_becomes_markup() -> None:
    now = evaluation(NOISE, metrics={NASTY: NOISE})
    now.model = now.scene = now.command = NASTY
    now.intervals = {NASTY: (0.0, 0.0, 0.0)}
    verdict = check_regression(now, now, RegressionRules(given={NASTY: "higher"}))
    report = make_report(now, verdict, title=NASTY)
    assert "<script" not in to_html(report, [])
    suite = parse(to_junit(report, verdict))
    assert any("<script>" in case.get("name", "") for case in suite)
    for line in to_markdown(report).splitlines():
        assert "<script" not in line.replace("\\<", "")
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (3, 5, 7)


@pytest.mark.parametrize(
    "words", [["--output", "r.txt"], ["--link", "x"], ["--link", "x=gone.mp4"], ["--output"]]
)
def test_bad_options(
    words: list[str],
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["judge", "report", "--metrics", str(files[0]), *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
