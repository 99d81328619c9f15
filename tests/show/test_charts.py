"""Real pictures of a run's files: all there, telling runs apart, and never of nothing."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from estragon.errors import UserError
from estragon.show.charts import draw_charts
from estragon.show.palette import HIDER, SEEKER
from tests.show.run_folder import make_run, read_rows, write_rows

IN_TRAINING = ["reward.png", "length.png", "win_rates.png", "reward_terms.png", "losses.png"]
ALL = [*IN_TRAINING, "elo.png", "cross_play.png"]
PNG = b"\x89PNG\r\n\x1a\n"


def drawn(run: Path) -> dict[str, bytes]:
    """The charts of a run: name and bytes of each file."""
    paths = draw_charts(run, run / "new" / "charts")
    assert sorted(paths) == sorted((run / "new" / "charts").iterdir())
    return {path.name: path.read_bytes() for path in paths}


def shows(png: bytes, colour: str) -> bool:
    """Whether this very colour is in a picture."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return bool((pixels == ImageColor.getrgb(colour)).all(axis=-1).any())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return drawn(make_run(tmp_path_factory.mktemp("whole")))


def test_every_chart_is_a_png_of_its_size(whole: dict[str, bytes]) -> None:
    assert list(whole) == ALL
    for name, png in whole.items():
        assert png.startswith(PNG), name
        assert Image.open(io.BytesIO(png)).size == (1200, 700), name
    assert len(set(whole.values())) == len(ALL)


def test_both_roles_have_their_colours(whole: dict[str, bytes]) -> None:
    for name in ("reward.png", "length.png", "win_rates.png", "losses.png", "elo.png"):
        assert shows(whole[name], SEEKER), name
        assert shows(whole[name], HIDER), name


def test_the_same_run_gives_the_same_bytes_and_another_run_others(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    assert drawn(make_run(tmp_path / "same")) == whole
    other = drawn(make_run(tmp_path / "other", seed=1))
    for name in set(ALL) - {"elo.png"}:  # whose ratings are not drawn from the seed
        assert other[name] != whole[name], name


def test_what_is_not_there_yet_is_left_out(tmp_path: Path, whole: dict[str, bytes]) -> None:
    early = drawn(make_run(tmp_path, strength=False, cross_play=False))
    assert list(early) == IN_TRAINING
    assert early["losses.png"] == whole["losses.png"]
    assert early["reward.png"] != whole["reward.png"]


def test_one_role_alone(tmp_path: Path) -> None:
    charts = drawn(make_run(tmp_path, roles=("hider",), cross_play=False))
    assert list(charts) == IN_TRAINING
    for name in ("reward.png", "length.png", "losses.png"):
        assert shows(charts[name], HIDER), name
        assert not shows(charts[name], SEEKER), name


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    """One row, and no episode has ended: losses are all there is."""
    make_run(tmp_path, strength=False, cross_play=False)
    first = read_rows(tmp_path / "metrics.csv")[0]
    first |= {name: "" for name in first if "_term_" in name}
    write_rows(tmp_path / "metrics.csv", [first])
    assert list(drawn(tmp_path)) == ["losses.png"]


def test_a_run_without_any_numbers(tmp_path: Path) -> None:
    write_rows(tmp_path / "metrics.csv", [{"agent_steps": 0, "seeker_reward_sum": ""}])
    assert draw_charts(tmp_path, tmp_path / "charts") == []


@pytest.mark.parametrize("name", ["metrics.csv", "strength.csv", "cross_play.json"])
def test_a_garbled_file_is_named_and_nothing_is_drawn(tmp_path: Path, name: str) -> None:
    run = make_run(tmp_path / "run")
    (run / name).write_bytes(b"\x00\xff garbled")
    with pytest.raises(UserError, match=name):
        draw_charts(run, tmp_path / "charts")
    assert not (tmp_path / "charts").exists()


def test_a_word_among_the_numbers_is_named(tmp_path: Path) -> None:
    rows = read_rows(make_run(tmp_path / "run") / "metrics.csv")
    rows[6]["hider_kl"] = "oops"
    write_rows(tmp_path / "run" / "metrics.csv", rows)
    with pytest.raises(UserError, match=r"metrics\.csv: row 7, hider_kl: 'oops' is no number"):
        draw_charts(tmp_path / "run", tmp_path / "charts")


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*metrics\.csv"):
        draw_charts(tmp_path / "nowhere", tmp_path)
