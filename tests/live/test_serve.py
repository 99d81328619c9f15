"""`estragon serve` and `trainer/server.py`, as a person starts them."""

import os
import signal
import sys
import sysconfig
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from estragon.cli import main
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import save_policies
from estragon.tag.roles import ROLES, Role
from estragon.tag.rules import load_rules
from tests.live.staging import ESTRAGON, PATIENCE_SEC, ROOT, Command, Game, serving

RULES = load_rules()
SIZE = RULES.observation.size
LOG = Path("trainer", "logs", "server.log")
BARE = """
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "torch", "gymnasium", "pettingzoo", "matplotlib"}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
sys.argv = ["server.py", *sys.argv[1:]]
runpy.run_path("server.py", run_name="__main__")
"""
"""Runs trainer/server.py where nothing but the core packages can be imported."""


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
        command.wait_for("client 1 gone")


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
    assert complaint.startswith(f"estragon: port {server.port} is taken")
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
        command.wait_for("browser")
    lines = (tmp_path / LOG).read_text().splitlines()
    assert len(lines) == 2
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize("trained", [False, True])
def test_the_core_packages_are_enough(trained: bool, tmp_path: Path) -> None:
    """In `trainer/`, without torch and numba, and without an installation of this package."""
    policies = save_policy(tmp_path / "policy.npz") if trained else {}
    play = ["--policy", tmp_path / "policy.npz"] if trained else ["--random"]
    words = [sys.executable, "-S", "-c", BARE, "--port", "0", "--output", tmp_path, *play]
    packages = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib")}
    with Command(words, ROOT / "trainer", env=packages) as command:
        port = command.port()
        assert_plays(port, policies)
        with Game(port) as game:
            assert len(game.ask({"type": "act", "obs": [1, 2, 3]})["action"]) == 3
