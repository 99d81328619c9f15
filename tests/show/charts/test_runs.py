"""Which runs are repeats of each other, what they are called, and what charts have along them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.show.charts.runs import Run, common_axis, read_metrics, read_run, sort_runs
from estragon.show.charts.table import EPISODES, STEPS
from estragon.support.errors import UserError
from tests.show.charts.live_metrics import write_live_metrics
from tests.show.charts.run_folder import read_rows, write_rows

ABOUT = {
    "approach": "ppo-league",
    "seed": 0,
    "started": "today",
    "torch": "2.6",
    "layout": None,
    "recipe": {"learning_rate": 0.002, "arenas": 64},
}


def run_in(folder: Path, **about: Any) -> Run:
    """A run of two updates with this metadata."""
    folder.mkdir(parents=True)
    write_rows(folder / "metrics.csv", [{"agent_steps": 10 * n, "episode": n} for n in (1, 2)])
    if about:
        (folder / "metadata.json").write_text(json.dumps(about))
    return read_run(folder)


def names_of(*runs: Run) -> dict[str, int]:
    return {kind.name: len(kind.runs) for kind in sort_runs(runs)}


def test_runs_that_differ_by_chance_are_one_kind(tmp_path: Path) -> None:
    one = run_in(tmp_path / "1", **ABOUT)
    two = run_in(tmp_path / "2", **ABOUT | {"seed": 1, "started": "later", "torch": "2.7"})
    assert names_of(one, two) == {"ppo-league": 2}


def test_runs_that_differ_in_a_setting_are_named_after_it(tmp_path: Path) -> None:
    one = run_in(tmp_path / "1", **ABOUT)
    other = {"recipe": {"learning_rate": 0.01, "arenas": 64}, "layout": "empty"}
    two = run_in(tmp_path / "2", **ABOUT | other)
    assert names_of(one, two) == {
        "ppo-league, learning_rate 0.002": 1,
        "ppo-league, layout empty, learning_rate 0.01": 1,
    }


def test_runs_that_differ_in_many_settings_keep_their_own_names(tmp_path: Path) -> None:
    one = run_in(tmp_path / "monday", **ABOUT | dict.fromkeys("abcd", 1))
    two = run_in(tmp_path / "tuesday", **ABOUT | dict.fromkeys("abcd", 2))
    assert names_of(one, two) == {"ppo-league monday": 1, "ppo-league tuesday": 1}


def test_approaches_are_told_apart(tmp_path: Path) -> None:
    one = run_in(tmp_path / "1", **ABOUT)
    two = run_in(tmp_path / "2", **ABOUT | {"approach": "live"})
    assert names_of(one, two) == {"ppo-league": 1, "live": 1}


def test_files_without_metadata_have_names_that_differ(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a/logs/metrics.csv", "b/logs/metrics.csv", "new.csv")]
    runs = [read_metrics(write_live_metrics(path, episodes=3)) for path in paths]
    assert names_of(*runs) == {"a/logs": 1, "b/logs": 1, f"{tmp_path.name}/new": 1}
    assert names_of(runs[0], runs[2]) == {"logs": 1, "new": 1}


def test_the_same_run_twice_is_a_mistake(tmp_path: Path) -> None:
    run = run_in(tmp_path / "1")
    with pytest.raises(UserError, match="is given twice"):
        sort_runs([run, run])


def test_steps_where_all_count_them_else_episodes(tmp_path: Path) -> None:
    embedded = run_in(tmp_path / "1")
    live = read_metrics(write_live_metrics(tmp_path / "live.csv", episodes=3))
    assert common_axis([embedded]) == STEPS
    assert common_axis([embedded, live]) == EPISODES
    write_rows(tmp_path / "odd.csv", [{"agent_steps": 1, "duration_sec": 2.0}])
    with pytest.raises(UserError, match=r"odd\.csv: no column 'episode'"):
        common_axis([live, read_metrics(tmp_path / "odd.csv")])


def test_live_wins_are_counted_from_words(tmp_path: Path) -> None:
    path = write_live_metrics(tmp_path / "metrics.csv", episodes=4)
    rows = read_rows(path)
    for row, winner in zip(rows, ("seeker", "hider", "draw", ""), strict=True):
        row["winner"] = winner
    write_rows(path, rows)
    points = read_metrics(path).points("metrics", "seeker_win_rate", EPISODES)
    np.testing.assert_array_equal(points.x, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(points.y, [1.0, 0.0, 0.5])
    assert points.scattered


def test_a_run_without_tests_has_no_points_of_them(tmp_path: Path) -> None:
    run = run_in(tmp_path / "1")
    assert len(run.points("strength", "seeker_vs_random_win_rate", STEPS).x) == 0
    assert len(run.points("elo", "seeker", STEPS).x) == 0
    assert len(run.points("metrics", "policy_loss", STEPS).x) == 0
