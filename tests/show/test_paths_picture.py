"""The picture of a match: both ways in their colours, where they began, ended and met."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from estragon.show.canvas import HIDER, SEEKER
from estragon.show.paths_picture import SIZE, draw_paths, save_paths
from estragon.show.top_down import draw_scenery, view_of
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.tag.rules import load_rules
from tests.show.logged_matches import log_matches, old_log
from tests.tag.staging import with_episode


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    (path,), _ = log_matches(tmp_path_factory.mktemp("match"), layout="colonnade")
    return read_trajectory(path)


def is_like(pixel: np.ndarray, colour: str) -> bool:
    """Whether a pixel has a role's hue, however pale: the seeker is red, the hider blue."""
    red, _, blue = pixel.astype(int)
    return bool(red - blue > 10 if colour == SEEKER else blue - red > 10)


def test_both_ways_are_drawn_in_their_colours(match: Trajectory) -> None:
    picture = np.array(draw_paths(match, "A match"))
    view = view_of(match.game_rules(), SIZE)
    for agent, colour in ((0, SEEKER), (1, HIDER)):
        way, other = (match.positions[:, who, ::2] for who in (agent, 1 - agent))
        far = np.linalg.norm(way[:, None] - other[None], axis=2).min(axis=1) > 0.3
        between_dots = np.abs((match.ticks + 30) % 60 - 30) > 12
        rows = np.flatnonzero(far & between_dots)[:-5]
        pixels = view.at(way[rows]).round().astype(int)
        assert len(rows) > 8
        assert np.mean([is_like(picture[y, x], colour) for x, y in pixels]) > 0.9


def test_a_way_grows_darker_with_time(match: Trajectory) -> None:
    picture = np.array(draw_paths(match, "A match")).astype(int)
    view = view_of(match.game_rules(), SIZE)

    def saturation(rows: range) -> float:
        places = [view.at(match.positions[row, 0, ::2]).round().astype(int) for row in rows]
        return float(np.median([np.ptp(picture[y, x]) for x, y in places]))

    moments = len(match.ticks)
    early = saturation(range(15, moments // 3))
    late = saturation(range(2 * moments // 3, moments - 15))
    assert early + 20 < late


def test_marks_of_start_end_and_tag(match: Trajectory) -> None:
    rules = match.game_rules()
    view = view_of(rules, SIZE)
    bare = np.array(draw_scenery(match.layout, rules, view)).astype(int)
    picture = np.array(draw_paths(match, "A match")).astype(int)
    places = [*match.positions[0, :, ::2], *match.positions[-1, :, ::2]]
    for place in places:
        x, y = view.at(place).round().astype(int)
        patch = np.s_[y - 12 : y + 12, x - 12 : x + 12]
        assert np.abs(picture[patch] - bare[patch]).mean() > 15.0
    middle = view.at(match.positions[-1, :, ::2].mean(axis=0))
    ring = middle + 1.5 * view.pixels_per_m * np.array([np.cos(0.3), np.sin(0.3)])
    x, y = ring.round().astype(int)
    assert any(is_like(picture[y + a, x + b], SEEKER) for a in (-4, -2, 0) for b in (-4, -2, 0))


def test_the_title_is_written(match: Trajectory) -> None:
    one, other = (np.array(draw_paths(match, title)) for title in ("Tuesday", "Überraschung!"))
    differs = np.abs(one.astype(int) - other).any(axis=2)
    assert differs[:70].any()
    assert not differs[70:].any()


def test_a_very_long_title_stays_inside(match: Trajectory) -> None:
    picture = np.array(draw_paths(match, "x" * 5000))
    assert (picture[10:70, -40:] == picture[0, -1]).all()


@pytest.mark.parametrize("rule_set", ["seek", "transfer"])
def test_stories(rule_set: str, tmp_path: Path) -> None:
    rules = load_rules(rules=rule_set)
    (path,), _ = log_matches(tmp_path / "long", rules=rules, hider="random")
    long = read_trajectory(path)
    (path,), _ = log_matches(tmp_path, rules=with_episode(rules, time_limit_sec=0.5))
    assert read_trajectory(path).summary() == "nobody is tagged in 0.5 s"
    if rule_set == "seek":
        assert long.summary() == f"Agent1 tags Agent2 after {long.ticks[-1] / 60:.2f} s"
    else:
        assert long.summary() == f"{len(long.tags)} tags in 10 s"


def test_the_file_is_a_picture_also_of_an_older_log(tmp_path: Path) -> None:
    trajectory = read_trajectory(old_log(tmp_path / "old.jsonl", moments=1))
    save_paths(trajectory, tmp_path / "paths.png", "")
    with Image.open(tmp_path / "paths.png") as picture:
        picture.load()
        assert (picture.size, picture.format) == (SIZE, "PNG")
