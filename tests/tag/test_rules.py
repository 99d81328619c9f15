"""The game as data: what is wrong in a rules file is named by its key."""

import json
from pathlib import Path
from typing import Any

import pytest

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.tag.rules import load_rules


def changed(tmp_path: Path, key: str, value: Any) -> Path:
    """The game's rules with one key set, or removed where the value is None."""
    data = json.loads(paths.rules_file().read_text())
    *way, last = key.split(".")
    group = data
    for name in way:
        group = group[name]
    if value is None:
        del group[last]
    else:
        group[last] = value
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("agent.speed_mps", -8.0, "agent.speed_mps"),
        ("agent.speed_mps", "fast", "agent.speed_mps"),
        ("agent.speed_mps", None, "agent.*speed_mps"),
        ("agent.wings", 2, "agent.*wings"),
        ("physics.gravity_mps2", 0, "physics.gravity_mps2"),
        ("physics.ticks_per_second", 59.5, "physics.ticks_per_second"),
        ("eyes.rays", 0, "eyes.rays"),
        ("eyes.cone_deg", 360.0, "eyes.cone_deg"),
        ("eyes.height_m", 0.8, "eyes.height_m"),
        ("observation.size", 125, "observation.size"),
        ("observation.layout", [["position", 3]], "observation.layout"),
        ("episode.time_limit_sec", 0.01, "episode.time_limit_sec"),
        ("agent.size_m", 25.0, "agent.size_m"),
        ("reward_profiles.default.win_bonus", -1, "reward_profiles.*win_bonus"),
        ("rules", "hopscotch", "hopscotch.*seek, transfer"),
        ("rewards", "generous", "generous.*default, classic"),
        ("format", 2, "format"),
    ],
)
def test_a_bad_key_is_named(tmp_path: Path, key: str, value: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        load_rules(changed(tmp_path, key, value))
    assert "\n" not in str(caught.value)


def test_more_rays_need_a_longer_observation(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"observation\.layout"):
        load_rules(changed(tmp_path, "eyes.rays", 37))


def test_not_json_and_not_there(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text("{ oops")
    with pytest.raises(UserError, match="not valid JSON"):
        load_rules(path)
    with pytest.raises(UserError, match="cannot read"):
        load_rules(tmp_path / "none.json")
    with pytest.raises(UserError, match="cannot read"):
        load_rules(tmp_path)


def test_numbers_are_written_so_that_every_reader_makes_the_same_double() -> None:
    files = [paths.rules_file(), *paths.layouts_folder().glob("*.json")]

    def check(text: str) -> float:
        assert "e" not in text.lower(), f"{text}: no exponents"
        assert len(text.replace("-", "").replace(".", "").lstrip("0")) <= 15, text
        return float(text)

    for path in files:
        json.loads(path.read_text(), parse_float=check, parse_int=lambda text: int(check(text)))


def test_the_observation_is_laid_out_as_documented() -> None:
    rules = load_rules()
    assert rules.field("position") == slice(0, 3)
    assert rules.field("opponent_visible") == slice(13, 14)
    assert rules.field("rays") == slice(18, 126)
    with pytest.raises(KeyError):
        rules.field("smell")
