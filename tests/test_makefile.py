"""The front door: it explains itself, and what the docs and CI tell people to type exists."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TARGETS = {
    "help",
    "setup",
    "train",
    "test",
    "quick",
    "check",
    "format",
    "bench",
    "prove",
    "policies",
    "baseline",
}
TARGETS |= {"wheel", "clean"}
FROM_AN_OUTER_MAKE = {"ARGS", "EXTRAS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON"}

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*arguments: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key not in FROM_AN_OUTER_MAKE},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_alone_teaches_every_target() -> None:
    shown = make()
    for target in TARGETS:
        assert re.search(rf"^  make {target} +\w", shown, re.MULTILINE), target


@pytest.mark.parametrize("target", sorted(TARGETS - {"help", "setup", "clean"}))
def test_target_sets_up_first(target: str) -> None:
    commands = make("-n", target).splitlines()
    assert commands[0].startswith("python3 scripts/setup_venv.py --extras 'all'")


@pytest.mark.parametrize("target", ["train", "test", "quick", "prove", "bench"])
def test_arguments_are_passed_on(target: str) -> None:
    assert make("-n", target, "ARGS=--some-option value").rstrip().endswith("--some-option value")


@pytest.mark.parametrize("path", ["CONTRIBUTING.md", ".ci/run", ".github/workflows/ci.yml"])
def test_what_is_told_exists(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    told = re.findall(r"(?:^|`|run: )make ([a-z]+)", text, re.MULTILINE)
    assert set(told) <= TARGETS


def test_ci_runs_check_and_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-2:] == ["make check", "make test"]
