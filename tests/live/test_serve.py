"""`estragon serve` and `trainer/server.py`, as a person starts them."""

import os
import signal
import subprocess
import sys
import sysconfig
import urllib.request
import venv
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from estragon.cli import main
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import ROLES, Role, load_rules
from tests.live.staging import ESTRAGON, PATIENCE_SEC, ROOT, Command, Game, serving

RULES = load_rules()
SIZE = RULES.observation.size
LOG = Path("trainer", "logs", "server.log")


def core_packages() -> set[metadata.Distribution]:
    """What `pip install estragon` brings: no extras, but everything that the core needs."""
    found: dict[str, metadata.Distribution] = {}
    names = ["estragon"]
    while names:
        own = metadata.distribution(names.pop())
        for line in own.requires or []:
            needed = Requirement(line)
            name = canonicalize_name(needed.name)
            wanted = needed.marker is None or needed.marker.evaluate({"extra": ""})
            if wanted and name not in found:
                found[name] = metadata.distribution(name)
                names.append(name)
    return set(found.values())


def bare_venv(folder: Path, packages: set[metadata.Distribution]) -> Path:
    """The Python of a new virtual environment with these packages alone."""
    venv.create(folder, symlinks=True)
    base = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", base))
    for package in packages:
        for name in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            (site / name).symlink_to(Path(str(package.locate_file(name))).resolve())
    return Path(sysconfig.get_path("scripts", "venv", base)) / "python"


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the core packages alone."""
    return bare_venv(tmp_path_factory.mktemp("bare") / "venv", core_packages())


def save_policy(path: Path) -> dict[Role, FrozenPolicy]:
    policies = {role: FrozenPolicy.untrained(RULES, role, seed) for seed, role in enumerate(ROLES)}
    save_policies(path, policies, RULES)
    return policies


def observation(role: str, seed: int = 0) -> np.ndarray:
    row = np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)
    row[RULES.field("is_seeker")] = role == "seeker"
    return row


def assert_plays(port: int, policies: dict[Role, FrozenPolicy]) -> None:
    """The answers are those of the policies."""
    with Game(port) as game:
        for role, policy in policies.items():
            row = observation(role)
            answer = game.ask({"type": "act", "obs": row.tolist()})
            np.testing.assert_allclose(answer["action"], policy.act(row[None])[0], atol=1e-6)


def test_without_a_policy_it_plays_at_random_and_says_so(tmp_path: Path) -> None:
    with Command([*ESTRAGON, "serve", "--port", "0"], tmp_path) as command:
        port = command.port()
        assert "random actions; there is no trainer" in command.said[-1]
        with Game(port) as game:
            assert game.hello(client="a test")["says"] == "random actions"
        command.wait_for("client 1 connected")
        assert "'a test'" in command.wait_for("client 1 is .*").group()
        command.wait_for("client 1 disconnected")


def test_it_plays_the_policy_that_is_there(tmp_path: Path) -> None:
    policies = save_policy(tmp_path / "trainer" / "policy.npz")
    with Command([*ESTRAGON, "serve", "--port", "0"], tmp_path) as command:
        port = command.port()
        assert "policy.npz" in command.said[-1]
        assert_plays(port, policies)
        with Game(port) as game:  # another size is answered too, by somebody else
            assert game.hello(observation_size=SIZE + 1)["says"] == "random actions"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_ctrl_c_stops_it_cleanly(tmp_path: Path) -> None:
    with Command([*ESTRAGON, "serve", "--port", "0", "--random"], tmp_path) as command:
        with Game(command.port()) as game:
            game.hello()
            os.kill(command.process.pid, signal.SIGINT)
            assert game.closed()[0] == 1001
        assert command.end() == 130
        assert command.said[-1] == "estragon: stopped\n"
        assert "Traceback" not in "".join(command.said)


def test_it_stops_when_the_time_is_over(tmp_path: Path) -> None:
    words = [*ESTRAGON, "serve", "--port", "0", "--random", "--seconds", "0.5"]
    with Command(words, tmp_path) as command:
        assert command.end() == 0


def test_a_taken_port_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        words = ["serve", "--port", str(server.port), "--random", "--output", str(tmp_path)]
        assert main(words) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"estragon: port {server.port} is in use")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--random", "--policy", "x.npz"], "choose one"),
        (["--policy", "x.npz"], "x.npz"),
        (["--port", "65536"], "--port"),
        (["--port", "-1"], "--port"),
        (["--seed", "-1"], "--seed"),
        (["--seconds", "0"], "--seconds"),
        (["--output", "/dev/null"], "/dev/null"),
    ],
)
def test_bad_options(
    words: list[str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *words]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert says in complaint


def test_a_browser_gets_a_page_and_the_log_one_line(tmp_path: Path) -> None:
    with Command([*ESTRAGON, "serve", "--port", "0", "--random"], tmp_path) as command:
        url = f"http://127.0.0.1:{command.port()}/"
        with urllib.request.urlopen(url, timeout=PATIENCE_SEC) as answer:
            assert "ws_protocol.md" in answer.read().decode()
        command.wait_for("HTTP request")
    lines = (tmp_path / LOG).read_text().splitlines()
    assert len(lines) == 2
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize("trained", [False, True])
def test_the_core_packages_are_enough(trained: bool, bare_python: Path, tmp_path: Path) -> None:
    """In `trainer/`, in a new virtual environment, without an installation of this package."""
    for absent in ("torch", "numba", "estragon"):
        assert subprocess.run([bare_python, "-c", f"import {absent}"], check=False).returncode
    policies = save_policy(tmp_path / "policy.npz") if trained else {}
    play = ["--policy", tmp_path / "policy.npz"] if trained else ["--random"]
    words = [bare_python, "server.py", "--port", "0", "--output", tmp_path, *play]
    with Command(words, ROOT / "trainer") as command:
        port = command.port()
        assert_plays(port, policies)
        with Game(port) as game:
            assert len(game.ask({"type": "act", "obs": [1, 2, 3]})["action"]) == 3


def test_what_is_missing_is_one_line_with_the_command(tmp_path: Path) -> None:
    """With websockets and numpy alone the server says what else to install."""
    two = {metadata.distribution(name) for name in ("websockets", "numpy")}
    python = bare_venv(tmp_path / "venv", two)
    done = subprocess.run(
        [python, "server.py", "--random"],
        cwd=ROOT / "trainer",
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SEC,
    )
    assert done.returncode == 2
    said, named = done.stderr.strip().split(": run pip install ")
    assert said == "estragon: msgspec is not installed"
    requirements = map(Requirement, metadata.requires("estragon") or [])
    core = {line.name for line in requirements if line.marker is None}
    assert set(named.split()) == core
