"""Between two decisions a film moves smoothly, and what is seen is seen by the engine."""

import numpy as np

from estragon.show.film import FPS
from estragon.tag.layout import Box
from estragon.tag.match import TAGGED
from estragon.tag.rules import load_rules
from tests.show.staging import filmed, played, playground

PER_DECISION = 2
"""Frames a decision: 40 a second, and 20 decisions."""


def test_frames_at_decisions_are_the_recorded_moments() -> None:
    rules = load_rules()
    recording = played(rules)
    motion = filmed(rules, recording)
    at = np.flatnonzero(recording.ticks % 3 == 0)
    frames = at * PER_DECISION
    np.testing.assert_allclose(motion.seconds[frames], recording.ticks[at] / 60.0)
    np.testing.assert_allclose(motion.positions[frames], recording.positions[at], atol=1e-12)
    np.testing.assert_allclose(motion.forwards[frames], recording.forwards[at], atol=1e-12)
    np.testing.assert_array_equal(motion.is_seeker[frames], recording.is_seeker[at])
    reaches = np.linalg.norm(
        motion.ray_ends[frames] - recording.positions[at][:, :, None, ::2], axis=-1
    )
    np.testing.assert_allclose(reaches, recording.ray_distances(rules)[at], atol=1e-9)
    np.testing.assert_array_equal(motion.seen[frames], recording.seen[at])


def test_moves_and_turns_smoothly_to_the_very_end() -> None:
    rules = load_rules()
    recording = played(rules)
    assert recording.end == TAGGED
    motion = filmed(rules, recording)
    assert len(motion.seconds) == np.ceil(recording.seconds(rules) * FPS) + 1
    assert motion.seconds[-1] == recording.seconds(rules)
    np.testing.assert_allclose(motion.positions[-1], recording.positions[-1])
    steps = np.linalg.norm(np.diff(motion.positions[..., ::2], axis=0), axis=-1)
    assert steps.max() < 1.1 * rules.agent.speed_mps / FPS
    np.testing.assert_allclose(np.linalg.norm(motion.forwards, axis=-1), 1.0)
    turns = (motion.forwards[1:] * motion.forwards[:-1]).sum(axis=-1).clip(-1.0, 1.0)
    assert np.degrees(np.arccos(turns)).max() < 1.01 * rules.agent.turn_rate_deg_per_sec / FPS


def test_no_ray_ends_behind_a_wall_or_inside_a_tall_box() -> None:
    rules = load_rules()
    motion = filmed(rules, played(rules))
    assert np.abs(motion.ray_ends).max() <= 10.0 + 1e-4
    for box in playground(rules).boxes:
        if box.size_m[1] > 2.0:
            assert not _inside(motion.ray_ends, box).any()


def test_tags_are_where_and_when_the_role_is_handed_over() -> None:
    rules = load_rules(rules="transfer")
    recording = played(rules, hider="random", seed=11)
    motion = filmed(rules, recording)
    assert len(motion.tags) >= 2
    for second, x, z in motion.tags:
        moment = int(np.searchsorted(recording.ticks / 60.0, second - 1e-9))
        assert (recording.is_seeker[moment] != recording.is_seeker[moment - 1]).all()
        away = np.linalg.norm(recording.positions[moment][:, ::2] - [x, z], axis=1)
        assert away.max() < 2.0
    ended = filmed(load_rules(), played(load_rules()))
    assert [second for second, _, _ in ended.tags] == [ended.seconds[-1]]


def _inside(points: np.ndarray, box: Box) -> np.ndarray:
    half = np.array([box.size_m[0], box.size_m[2]]) / 2.0 - 1e-3
    inside: np.ndarray = (np.abs(points - np.array(box.at_m)) < half).all(axis=-1)
    return inside
