"""pixi.toml, read: no pixi is needed to see that it names what exists."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

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
        ("train", "train", "estragon train"),
        ("train", "plot", "estragon plot"),
        ("train", "eval-episode", "bash scripts/eval_episode.sh"),
    ],
)
def test_tasks(environment: str, task: str, command: str) -> None:
    tasks = {
        name: spec for part in features(environment) for name, spec in part.get("tasks", {}).items()
    }
    assert tasks[task]["cmd"] == command
    assert tasks[task]["description"]
