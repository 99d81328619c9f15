"""Layouts: those of the game, those made from a seed, and those nobody could play on."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas
from estragon.tag.layout import (
    Layout,
    draw_layout,
    layout_names,
    load_layout,
    load_layouts,
    random_layout,
    symmetries,
)
from estragon.tag.rules import load_rules
from estragon.tag.state import vectors

RULES = load_rules()


def written(tmp_path: Path, boxes: Any) -> str:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"boxes": boxes}))
    return str(path)


def box(x: float, z: float, width: float, height: float, depth: float) -> dict[str, list[float]]:
    return {"at_m": [x, z], "size_m": [width, height, depth]}


def test_the_game_has_its_layouts() -> None:
    assert {"empty", "four_corners", "central_cross", "playground"} <= set(layout_names())
    for name in layout_names():
        assert load_layout(name, RULES).name == name


def test_the_default_offers_something_to_hide_behind_and_something_to_jump_on() -> None:
    tops = [box.size_m[1] for box in load_layout(RULES.layout, RULES).boxes]
    assert any(top < RULES.jump_height_m - 0.1 for top in tops)
    assert any(top > RULES.jump_height_m + 1.0 for top in tops)


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        ([], range(8)),
        ([box(3, 0, 1, 1, 1)], [0, 5]),  # mirrored along x and turned by half: mirrored along z
        ([box(3, 0, 1, 1, 1), box(-3, 0, 1, 1, 1)], [0, 1, 4, 5]),
        ([box(3, 2, 1, 1, 1), box(-3, -2, 1, 1, 1)], [0, 4]),
        ([box(0, 0, 2, 1, 3)], [0, 1, 4, 5]),
        ([box(3, 1, 1, 1, 1)], [0]),
    ],
)
def test_symmetries_map_a_layout_onto_itself(boxes: Any, expected: Any, tmp_path: Path) -> None:
    layout = load_layout(written(tmp_path, boxes), RULES)
    assert symmetries([layout], RULES).tolist() == list(expected)


def test_symmetries_hold_for_every_layout_and_for_the_walls() -> None:
    one, other = load_layouts("colonnade,random:3", RULES)
    assert symmetries([one], RULES).tolist() == list(range(8))
    assert symmetries([one, other], RULES).tolist() == [0]
    assert symmetries([], RULES).tolist() == [0]
    long = msgspec.structs.replace(RULES, arena=msgspec.structs.replace(RULES.arena, depth_m=24.0))
    assert symmetries([one], long).tolist() == [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("boxes", "complaint"),
    [
        ([box(9.5, 0, 3, 1, 3)], r"boxes\[0\].*sticks out"),
        ([box(0, 0, 1, 1, 1), box(0, 5, 0.05, 1, 3)], r"boxes\[1\].*thinner"),
        ([box(0, 0, 2, 1.5, 2)], r"boxes\[0\].*where a jump from 0 m ends"),
        ([box(0, 0, 2, 1.1, 2), box(5, 5, 2, 2.6, 2)], r"boxes\[1\].*jump from 1.1 m"),
        ([box(0, 0, 20, 2.8, 1)], "cut the floor into 2 parts"),
        ([box(0, 0, 20, 2.8, 20)], "no floor"),
        ([box(0, 2, 20, 2.8, 16), box(2.5, -8, 15, 2.8, 4)], "m across, spawns need 8 m"),
        ([box(0, 0, 2, -1, 2)], "size_m"),
        ([{"at_m": [0], "size_m": [1, 1, 1]}], "at_m"),
        ([{"at_m": [0, 0], "size_m": [1, 1, 1], "colour": "red"}], "colour"),
        ([box(0, 0, 1, 1, 1)] * 33, "boxes"),
        ("none", "boxes"),
    ],
)
def test_an_impossible_layout_is_refused(tmp_path: Path, boxes: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint) as caught:
        load_layout(written(tmp_path, boxes), RULES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["nowhere", "../rules", "random:x", "random:9-3", "random:-1", ""])
def test_an_unknown_layout_is_refused(spec: str) -> None:
    with pytest.raises(UserError, match="layout"):
        load_layouts(spec, RULES)


def test_random_layouts_are_playable_varied_and_repeatable() -> None:
    seen = set()
    for seed in range(120):
        layout = random_layout(seed, RULES)
        assert layout == random_layout(seed, RULES)
        assert 1 <= len(layout.boxes) <= 7
        seen.add(msgspec.json.encode(layout.boxes))
    assert len(seen) == 120


def test_a_random_layout_survives_json() -> None:
    layout = random_layout(11, RULES)
    again = msgspec.json.decode(msgspec.json.encode(layout), type=Layout)
    assert again == layout


def test_spawns_are_free_apart_and_never_trapped() -> None:
    """Every spawn lies on the one connected piece of free floor that `check_layout` demands."""
    spec = ",".join([*layout_names(), "random:0-99"])
    arenas = Arenas(4096, layout=spec, seed=5)
    arenas.reset()
    places = vectors(arenas.agents, "x", "y", "z")
    apart = np.linalg.norm(places[:, 0] - places[:, 1], axis=1)
    assert apart.min() >= RULES.episode.spawn_separation_m
    assert len(set(arenas.arenas["layout"].tolist())) == len(arenas.layouts)
    for a in range(arenas.count):
        for block in arenas.layouts[arenas.arenas["layout"][a]].boxes:
            away_x = np.abs(places[a, :, 0] - block.at_m[0]) - block.size_m[0] / 2 - 0.5
            away_z = np.abs(places[a, :, 2] - block.at_m[1]) - block.size_m[2] / 2 - 0.5
            assert (np.maximum(away_x, away_z) > 0.0).all()


def test_the_drawing_shows_low_and_tall_boxes() -> None:
    drawing = draw_layout(load_layout("playground", RULES), RULES)
    assert "█" in drawing
    assert "░" in drawing
    assert len(drawing.splitlines()) == 22
