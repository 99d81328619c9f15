"""The game's own tests pass in real Godot, and their runner lets nothing pass that should not."""

import dataclasses
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from estragon.godot.find import check_version
from estragon.godot.process import usable_user_folders
from estragon.godot.project import import_project
from tests.godot.staging import write_project

ROOT = Path(__file__).parents[2]
RUNNER = "res://tests/run_tests.gd"
SUITE_TIMEOUT_SEC = 300.0
TIMEOUT_SEC = 60.0

GOOD = """
func test_good() -> void:
	check(true, "never said")
"""
MINIMAL_BASE = """\
class_name TagTest
extends Node

var frame_limit: int = 60
var checks: int = 0
var failures: PackedStringArray = []
var allowed_errors: PackedStringArray = []


func check(condition: bool, message: String) -> void:
	checks += 1
	if not condition:
		failures.append(message)
"""
"""What the runner needs of tests/tag_test.gd, without the game's classes."""
ESCAPE = """var scene: Node = load("res://scenes/Main.tscn").instantiate()
	scene.get_node("Game").options = TagOptions.of([], {} as Dictionary[String, String])
	add_child(scene)
	await frames(2)
	check(true, "it runs")
	var key: InputEventKey = InputEventKey.new()
	key.physical_keycode = KEY_ESCAPE
	key.pressed = true
	Input.parse_input_event(key)
	await frames(10)"""
FAILING = {
    "a check that fails": ('check_equal(1 + 1, 3, "sum")', "sum: expected 3, got 2"),
    "another type": ('check_equal(1, 1.0, "one")', "one: expected 1.0, got 1"),
    "not a number": ('check_near(NAN, NAN, 1.0, "NaN")', "NaN: expected"),
    "a check after a frame": ('await frames(3)\n\tcheck(false, "too late")', "too late"),
    "no check": ("await frames(1)", "it checked nothing"),
    "endless frames": (
        'check(true, "")\n\twhile true:\n\t\tawait frames(1)',
        "it was given up after 3600 frames",
    ),
    "a signal that never comes": (
        'check(true, "")\n\tframe_limit = 20\n\tawait renamed',
        "it was given up after 20 frames",
    ),
}
ERRONEOUS = {
    "an error at run time": (
        'check(true, "")\n\tvar none: Array = []\n\tcheck(none[3] == 1, "")',
        "Out of bounds get index",
    ),
    "an error after a frame": (
        'check(true, "")\n\tawait frames(1)\n\tvar none: Variant = null\n\tnone.jump()',
        "Nonexistent function 'jump'",
    ),
    "an error that is only reported": (
        'check(true, "")\n\tpush_error("the floor is gone")',
        "the floor is gone",
    ),
}
"""Seen by the runner from Godot 4.5 on, which has loggers."""
UNLOADABLE = {
    "a parse error": ("extends TagTest\n\nfunc test_bad() -> void:\n\tcheck(oops)\n", "oops"),
    "another base": (
        "extends Node\n\nfunc test_bad() -> void:\n\tpass\n",
        "it does not extend TagTest",
    ),
    "no tests": ("extends TagTest\n\nfunc best() -> void:\n\tpass\n", "it has no method test_*"),
}
FATAL = {
    "an endless loop": (
        'check(true, "")\n\twhile true:\n\t\tpass',
        "it blocked for more than 3",
    ),
    "leaving": (
        'check(true, "")\n\tget_tree().quit()\n\tawait frames(10)',
        "it ended the process",
    ),
    "the Esc key": (
        ESCAPE,
        "it ended the process",
    ),
}


@dataclasses.dataclass
class Run:
    """What the runner said."""

    status: int
    results: dict[str, dict[str, Any]]
    last_line: str
    said: str


def run_tests(godot: Path, project: Path, *options: str, timeout_sec: float = TIMEOUT_SEC) -> Run:
    words = [godot, "--headless", "--path", project, "--fixed-fps", "60", "-s", RUNNER, "--"]
    return run([*map(str, words), *options], timeout_sec)


def run(words: list[str], timeout_sec: float, **changes: Any) -> Run:
    changes.setdefault("env", usable_user_folders(os.environ))
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=timeout_sec, check=False, **changes
    )
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    results = [json.loads(line) for line in lines if line.startswith("{")]
    named = {result["test"]: result for result in results}
    assert len(named) == len(results), "a test was reported twice"
    return Run(done.returncode, named, lines[-1] if lines else "", done.stdout + done.stderr)


@pytest.fixture(scope="module")
def project(godot: Path) -> Path:
    """The game, imported."""
    return import_project(ROOT / "godot", godot=godot)


