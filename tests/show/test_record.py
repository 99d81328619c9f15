"""A recording is the very match the engine plays."""

import numpy as np
import pytest

from estragon.show.record import record_match
from estragon.tag.arenas import Arenas
from estragon.tag.bots import Bot
from estragon.tag.match import GOING_ON, TAGGED, TIMED_OUT
from estragon.tag.matches import play_matches
from estragon.tag.rules import load_rules
from tests.show.staging import played, playground


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_agrees_with_arenas_played_directly(rule_set: str) -> None:
    rules = load_rules(rules=rule_set)
    layout = playground(rules)
    seeker, hider = Bot("chaser", rules), Bot("random", rules)
    recording = record_match(seeker, hider, rules=rules, layout=layout, seed=3)
    arenas = Arenas(1, rules=rules, layout=[layout], seed=3)
    observations = arenas.reset()
    for moment in range(len(recording.ticks)):
        assert recording.ticks[moment] == arenas.arenas["tick"][0]
        for axis, name in enumerate("xyz"):
            np.testing.assert_array_equal(
                recording.positions[moment, :, axis], arenas.agents[name][0]
            )
        np.testing.assert_array_equal(
            recording.forwards[moment, :, 0], arenas.agents["forward_x"][0]
        )
        np.testing.assert_array_equal(
            recording.forwards[moment, :, 1], arenas.agents["forward_z"][0]
        )
        np.testing.assert_array_equal(recording.is_seeker[moment], arenas.is_seeker[0])
        np.testing.assert_array_equal(recording.observations[moment], observations[0])
        if moment == len(recording.ticks) - 1:
            break
        it = arenas.is_seeker[0]
        actions = np.empty((1, 2, 3), dtype=np.float32)
        actions[0, it] = seeker.act(observations[0][it])
        actions[0, ~it] = hider.act(observations[0][~it])
        results = arenas.step(actions, restart=False)
        observations = results.observations
        assert (results.ends[0] == GOING_ON) == (moment < len(recording.ticks) - 2)
    assert (recording.end, recording.winner) == (results.ends[0], results.winners[0])
    assert recording.is_seeker.sum(axis=1).tolist() == [1] * len(recording.ticks)
    swapped = (recording.is_seeker[0] != recording.is_seeker[-1]).any()
    assert rule_set == "transfer" or not swapped


def test_lasts_as_long_as_the_match_that_judges_strength() -> None:
    rules = load_rules()
    layout = playground(rules)
    for seed in range(4):
        recording = played(rules, seed=seed)
        players = Bot("chaser", rules), Bot("evader", rules)
        judged = play_matches(*players, 1, rules=rules, layouts=[layout], seed=seed)
        assert recording.ticks[-1] == judged.ticks[0]
        assert recording.winner == judged.winners[0]
        assert recording.end == (TAGGED if judged.winners[0] == 0 else TIMED_OUT)
        assert recording.seconds(rules) == judged.ticks[0] / 60.0


def test_every_pair_of_players_begins_alike() -> None:
    rules = load_rules()
    one, other = played(rules), played(rules, seeker="random", hider="random")
    np.testing.assert_array_equal(one.positions[0], other.positions[0])
    np.testing.assert_array_equal(one.forwards[0], other.forwards[0])
    assert (one.positions[5] != other.positions[5]).any()


def test_rays_and_sight_are_those_of_the_observations() -> None:
    rules = load_rules()
    recording = played(rules)
    reaches = recording.ray_distances(rules)
    assert reaches.shape == (len(recording.ticks), 2, rules.eyes.rays)
    rays = recording.observations[..., rules.field("rays")]
    rays = rays.reshape(*reaches.shape, 3)
    np.testing.assert_allclose(reaches, rays[..., 0] * rules.eyes.range_m, rtol=1e-6)
    touched = rays[..., 2].any(axis=-1)
    assert recording.seen[touched].all(), "who has the opponent on a ray sees it"
    assert recording.seen.any()
    assert not recording.seen.all()
