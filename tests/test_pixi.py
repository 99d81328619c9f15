"""pixi.toml, without pixi: what it names exists, and every task's command line runs."""

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from estragon.cli import VERBS, main

ROOT = Path(__file__).parents[1]
PIXI = tomllib.loads((ROOT / "pixi.toml").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def features(environment: str) -> list[dict[str, Any]]:
    """The parts of an environment: what stands at the top of the file, and its features."""
    return [PIXI, *(PIXI["feature"][name] for name in PIXI["environments"][environment])]


def own_extras(environment: str) -> list[str]:
    """The extras with which an environment installs this very package."""
    own = [part["pypi-dependencies"]["estragon"] for part in features(environment)[1:]]
    assert all(spec["path"] == "." and spec["editable"] for spec in own)
    return [extra for spec in own for extra in spec.get("extras", [])]


def test_platforms_and_channel() -> None:
    workspace = PIXI["workspace"]
    assert workspace["channels"] == ["conda-forge"]
    assert set(workspace["platforms"]) == {"linux-64", "osx-arm64", "osx-64", "win-64"}
    assert PIXI["dependencies"]["python"] == "3.11.*"


def test_default_environment_has_no_torch() -> None:
    assert set(PIXI["environments"]) == {"default", "train"}
    assert own_extras("default") == []
    for part in features("default"):
        named = {*part.get("dependencies", {}), *part.get("pypi-dependencies", {})}
        assert not named & {"torch", "pytorch", "numba"}


def test_train_environment_has_torch_and_extras_that_exist() -> None:
    extras = own_extras("train")
    assert "train" in extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "pytorch" in PIXI["feature"]["train"]["dependencies"]


@pytest.mark.parametrize(
    ("environment", "task", "command"),
    [
        ("default", "server", "estragon serve"),
        ("default", "tests", "bash scripts/run_godot_tests.sh"),
        ("default", "collect-debug", "bash scripts/collect_debug_artifacts.sh"),
        ("default", "migrate-user-data", "bash scripts/migrate_user_data.sh"),
        ("train", "server", "estragon serve --learn"),
        ("train", "train", "estragon train tag"),
        ("train", "plot", "estragon plot"),
        ("train", "eval-episode", "bash scripts/eval_episode.sh"),
    ],
)
def test_tasks(environment: str, task: str, command: str) -> None:
    assert tasks(environment)[task]["cmd"] == command
    assert tasks(environment)[task]["description"]


def tasks(environment: str) -> dict[str, dict[str, str]]:
    """The tasks of an environment."""
    return {
        name: spec for part in features(environment) for name, spec in part.get("tasks", {}).items()
    }


SHORT = {
    "estragon serve": "--port 0 --seconds 0.2 --output {here}",
    "estragon serve --learn": "--help",  # tests/live starts it, with games
    "bash scripts/run_godot_tests.sh": "--only=test_streams",
    "bash scripts/collect_debug_artifacts.sh": "{here}/bundle",
    "bash scripts/migrate_user_data.sh": "--from {here}",
    "estragon train tag": "--help",  # README's `make train` is the same
    "estragon plot": "--metrics {here}/metrics.csv --output {here}/charts",
    "bash scripts/eval_episode.sh": "--help",
}
"""What makes a command short and keeps it out of the checkout, as `pixi run TASK OPTIONS` would."""
COMMANDS = {spec["cmd"]: name for env in PIXI["environments"] for name, spec in tasks(env).items()}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all tasks, with something to plot."""
    folder = tmp_path_factory.mktemp("pixi")
    rows = [f"{episode},{episode / 10}" for episode in range(1, 20)]
    (folder / "metrics.csv").write_text("\n".join(["episode,reward_mean", *rows, ""]))
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=COMMANDS.get)
def test_every_task_runs(command: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*shlex.split(command), *shlex.split(SHORT[command].format(here=here.as_posix()))]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("AI_DATA_ROOT", str(here / "data"))
    if command.endswith("run_godot_tests.sh"):
        # tests/godot/test_godot_suite.py runs it with a real Godot.
        monkeypatch.setenv("GODOT_BIN", "true")
    if words[0] == "estragon":
        assert any(tuple(words[1:end]) in VERBS for end in (2, 3)), "only lists the commands"
        assert main(words[1:]) == 0
    elif sys.platform == "win32":
        pytest.skip("bash")
    else:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