@pytest.fixture(scope="module")
def empty_suite(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project without any tests; the runner's own files stay."""
    copy = tmp_path_factory.mktemp("suite") / "godot"
    shutil.copytree(project, copy)
    for path in copy.glob("tests/test_*"):
        path.unlink()
    return copy


@pytest.fixture
def stage(empty_suite: Path) -> Iterator[Path]:
    """The project without tests, for one test to add its own."""
    yield empty_suite
    for path in empty_suite.glob("tests/test_*"):
        path.unlink()


def write_test(stage: Path, body: str, name: str = "test_extra") -> None:
    """A script with a test of this body, and one after it that passes."""
    text = f"extends TagTest\n\nfunc test_bad() -> void:\n\t{body}\n{GOOD}"
    (stage / "tests" / f"{name}.gd").write_text(text)


@pytest.mark.slow
def test_every_test_passes_in_godot(godot: Path, project: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    found = run_tests(godot, project, f"--json={report}", timeout_sec=SUITE_TIMEOUT_SEC)
    failed = {name: result for name, result in found.results.items() if not result["passed"]}
    assert not failed, json.dumps(failed, indent=1)
    assert found.status == 0, found.said
    assert found.last_line == f"{len(found.results)} passed, 0 failed"
    scripts = {path.stem for path in (ROOT / "godot/tests").glob("test_*.gd")}
    assert {name.split(".")[0] for name in found.results} == scripts
    for result in found.results.values():
        assert set(result) == {"test", "passed", "message", "seconds"}
    written = json.loads(report.read_text())
    assert (written["passed"], written["failed"]) == (len(found.results), 0)
    assert written["tests"] == list(found.results.values())


def test_the_runner_reports_every_kind_of_failure(godot: Path, stage: Path) -> None:
    """All cases in one process: each fails with its reason, and the tests after it still pass."""
    sees_errors = not check_version(godot).startswith("4.4.")  # which has no loggers
    bodies = FAILING | ERRONEOUS if sees_errors else FAILING
    for number, (body, _) in enumerate(bodies.values()):
        write_test(stage, body, f"test_case_{number}")
    for number, (text, _) in enumerate(UNLOADABLE.values()):
        (stage / "tests" / f"test_unloadable_{number}.gd").write_text(text)
    found = run_tests(godot, stage)
    for number, (name, (_, message)) in enumerate(bodies.items()):
        bad = found.results[f"test_case_{number}.test_bad"]
        assert not bad["passed"], name
        assert message in bad["message"], name
        assert found.results[f"test_case_{number}.test_good"]["passed"], name
    for number, (name, (_, message)) in enumerate(UNLOADABLE.items()):
        bad = found.results[f"test_unloadable_{number}.gd"]
        assert not bad["passed"], name
        if sees_errors or name != "a parse error":
            assert message in bad["message"], name
    failed = len(bodies) + len(UNLOADABLE)
    assert found.last_line == f"{len(bodies)} passed, {failed} failed"
    assert found.status == 1


@pytest.mark.parametrize("name", FATAL)
def test_a_test_that_takes_the_runner_along_is_a_failure(
    name: str, godot: Path, stage: Path
) -> None:
    body, message = FATAL[name]
    write_test(stage, body)
    found = run_tests(
        godot, stage, "--limit-sec=3" if name == "an endless loop" else "--limit-sec=60"
    )
    assert message in found.results["test_extra.test_bad"]["message"], found.said
    assert found.last_line == "0 passed, 1 failed"
    assert found.status != 0


def test_no_tests_is_a_failure(godot: Path, stage: Path) -> None:
    found = run_tests(godot, stage)
    assert (found.status, found.last_line) == (1, "0 passed, 0 failed")


def test_only_those_asked_for(godot: Path, stage: Path) -> None:
    write_test(stage, 'check(false, "")')
    found = run_tests(godot, stage, "--only=extra.test_good")
    assert (found.status, found.last_line) == (0, "1 passed, 0 failed")
    found = run_tests(godot, stage, "--only=extra.test_ugly")
    assert found.status == 1
    assert "no test's name contains 'extra.test_ugly'" in found.said


def test_an_unknown_option_is_refused(godot: Path, stage: Path) -> None:
    found = run_tests(godot, stage, "--onyl=this")
    assert (found.status, found.results) == (2, {})
    assert "unknown option '--onyl=this'; there are --only=" in found.said


def test_a_report_that_cannot_be_written_is_a_failure(godot: Path, stage: Path) -> None:
    write_test(stage, 'check(true, "")')
    found = run_tests(godot, stage, f"--json={stage}/none/report.json")
    assert found.status == 1
    assert f"cannot write {stage}/none/report.json" in found.said


def test_the_script_imports_and_runs_from_any_folder(godot: Path, tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    (clone / "scripts").mkdir(parents=True)
    script = shutil.copy2(ROOT / "scripts/run_godot_tests.sh", clone / "scripts")
    shutil.copytree(ROOT / "scripts/lib", clone / "scripts/lib")
    tests = write_project(clone / "godot") / "tests"
    tests.mkdir()
    shutil.copy2(ROOT / "godot/tests/run_tests.gd", tests)
    (tests / "tag_test.gd").write_text(MINIMAL_BASE)
    write_test(clone / "godot", 'check(false, "as it should")')
    env = {**usable_user_folders(os.environ), "GODOT_BIN": str(godot)}
    words = [str(script), "--json=report.json", "--only=bad"]
    found = run(words, SUITE_TIMEOUT_SEC, cwd=tmp_path, env=env)
    assert (found.status, found.last_line) == (1, "0 passed, 1 failed")
    assert json.loads((tmp_path / "report.json").read_text())["failed"] == 1
