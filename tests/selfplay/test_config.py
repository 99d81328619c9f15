"""A config that makes no sense is refused, by the name of what is wrong."""

from dataclasses import asdict, fields, replace

import pytest

from estragon.selfplay.config import PPOConfig
from estragon.support.errors import UserError
from tests.selfplay.staging import CONFIG


def test_the_defaults_make_sense() -> None:
    PPOConfig().check()
    CONFIG.check()


@pytest.mark.parametrize("name", [field.name for field in fields(PPOConfig)])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_no_number_may_be_negative_or_none(name: str, value: float) -> None:
    with pytest.raises(UserError, match=name):
        replace(PPOConfig(), **{name: value}).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arenas", 33),
        ("arenas", 2),
        ("horizon", 0),
        ("epochs", 0),
        ("minibatch", 0),
        ("hidden", 0),
        ("remembered", 0),
        ("snapshot_every", 0),
        ("gamma", 1.1),
        ("gae_lambda", 1.1),
        ("past", 1.1),
    ],
)
def test_each_number_has_its_range(name: str, value: float) -> None:
    with pytest.raises(UserError, match=name):
        replace(PPOConfig(), **{name: value}).check()  # type: ignore[arg-type]


def test_there_are_no_more_arenas_than_all() -> None:
    with pytest.raises(UserError, match="past and sparring"):
        replace(PPOConfig(), past=0.6, sparring=0.5).check()


def test_names_of_earlier_versions_are_understood() -> None:
    saved = {"discount": 0.9, "smoothing": 0.8, "gradient_limit": 1.0, "divergence_limit": 0.1}
    config = PPOConfig.from_saved(saved | {"value_weight": 0.25, "epochs": 3})
    assert (config.gamma, config.gae_lambda, config.max_grad_norm) == (0.9, 0.8, 1.0)
    assert (config.target_kl, config.value_coef, config.epochs) == (0.1, 0.25, 3)


def test_a_run_of_an_earlier_version_goes_on_as_it_began() -> None:
    config = PPOConfig.from_saved({"hidden": 48, "entropy": 0.01})
    assert (config.opening, config.handicap, config.symmetry) == (0.0, 0.0, False)
    assert (config.critic_hidden, config.final_entropy) == (48, 0.01)
    now = asdict(PPOConfig())
    assert PPOConfig.from_saved(now) == PPOConfig()
