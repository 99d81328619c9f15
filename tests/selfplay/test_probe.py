"""A newcomer that studies one policy: it learns, the policy does not."""

from pathlib import Path

import pytest

from estragon.selfplay.probe import probe
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import Role
from tests.selfplay.staging import CONFIG, beginners, short_rules, task_of

STEPS = 600


@pytest.mark.parametrize("exploited", ["seeker", "hider"])
def test_a_newcomer_plays_the_other_role(
    exploited: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estragon.selfplay.probe.MATCHES", 32)
    rules = short_rules()
    policy = beginners(rules)[exploited]
    path = tmp_path / "policy.pt"
    save_policies(path, {exploited: policy}, rules)
    before = path.read_bytes()
    found, again = (
        probe(exploited, path, policy, task_of(rules=rules), CONFIG, STEPS) for _ in range(2)
    )
    assert found == again, "same seed, same newcomer"
    assert found.exploited == exploited
    assert STEPS <= found.steps < STEPS + CONFIG.arenas * CONFIG.horizon
    assert 0.0 <= found.win_rate <= 1.0
    assert (found.win_rate > 0.5) == (exploited == "seeker"), "in a second nobody is caught"
    assert path.read_bytes() == before
