"""The league remembers evenly, never forgets the first self, and draws by its generator alone."""

import numpy as np
import pytest
import torch

from estragon.selfplay.league import League
from estragon.selfplay.policy import Policy
from tests.selfplay.staging import beginners, short_rules

RULES = short_rules()


def policies() -> list[Policy]:
    return [Policy(policy, RULES) for policy in beginners(RULES).values()]


def remembering(remembered: int, selves: int) -> League:
    """A league after `selves` selves; a seeker's mean is its number, a hider's the negative."""
    league, own = League(remembered), policies()
    for number in range(selves):
        with torch.no_grad():
            own[0].mean.fill_(float(number))
            own[1].mean.fill_(-float(number))
        league.remember(own)
    return league


def numbers(league: League) -> list[int]:
    """Which selves it remembers."""
    for seeker, hider in league.pairs:
        assert torch.equal(seeker["mean"], -hider["mean"])
    return [int(seeker["mean"][0]) for seeker, _ in league.pairs]


def test_it_remembers_everything_while_there_is_room() -> None:
    assert numbers(remembering(8, 8)) == list(range(8))


def test_a_memory_is_not_changed_by_what_is_learned_later() -> None:
    league, own = League(4), policies()
    league.remember(own)
    weight = own[0].state_dict()["layers.0.weight"]
    before = weight.clone()
    weight += 1.0
    assert torch.equal(league.pairs[0][0]["layers.0.weight"], before)


@pytest.mark.parametrize("selves", [9, 20, 57, 200, 601])
def test_it_keeps_the_first_self_and_is_never_too_full(selves: int) -> None:
    kept = numbers(remembering(8, selves))
    assert 4 <= len(kept) <= 8
    assert kept[0] == 0
    assert kept == sorted(set(kept))


@pytest.mark.parametrize("selves", [9, 20, 57, 200, 601])
def test_it_thins_out_evenly(selves: int) -> None:
    """No part of the run is forgotten: no gap is several times as wide as they are on average."""
    kept = numbers(remembering(8, selves))
    gaps = np.diff([*kept, selves - 1])
    assert gaps.max() <= 4.0 * selves / len(kept), f"of {selves} selves it remembers {kept}"


def test_draws_depend_on_the_generator_alone() -> None:
    league = remembering(16, 16)

    def drawn(seed: int) -> list[tuple[float, float]]:
        random = np.random.default_rng(seed)
        pairs = [league.draw(random) for _ in range(100)]
        return [(float(one["mean"][0]), -float(two["mean"][0])) for one, two in pairs]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)
    seekers, hiders = zip(*drawn(1), strict=True)
    assert seekers != hiders, "each on its own"
    assert len(set(seekers)) > 8
    assert len(set(hiders)) > 8
