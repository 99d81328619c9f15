"""Real pictures of a run's files: all there, telling runs apart, and never of nothing."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image, ImageColor

from estragon.show.canvas import HIDER, SEEKER
from estragon.show.charts.chart import COLOURS
from estragon.show.charts.data import read_metrics, read_run
from estragon.show.charts.draw import draw_charts, draw_numbers
from estragon.show.charts.figure import ChartFigure, encode_figure
from estragon.support.errors import UserError
from tests.show.charts.live_metrics import write_live_metrics
from tests.show.charts.run_folder import make_run, read_rows, write_rows

STRENGTH = ["reward.png", "length.png", "win_rates.png"]
LEARNING = ["reward_terms.png", "losses.png"]
COLUMNS = ["reward_mean.png", "advantage_mean.png", "advantage_std.png"]
COLUMNS += ["policy_loss.png", "value_loss.png"]
"""Those that the runs made here have columns for."""
ALL = [*STRENGTH, "elo.png", "ladder.png", *LEARNING, *COLUMNS, "cross_play.png"]
LIVE = [*STRENGTH, *COLUMNS, "avg_distance.png"]
PNG = b"\x89PNG\r\n\x1a\n"


def drawn(run: Path) -> dict[str, bytes]:
    """The charts of a run: name and bytes of each file."""
    paths = draw_charts(run, run / "new" / "charts")
    assert sorted(paths) == sorted((run / "new" / "charts").iterdir())
    return {path.name: path.read_bytes() for path in paths}


def figures_of(*runs: Path) -> dict[str, ChartFigure]:
    """The charts of runs, folders or files, not painted yet: that takes the time."""
    read = [read_run(run) if run.is_dir() else read_metrics(run) for run in runs]
    return draw_numbers(read).figures


def shows(picture: bytes | Figure, colour: str) -> bool:
    """Whether this very colour is in a picture, or that of a line of a figure."""
    if isinstance(picture, Figure):
        lines = [line for axes in picture.axes for line in axes.lines]
        return any(to_hex(line.get_color()) == colour for line in lines)
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    return bool((pixels == ImageColor.getrgb(colour)).all(axis=-1).any())


def known_as(run: Path, approach: str, seed: int) -> Path:
    """A run that says what it is."""
    (run / "metadata.json").write_text(json.dumps({"approach": approach, "seed": seed}))
    return run


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
    for name in (*STRENGTH, "losses.png", "elo.png", "reward_mean.png", "value_loss.png"):
        assert shows(whole[name], SEEKER), name
        assert shows(whole[name], HIDER), name


def test_the_same_run_gives_the_same_bytes_and_another_run_others(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    same, other = (figures_of(make_run(tmp_path / str(n), seed=n)) for n in (0, 1))
    for name in ("win_rates.png", "losses.png"):
        assert encode_figure(same[name]) == whole[name], name
    assert encode_figure(other["win_rates.png"]) != whole["win_rates.png"]


def test_what_is_not_there_yet_is_left_out(tmp_path: Path, whole: dict[str, bytes]) -> None:
    early = figures_of(make_run(tmp_path, strength=False, cross_play=False))
    assert list(early) == [*STRENGTH, *LEARNING, *COLUMNS]
    assert encode_figure(early["length.png"]) != whole["length.png"]


def test_one_role_alone(tmp_path: Path) -> None:
    charts = figures_of(make_run(tmp_path, roles=("hider",), cross_play=False))
    assert list(charts) == [*STRENGTH, *LEARNING, *COLUMNS]
    for name in ("reward.png", "length.png", "losses.png"):
        assert shows(charts[name], HIDER), name
        assert not shows(charts[name], SEEKER), name


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    """One row, and no episode has ended: losses are all there is."""
    make_run(tmp_path, strength=False, cross_play=False)
    first = read_rows(tmp_path / "metrics.csv")[0]
    first |= {name: "" for name in first if "_term_" in name or "reward" in name}
    write_rows(tmp_path / "metrics.csv", [first])
    charts = figures_of(tmp_path)
    assert list(charts) == ["losses.png", *COLUMNS[1:]]
    assert shows(charts["policy_loss.png"], SEEKER), "one number is a dot"


def test_a_run_without_any_numbers(tmp_path: Path) -> None:
    write_rows(tmp_path / "metrics.csv", [{"agent_steps": 0, "seeker_reward_sum": ""}])
    assert draw_charts(tmp_path, tmp_path / "charts") == []


def test_live_training_is_drawn_over_episodes(tmp_path: Path) -> None:
    charts = figures_of(write_live_metrics(tmp_path / "metrics.csv"))
    assert list(charts) == LIVE
    assert shows(charts["win_rates.png"], SEEKER)
    assert shows(charts["reward.png"], HIDER)
    for figure in charts.values():
        assert figure.axes[0].get_xlabel() == "episodes"
        assert figure.axes[0].get_xlim() == (0.0, 400.0)


def test_repeats_of_a_run_are_drawn_as_one_in_the_colours_of_the_roles(tmp_path: Path) -> None:
    runs = [known_as(make_run(tmp_path / str(n), seed=n), "ppo", n) for n in range(3)]
    charts = figures_of(*runs)
    assert list(charts) == ALL
    for name in ("win_rates.png", "losses.png", "elo.png"):
        assert shows(charts[name], SEEKER), name
        assert not shows(charts[name], COLOURS[0]), name
        words = " ".join(text.get_text() for text in charts[name].texts)
        assert "lines: means of 3 runs" in words
        assert "bands: from the lowest run to the highest" in words


def test_kinds_of_runs_have_colours_of_their_own(tmp_path: Path) -> None:
    runs = [known_as(make_run(tmp_path / str(n), seed=n), "ppo", n) for n in range(2)]
    runs.append(known_as(make_run(tmp_path / "other", seed=5), "live", 0))
    charts = figures_of(*runs)
    assert list(charts) == [name for name in ALL if name != "cross_play.png"]
    for name in ("win_rates.png", "losses.png", "reward_terms.png"):
        assert shows(charts[name], COLOURS[0]), name
        assert shows(charts[name], COLOURS[1]), name
        assert not shows(charts[name], SEEKER), name
    for figure in charts.values():
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["ppo (2 runs)", "live"]


def test_an_embedded_and_a_live_run_side_by_side(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    rows = read_rows(run / "metrics.csv")
    write_rows(run / "metrics.csv", [row | {"episode": 9 * n} for n, row in enumerate(rows)])
    charts = figures_of(run, write_live_metrics(tmp_path / "live.csv"))
    assert shows(charts["win_rates.png"], COLOURS[0])
    assert shows(charts["win_rates.png"], COLOURS[1])
    assert "elo.png" not in charts, "ratings know no episodes"


def test_more_kinds_of_runs_than_colours_are_refused(tmp_path: Path) -> None:
    files = [write_live_metrics(tmp_path / f"{n}.csv", episodes=2) for n in range(10)]
    with pytest.raises(UserError, match="10 kinds of runs in one picture are too many, 9 can"):
        figures_of(*files)


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
    with pytest.raises(
        UserError, match=r"metrics\.csv: line 8, hider_kl: expected a number, got 'oops'"
    ):
        draw_charts(tmp_path / "run", tmp_path / "charts")


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*metrics\.csv"):
        draw_charts(tmp_path / "nowhere", tmp_path)
