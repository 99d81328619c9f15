"""The yardstick: the bots' strength is pinned, and they know only what a policy knows."""

import numpy as np
import pytest

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.bots import BOTS, Bot
from estragon.tag.layout import layout_names
from estragon.tag.matches import play_matches
from estragon.tag.rules import load_rules
from tests.prove import Recorder

RULES = load_rules()
MATCHES = 1000


def seeker_win_rate(
    seeker: str, hider: str, layout: str = RULES.layout, seed: int = 0, matches: int = MATCHES
) -> float:
    outcomes = play_matches(
        Bot(seeker, RULES), Bot(hider, RULES), matches, rules=RULES, layouts=layout, seed=seed
    )
    return float((outcomes.winners == 0).mean())


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.prove)])
def test_strength_on_the_default_layout(seed: int) -> None:
    assert seeker_win_rate("chaser", "random", seed=seed) >= 0.90
    assert 0.40 <= seeker_win_rate("chaser", "evader", seed=seed) <= 0.60
    assert seeker_win_rate("random", "random", seed=seed) <= 0.15
    assert seeker_win_rate("random", "evader", seed=seed) <= 0.02


@pytest.mark.parametrize("layout", [*layout_names(), "random:0-31"])
def test_the_chaser_finds_its_way_on_every_layout(layout: str) -> None:
    assert seeker_win_rate("chaser", "random", layout) >= 0.90


@pytest.mark.prove
@pytest.mark.parametrize("layout", [*layout_names(), "random:100-163"])
def test_strength_on_every_layout(layout: str, record_result: Recorder) -> None:
    pairs = [("chaser", "random"), ("chaser", "evader"), ("random", "random"), ("random", "evader")]
    rates = {pair: seeker_win_rate(*pair, layout, seed=1, matches=2 * MATCHES) for pair in pairs}
    record_result(
        f"strength of the bots: {layout}",
        f"{2 * MATCHES:,} matches each: "
        + ", ".join(f"{one} tags {two} {rate:.1%}" for (one, two), rate in rates.items()),
    )
    assert rates["chaser", "random"] >= 0.90
    assert rates["random", "random"] <= 0.15
    assert rates["random", "evader"] <= 0.02


def observations(steps: int = 40) -> np.ndarray:
    arenas = Arenas(256, seed=3)
    seen = [arenas.reset().copy()]
    random = np.random.default_rng(0)
    for _ in range(steps):
        actions = random.uniform(-1, 1, (256, 2, 3)).astype(np.float32)
        seen.append(arenas.step(actions).observations.copy())
    return np.concatenate(seen).reshape(-1, RULES.observation.size)


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_is_a_function_of_the_observation(name: str) -> None:
    rows = observations()
    actions = Bot(name, RULES, threads=1).act(rows)
    assert actions.shape == (len(rows), 3)
    assert np.isfinite(actions).all()
    assert np.abs(actions).max() <= 1.0 + 1e-6
    order = np.random.default_rng(1).permutation(len(rows))
    assert np.array_equal(Bot(name, RULES, threads=2).act(rows[order]), actions[order])


def test_the_random_bot_is_level_and_never_repeats_itself() -> None:
    actions = Bot("random", RULES).act(observations())
    assert np.abs(actions.mean(axis=0)).max() < 0.02
    assert np.abs(np.corrcoef(actions.T) - np.eye(3)).max() < 0.02
    assert len(np.unique(actions, axis=0)) == len(actions)


def test_an_unknown_bot_is_refused() -> None:
    with pytest.raises(UserError, match=r"'ninja'.*bot:random"):
        Bot("ninja", RULES)
