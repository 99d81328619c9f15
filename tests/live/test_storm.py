"""Nothing that comes over the wire brings the server down, or disturbs who plays on."""

import sys
from pathlib import Path

import pytest

from estragon.tag.frozen import FrozenPolicy
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import ROLES, load_rules
from tests.live.staging import ESTRAGON, Command
from tests.live.storm import SteadyGame, weather
from tests.prove import Recorder

MOST_GROWTH_MB = 16.0


def withstand(folder: Path, *, frames: int, drops: int) -> str:
    """A storm on `estragon serve` while a game plays; what happened."""
    rules = load_rules()
    policies = {role: FrozenPolicy.untrained(rules, role, seed) for seed, role in enumerate(ROLES)}
    save_policies(folder / "policy.npz", policies, rules)
    words = [*ESTRAGON, "serve", "--port", "0", "--policy", "policy.npz"]
    with Command(words, folder) as server:
        port = server.port()
        with SteadyGame(port, policies, rules.observation.size) as game:
            told, grown = weather(port, server.process.pid, game, frames=frames, drops=drops)
        assert server.process.poll() is None
        server.process.terminate()
        server.end()
        complaints = [line for line in server.said if "mistake" in line or "Traceback" in line]
        assert not complaints
    assert not any(
        "Traceback" in path.read_text() for path in (folder / "trainer" / "logs").iterdir()
    )
    assert grown < MOST_GROWTH_MB, told
    return told


def test_a_gust(tmp_path: Path) -> None:
    print(withstand(tmp_path, frames=500, drops=5), file=sys.stderr)


@pytest.mark.prove
def test_a_storm(tmp_path: Path, record_result: Recorder) -> None:
    told = withstand(tmp_path, frames=20_000, drops=50)
    record_result("live: a storm of bad frames", told)
