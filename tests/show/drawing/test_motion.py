"""Between two logged ticks a film moves smoothly, and what is seen is seen by the engine."""

import numpy as np

from estragon.show.drawing.motion import motion_of
from estragon.tag.layout import Box
from estragon.tag.rules import load_rules
from tests.show.staging import FPS, filmed, played, playground


def test_logged_ticks_are_shown_as_they_were() -> None:
    match = played(load_rules())
    motion = motion_of(match, match.seconds.tolist())
    np.testing.assert_array_equal(motion.seconds, match.seconds)
    np.testing.assert_allclose(motion.positions, match.positions, atol=1e-12)
    np.testing.assert_allclose(motion.forwards, match.forwards, atol=1e-12)
    np.testing.assert_array_equal(motion.is_seeker, match.is_seeker)
    np.testing.assert_array_equal(motion.seen, match.sees)
    reaches = np.linalg.norm(motion.ray_ends - match.positions[:, :, None, ::2], axis=-1)
    np.testing.assert_allclose(reaches, match.ray_distances, atol=1e-5)


def test_moves_and_turns_smoothly_to_the_very_end() -> None:
    rules = load_rules()
    match = played(rules)
    assert match.tagged
    motion = filmed(match)
    np.testing.assert_allclose(motion.positions[-1], match.positions[-1])
    steps = np.linalg.norm(np.diff(motion.positions[..., ::2], axis=0), axis=-1)
    assert steps.max() < 1.3 * rules.agent.speed_mps / FPS
    np.testing.assert_allclose(np.linalg.norm(motion.forwards, axis=-1), 1.0)
    turns = (motion.forwards[1:] * motion.forwards[:-1]).sum(axis=-1).clip(-1.0, 1.0)
    assert np.degrees(np.arccos(turns)).max() < 1.01 * rules.agent.turn_rate_deg_per_sec / FPS


def test_between_two_ticks_nobody_leaves_their_range() -> None:
    match = played(load_rules())
    between = (match.seconds[1:] + match.seconds[:-1]) / 2.0
    positions = motion_of(match, between.tolist()).positions
    low = np.minimum(match.positions[1:], match.positions[:-1])
    high = np.maximum(match.positions[1:], match.positions[:-1])
    assert (positions >= low).all()
    assert (positions <= high).all()
    moved = np.abs(high - low) > 0.2
    straight = (match.positions[1:] + match.positions[:-1]) / 2.0
    assert np.abs(positions - straight)[moved].max() > 1e-4, "a curve, not a straight line"


def test_after_the_end_and_before_the_start_everybody_stays() -> None:
    match = played(load_rules())
    end = float(match.seconds[-1])
    motion = motion_of(match, [-1.0, 0.0, end, end + 3.0])
    np.testing.assert_array_equal(motion.positions[0], match.positions[0])
    np.testing.assert_array_equal(motion.positions[3], motion.positions[2])
    np.testing.assert_array_equal(motion.ray_ends[3], motion.ray_ends[2])
    assert motion.seconds[3] == end + 3.0


def test_no_ray_ends_behind_a_wall_or_inside_a_tall_box() -> None:
    rules = load_rules()
    motion = filmed(played(rules))
    assert np.abs(motion.ray_ends).max() <= 10.0 + 1e-4
    for box in playground(rules).boxes:
        if box.size_m[1] > 2.0:
            assert not _inside(motion.ray_ends, box).any()


def test_tags_are_where_and_when_the_role_is_handed_over() -> None:
    rules = load_rules(rules="transfer")
    match = played(rules, hider="random", seed=11)
    motion = filmed(match)
    assert len(motion.tags) == len(match.tags) >= 2
    for (second, x, z), tag in zip(motion.tags, match.tags, strict=True):
        assert second == tag.tick / 60.0
        moment = int(np.searchsorted(match.ticks, tag.tick))
        assert (match.is_seeker[moment] != match.is_seeker[moment - 1]).all()
        away = np.linalg.norm(match.positions[moment][:, ::2] - [x, z], axis=1)
        assert away.max() < 2.0
    ended = filmed(played(load_rules()))
    assert [second for second, _, _ in ended.tags] == [ended.seconds[-1]]


def _inside(points: np.ndarray, box: Box) -> np.ndarray:
    half = np.array([box.size_m[0], box.size_m[2]]) / 2.0 - 1e-3
    inside: np.ndarray = (np.abs(points - np.array(box.at_m)) < half).all(axis=-1)
    return inside
