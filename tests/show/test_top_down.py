"""A frame from above shows who is where, how high, and what they see."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from estragon.show.canvas import HIDER, SEEKER
from estragon.show.film_renderers import Shot, TopDownRenderer, encode_png, save_frame
from estragon.show.frames import Quality, frame_path
from estragon.show.top_down import Motion, TopDown, motion_of, view_of
from estragon.show.trajectory import write_trajectory
from estragon.support.errors import UserError
from estragon.tag.layout import Box
from estragon.tag.rules import Rules, load_rules
from tests.show.staging import FPS, filmed, played, playground

SIZE = (640, 600)


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


@pytest.fixture(scope="module")
def top_down(rules: Rules) -> TopDown:
    return TopDown(rules, playground(rules), SIZE)


@pytest.fixture(scope="module")
def motion(rules: Rules) -> Motion:
    return filmed(played(rules))


def pixels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture, dtype=np.int64)


def count(picture: Image.Image, colour: str) -> int:
    """Pixels of exactly this colour."""
    return int((pixels(picture) == ImageColor.getrgb(colour)).all(axis=-1).sum())


def posed(motion: Motion, places: list[tuple[float, float, float]]) -> Motion:
    """The first frame, with the agents at these places and facing along x."""
    facing = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    return motion._replace(positions=np.array([places]), forwards=facing)


@pytest.mark.parametrize("size", [SIZE, (320, 180), (1920, 1080)])
def test_cubes_are_where_the_agents_are(
    rules: Rules, motion: Motion, size: tuple[int, int]
) -> None:
    view = view_of(rules, size)
    top_down = TopDown(rules, playground(rules), size)
    reach = round(0.7 * view.pixels_per_m)
    for frame in (0, len(motion.seconds) // 2):
        picture = top_down.draw(motion, frame)
        assert picture.size == size
        for agent, colour in enumerate((SEEKER, HIDER)):
            x, y = view.at(motion.positions[frame, agent, ::2]).astype(int)
            patch = pixels(picture)[y - reach : y + reach, x - reach : x + reach].reshape(-1, 3)
            same = (np.abs(patch - ImageColor.getrgb(colour)) < 40).all(axis=-1)
            assert same.sum() > 0.05 * view.pixels_per_m**2


def test_nothing_of_one_frame_stays_in_the_next(top_down: TopDown, motion: Motion) -> None:
    first = top_down.draw(motion, 0)
    top_down.draw(motion, 60)
    assert top_down.draw(motion, 0).tobytes() == first.tobytes()


def test_who_jumps_looks_larger(top_down: TopDown, motion: Motion) -> None:
    low, high, away = (-8.0, 0.501, 0.0), (-8.0, 2.001, 0.0), (8.0, 0.501, 8.0)
    standing = count(top_down.draw(posed(motion, [low, away]), 0), SEEKER)
    jumping = count(top_down.draw(posed(motion, [high, away]), 0), SEEKER)
    assert jumping > 1.1 * standing


def test_sight_is_a_tint_and_is_stronger_on_the_opponent(
    rules: Rules, top_down: TopDown, motion: Motion
) -> None:
    frame = int(np.flatnonzero(motion.seen[:, 0])[0])
    blind = motion._replace(seen=np.zeros_like(motion.seen))
    pale, strong = (pixels(top_down.draw(shown, frame)) for shown in (blind, motion))
    middle = motion.ray_ends[frame, 0].mean(axis=0)
    x, y = view_of(rules, SIZE).at((motion.positions[frame, 0, ::2] + middle) / 2.0).astype(int)
    floor = pixels(top_down._scenery)[y, x, 1]
    assert strong[y, x, 1] < pale[y, x, 1] < floor


def test_tall_boxes_are_darker(rules: Rules, top_down: TopDown) -> None:
    picture = pixels(top_down._scenery)
    view = view_of(rules, SIZE)
    shades = {}
    for box in playground(rules).boxes:
        x, y = view.at(np.array(box.at_m)).astype(int)
        shades[box.size_m[1]] = picture[y, x].sum()
    floor = picture[tuple(view.at(np.array([-9.0, -9.0])).astype(int)[::-1])].sum()
    assert shades[2.8] < shades[1.1] < floor


def test_a_ring_runs_outward_from_a_tag(rules: Rules, top_down: TopDown) -> None:
    match = played(rules)
    end = float(match.seconds[-1])
    motion = motion_of(match, [end - 0.01, end + 0.1, end + 0.4, end + 2.0])
    untouched = motion._replace(tags=[])
    _, x, z = motion.tags[0]
    middle = view_of(rules, SIZE).at(np.array([x, z]))
    reaches = []
    for frame in range(4):
        shown, plain = (pixels(top_down.draw(one, frame)) for one in (motion, untouched))
        ring = np.argwhere((shown != plain).any(axis=-1))[:, ::-1]
        reaches.append(float(np.hypot(*(ring - middle).T).max()) if len(ring) else 0.0)
    assert reaches[0] == reaches[3] == 0.0
    assert 20.0 < reaches[1] < reaches[2] - 10.0


def test_our_png_holds_the_very_pixels() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    with Image.open(io.BytesIO(encode_png(picture))) as read:
        assert read.format == "PNG"
        assert (np.asarray(read.convert("RGB")) == noise).all()


def test_a_shot_is_drawn_in_processes_and_only_what_is_missing(
    rules: Rules, tmp_path: Path
) -> None:
    trajectory = write_trajectory(played(rules), tmp_path)
    shot = Shot(trajectory, tmp_path / "frames", (0.0, 0.5, 1.0, 1.5))
    quality = Quality((160, 90), 30)
    told: list[tuple[int, int]] = []
    TopDownRenderer().draw([shot], quality, lambda *counts: told.append(counts))
    assert told == [(done, 4) for done in (1, 2, 3, 4)]
    assert shot.missing(quality.size) == []
    kept = {n: frame_path(shot.folder, n).read_bytes() for n in range(4)}
    mark = encode_png(Image.new("RGB", quality.size))
    frame_path(shot.folder, 0).write_bytes(mark)
    frame_path(shot.folder, 2).unlink()
    assert shot.missing(quality.size) == [2]
    TopDownRenderer().draw([shot], quality, lambda *counts: told.append(counts))
    assert told[4:] == [(1, 1)]
    assert frame_path(shot.folder, 2).read_bytes() == kept[2], "the same bits again"
    assert frame_path(shot.folder, 0).read_bytes() == mark, "what is there is not drawn again"


def test_frames_that_are_not_as_they_should_be(tmp_path: Path) -> None:
    shot, size = Shot(tmp_path / "match.jsonl", tmp_path / "frames", (0.0, 0.1)), (4, 2)
    for number in range(2):
        save_frame(Image.new("RGB", size), frame_path(shot.folder, number))
    shot.check(size)
    assert shot.read(1).size == size
    with pytest.raises(UserError, match=r"frame_000000\.png: expected 8 × 8 pixels, got 4 × 2"):
        shot.check((8, 8))
    path = frame_path(shot.folder, 1)
    path.write_bytes(path.read_bytes()[:40])
    assert shot.missing(size) == [1], "half a frame is none"
    with pytest.raises(UserError, match=r"frame_000001\.png is damaged"):
        shot.read(1)
    path.unlink()
    for look in (lambda: shot.check(size), lambda: shot.read(1)):
        with pytest.raises(UserError, match=r"frame .*frame_000001\.png is missing"):
            look()
    with pytest.raises(UserError, match="cannot write"):
        save_frame(Image.new("RGB", size), tmp_path / "frames" / "frame_000000.png" / "x.png")


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
