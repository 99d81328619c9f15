"""The configuration against the numbers that its readers rely on."""

from pathlib import Path

import pytest

from estragon.spacetime.config import PRESETS, RLConfig
from estragon.support.errors import UserError
from estragon.support.parameters import Plan

GROUPS = ["network", "ppo", "rewards", "observations", "actions", "environment", "training"]


def test_the_groups_and_their_numbers() -> None:
    found = RLConfig().to_dict()
    assert list(found) == GROUPS
    assert found["network"] == {
        "policy": "MlpPolicy",
        "net_arch": [256, 256],
        "activation_fn": "relu",
    }
    ppo = {"learning_rate": 0.0003, "batch_size": 64, "n_epochs": 10, "gamma": 0.99}
    assert ppo.items() <= found["ppo"].items()
    assert found["rewards"] == {
        "goal_reached": 100.0,
        "progress": 1.0,
        "smooth_movement": 0.1,
        "comfort_bonus": 2.0,
        "collision_penalty": -10.0,
        "fall_penalty": -50.0,
        "timeout_penalty": -20.0,
        "teleport_penalty": -1.0,
    }
    limits = {"max_movement_speed": 2.0, "max_rotation_speed": 90.0, "turn_angle": 45.0}
    assert limits.items() <= found["actions"].items()
    assert {"total_timesteps": 1_000_000, "save_freq": 10_000}.items() <= found["training"].items()


def test_the_presets() -> None:
    found = {name: RLConfig.preset(name) for name in PRESETS}
    steps = {name: config.training.total_timesteps for name, config in found.items()}
    assert steps == {
        "quick_test": 10_000,
        "full_training": 5_000_000,
        "curriculum_learning": 3_000_000,
        "comfort_optimized": 1_000_000,
    }
    assert found["quick_test"].environment.max_episode_steps == 200
    assert found["quick_test"].training.save_freq == 2_000
    assert found["full_training"].environment.max_episode_steps == 1_000
    curriculum = found["curriculum_learning"].to_dict()["training"]
    assert curriculum["use_curriculum"]
    assert curriculum["curriculum_stages"] == [
        {"name": "easy", "max_goal_distance": 10.0, "timesteps": 500_000},
        {"name": "medium", "max_goal_distance": 20.0, "timesteps": 1_000_000},
        {"name": "hard", "max_goal_distance": 30.0, "timesteps": 1_500_000},
    ]
    usual, comfort = RLConfig(), found["comfort_optimized"]
    assert comfort.rewards.comfort_bonus > usual.rewards.comfort_bonus
    assert 0.2 <= comfort.actions.action_smoothing <= 0.4
    for config in found.values():
        config.check()


@pytest.mark.parametrize("name", PRESETS)
def test_json_both_ways(name: str, tmp_path: Path) -> None:
    config = RLConfig.preset(name)
    config.to_json(tmp_path / "config.json")
    assert RLConfig.from_json(tmp_path / "config.json") == config


def test_a_file_may_have_some_keys_only(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"environment": {"num_environments": 4}, "training": {"num_workers": 4}}')
    config = RLConfig.from_json(path)
    assert (config.rigs, config.training.num_workers) == (1, 4)
    assert config.ppo == RLConfig().ppo


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"trainin": {}}', "unknown key trainin; did you mean training"),
        ('{"ppo": {"learning_rat": 1}}', r"unknown key ppo\.learning_rat; did you mean learning_"),
        ('{"ppo": {"gamma": "high"}}', r"Expected `float`, got `str` - at `ppo\.gamma`"),
        ('{"ppo": {"gamma": 2}}', r"ppo\.gamma: expected 0 to 1, got 2"),
        ('{"ppo": 3}', "ppo: expected keys and values, got 3"),
        ("[]", "expected groups such as training"),
        ("{", "is not JSON"),
        ('{"environment": {"num_environments": 3}, "training": {"num_workers": 2}}', "multiple"),
        ('{"training": {"use_curriculum": true}}', "expected stages"),
        ('{"network": {"policy": "CnnPolicy"}}', r"Invalid enum value 'CnnPolicy'"),
        ('{"environment": {"tasks": ["goals", "goals"]}}', "expected different ones"),
    ],
)
def test_what_cannot_work_names_the_key(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UserError, match=said):
        RLConfig.from_json(path)
    with pytest.raises(UserError, match="no preset 'fast'; choose from quick_test"):
        RLConfig.preset("fast")


def test_stages_become_lessons() -> None:
    plan = Plan.parse(RLConfig.preset("curriculum_learning").parameters())
    assert [lesson.name for lesson in plan.lessons] == ["easy", "medium", "hard"]
    shares = [lesson.until.progress for lesson in plan.lessons[:-1]]  # type: ignore[union-attr]
    assert shares == pytest.approx([1 / 6, 1 / 2])
    drawn = [plan.draw(lesson, 0, 0) for lesson in range(3)]
    ranges = [(values["goal_min_m"], values["goal_max_m"]) for values in drawn]
    assert ranges == [(5.0, 10.0), (10.0, 20.0), (10.0, 30.0)]
    whole = RLConfig.preset("curriculum_learning").parameters(full_range=True)
    assert len(Plan.parse(whole).lessons) == 1
