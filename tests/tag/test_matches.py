"""`estragon eval tag`: the documented JSON, honest intervals, the same matches in any batch."""

import json
from pathlib import Path

import pytest

from estragon.cli import main
from estragon.tag.bots import Bot
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.matches import evaluate, play_matches, wilson_interval
from estragon.tag.policy_files import save_policies
from estragon.tag.rules import load_rules

KEYS = {
    "engine",
    "seeker",
    "hider",
    "layout",
    "rules",
    "seed",
    "episodes",
    "seeker_win_rate",
    "ci95",
    "mean_seconds",
    "out_of_sight",
}


def test_the_json_file_is_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "result.json"
    words = ["eval", "tag", "--seeker", "bot:chaser", "--hider", "bot:evader"]
    words += ["--episodes", "300", "--seed", "5", "--layout", "four_corners", "--json", str(path)]
    assert main(words) == 0
    result = json.loads(path.read_text())
    assert set(result) == KEYS
    assert (result["engine"], result["seeker"]) == ("embedded", "bot:chaser")
    assert (result["layout"], result["rules"], result["seed"]) == ("four_corners", "seek", 5)
    low, high = result["ci95"]
    assert 0.0 <= low <= result["seeker_win_rate"] <= high <= 1.0
    assert 0.0 < result["mean_seconds"] <= 10.0
    assert f"{result['seeker_win_rate']:.1%}" in capsys.readouterr().out
    assert main(words) == 0
    assert json.loads(path.read_text()) == result, "same seed, same result"


def test_policy_files_can_play_each_other(tmp_path: Path) -> None:
    rules = load_rules()
    seeker, hider = tmp_path / "seeker.npz", tmp_path / "hider.npz"
    save_policies(seeker, {"seeker": FrozenPolicy.untrained(rules, "seeker", seed=1)}, rules)
    save_policies(hider, {"hider": FrozenPolicy.untrained(rules, "hider", seed=2)}, rules)
    result = evaluate(str(seeker), str(hider), rules=rules, episodes=50)
    assert result["seeker_win_rate"] < 0.6


def test_transfer_rules_last_the_whole_time() -> None:
    result = evaluate("bot:chaser", "bot:evader", rules=load_rules(rules="transfer"), episodes=100)
    assert result["mean_seconds"] == 10.0
    assert result["rules"] == "transfer"


def test_matches_do_not_depend_on_the_batch() -> None:
    rules = load_rules()
    chaser, evader = Bot("chaser", rules), Bot("evader", rules)
    whole, parts = (
        play_matches(
            chaser, evader, 200, rules=rules, layouts="playground,random:0-3", seed=9, batch=batch
        )
        for batch in (1024, 33)
    )
    assert whole.winners.tolist() == parts.winners.tolist()
    assert whole.ticks.tolist() == parts.ticks.tolist()


@pytest.mark.parametrize(
    ("rate", "count", "low", "high"),
    [(0.5, 100, 0.4038, 0.5962), (0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0)],
)
def test_wilson_interval(rate: float, count: int, low: float, high: float) -> None:
    assert wilson_interval(rate, count) == pytest.approx([low, high], abs=1e-4)
