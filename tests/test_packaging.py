"""What is installed and shipped: extras, pinned versions, the wheel, the workflows."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import estragon

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
HEAVY = {"torch", "numba", "gymnasium", "matplotlib", "ray", "onnx", "pytest"}


def pins() -> dict[str, Version]:
    """The versions in constraints.txt, by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    pinned: dict[str, Version] = {}
    for line in lines[1:]:
        requirement = Requirement(line)
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", line
        assert not Version(specifier.version).local, f"{line}: holds on one platform only"
        assert not requirement.marker, line
        name = canonicalize_name(requirement.name)
        assert name not in pinned, f"{name} is pinned twice"
        pinned[name] = Version(specifier.version)
    return pinned


def requirements(extra: str) -> Iterator[Requirement]:
    """What an extra asks for, its references to other extras of ours followed."""
    for line in EXTRAS[extra]:
        requirement = Requirement(line)
        if requirement.name == "estragon":
            for other in sorted(requirement.extras):
                yield from requirements(other)
        else:
            yield requirement


def names(extra: str) -> set[str]:
    return {requirement.name for requirement in requirements(extra)}


def everything() -> list[Requirement]:
    return [*map(Requirement, PROJECT["dependencies"]), *requirements("all")]


def test_core_is_light() -> None:
    core = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert core == {"numpy", "websockets", "msgspec", "tyro", "rich", "platformdirs", "filelock"}


def test_extras() -> None:
    assert set(EXTRAS) == {"train", "sb3", "tune", "rllib", "onnx", "ui", "dev", "all"}
    assert {"torch", "numba", "gymnasium", "pettingzoo"} <= names("train")
    assert {"tensorboard", "matplotlib", "imageio-ffmpeg"} <= names("train")
    assert {"stable-baselines3", "sb3-contrib"} | names("train") == names("sb3")
    assert {"optuna"} | names("sb3") == names("tune")
    assert {"ray"} | names("train") == names("rllib")
    assert names("onnx") == {"onnx", "onnxruntime", "onnxscript"}
    assert names("ui") == {"nicegui"}
    assert {"pytest", "hypothesis", "ruff", "mypy", "gdtoolkit", "build"} <= names("dev")
    assert names("all") == set().union(*(names(extra) for extra in EXTRAS if extra != "all"))


def test_every_requirement_is_pinned_within_its_range() -> None:
    pinned = pins()
    for requirement in everything():
        assert requirement.specifier, f"{requirement} has no lower bound"
        version = pinned[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement} is pinned to {version}"


def test_everything_that_comes_along_is_pinned() -> None:
    """Follow the requirements of the installed packages: no version may be left to chance."""
    pinned = pins()
    seen: set[tuple[str, ...]] = set()
    left = everything()
    while left:
        requirement = left.pop()
        name = canonicalize_name(requirement.name)
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        try:
            installed = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed here; make setup installs everything")
        assert name in pinned, f"{name} comes along and is not in constraints.txt"
        assert pinned[name].base_version == Version(installed.version).base_version, name
        for text in installed.requires or []:
            needed = Requirement(text)
            wanted = [{"extra": extra} for extra in ("", *requirement.extras)]
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in wanted):
                left.append(needed)


def test_core_imports_nothing_heavy() -> None:
    code = "import estragon.cli, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not HEAVY & set(shown.stdout.split())


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
def test_wheel_carries_the_game(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"estragon-{estragon.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
        rules = archive.read("estragon/_game/tag/rules.json")
    assert rules == (ROOT / "godot/tag/rules.json").read_bytes()
    layouts = {path.name for path in (ROOT / "godot/tag/layouts").glob("*.json")}
    assert layouts
    assert {f"estragon/_game/tag/layouts/{name}" for name in layouts} <= files
    scripts = {"estragon/godot/project_check.gd", "estragon/onnx/onnx_server.gd"}
    assert {"estragon/cli.py"} | scripts <= files
    assert {name.split("/")[0] for name in files} == {
        "estragon",
        f"estragon-{estragon.__version__}.dist-info",
    }
    assert not any("/.godot/" in name or "__pycache__" in name for name in files)


@pytest.mark.slow
def test_wheel_works_away_from_the_source(dist: Path, tmp_path: Path) -> None:
    """Installed elsewhere, it finds its own copy of the game and not the checkout's."""
    (wheel,) = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path), str(wheel)], check=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from estragon.support import paths\n"
        "from estragon.tag.layout import load_layout\n"
        "from estragon.tag.rules import load_rules\n"
        "print(paths.rules_file()); load_layout('playground', load_rules())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert Path(shown.stdout.strip()) == tmp_path / "estragon/_game/tag/rules.json"


@pytest.mark.slow
def test_source_archive_can_be_built_and_tested(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        files = {name.partition("/")[2] for name in opened.getnames()}
    assert {
        "Makefile",
        "constraints.txt",
        "pixi.toml",
        "scripts/setup_venv.py",
        "tests/test_packaging.py",
        "godot/tag/rules.json",
        ".github/workflows/ci.yml",
        "LICENSE",
    } <= files
    assert not any(name.startswith((".venv/", "dist/", ".git/")) for name in files)


@pytest.mark.parametrize(
    "name",
    ["ci.yml", "wheel.yml", "rl_smoke_test.yml", "rl_regression_test.yml", "rl_nightly.yml"],
)
def test_workflows_parse(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["jobs"]
    assert True in workflow  # YAML 1.1 reads the key `on` as a truth value
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert job["timeout-minutes"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
