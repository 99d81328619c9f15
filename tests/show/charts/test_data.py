"""Files of runs: numbers, gaps and damage that is named; and which runs are repeats."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estragon.show.charts.data import (
    EPISODES,
    STEPS,
    RunData,
    common_axis,
    group_runs,
    read_cross_play,
    read_metrics,
    read_run,
    read_table,
)
from estragon.support.errors import UserError
from tests.show.charts.live_metrics import write_live_metrics
from tests.show.charts.run_folder import STAGES, played_stages, read_rows, write_rows

ABOUT = {
    "approach": "ppo-league",
    "seed": 0,
    "started": "today",
    "torch": "2.6",
    "layout": None,
    "recipe": {"learning_rate": 0.002, "arenas": 64},
}


def written(folder: Path, text: str) -> Path:
    path = folder / "metrics.csv"
    path.write_bytes(text.encode())
    return path


def test_numbers_and_gaps(tmp_path: Path) -> None:
    table = read_table(
        written(tmp_path, "agent_steps,a,b\r\n1000000,0.5,\r\n2e6, ,-3\r\n\r\n2500000,nan,inf\r\n")
    )
    assert table.along(STEPS).tolist() == [1.0, 2.0, 2.5]
    np.testing.assert_array_equal(table.column("a"), [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(table.column("b"), [np.nan, -3.0, np.nan])
    np.testing.assert_array_equal(table.column("nowhere"), [np.nan] * 3)
    assert table.texts("b") == ("", "-3", "inf")
    assert table.texts("nowhere") == ("", "", "")


def test_what_is_not_finite_is_noted_once_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "agent_steps,a,b\n1,1,1\n2,nan,\n3,-inf,2\n")
    table = read_table(path)
    for name in ("a", "b", "a"):
        table.column(name)
    assert table.notes == [f"{path}: line 3, a: nan, and 1 more like it left out"]


def test_columns_that_nobody_asks_for_may_hold_anything(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, 'agent_steps,a,layout\n1,2,"play, ground"\n'))
    assert table.column("a").tolist() == [2.0]
    with pytest.raises(UserError, match=r"line 2, layout: expected a number, got 'play, ground'"):
        table.column("layout")


def test_a_line_that_is_being_written_is_left_out_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path, "agent_steps,a\n1,2\n10,2")
    table = read_table(path)
    assert table.column("a").tolist() == [2.0]
    assert table.notes == [f"{path}: line 3 is not finished and left out"]
    assert read_table(written(tmp_path, "agent_steps,a\n1,2\n")).notes == []


def test_live_training_counts_episodes(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "episode,updates\n1,0\n2,0\n3,1\n"))
    assert table.along(EPISODES).tolist() == [1.0, 2.0, 3.0]
    assert table.row_is == "episode"
    assert read_table(written(tmp_path, "episode,updates\n4,1\n9,2\n")).row_is == "update"


def test_episodes_counted_anew_are_counted_on(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "episode\n7\n8\n1\n2\n"))
    assert table.along(EPISODES).tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("\n\n", "line 1: expected a header with a column 'agent_steps' or 'episode', got ''"),
        ("steps,a\n1,2\n", "column 'agent_steps' or 'episode', got 'steps,a'"),
        ("agent_steps,a", "line 1: expected a header"),
        ("agent_steps,a\n", "has no rows yet"),
        ("agent_steps,a\n1,", "has no rows yet"),
        ("agent_steps,a,a\n1,2,3\n", "line 1: 2 columns are called 'a'"),
        ("agent_steps,a\n1,2\n3\n", "line 3 has 1 cells, expected 2"),
        ("agent_steps,a\n\n1,2\n3,4,5\n", "line 4 has 3 cells, expected 2"),
        ("agent_steps,a\n1,2\nmany,2\n", "line 3, agent_steps: expected a number, got 'many'"),
        (
            "agent_steps,a\n1,2\n\x1b[31m,2\n",
            r"line 3, agent_steps: expected a number, got '\x1b[31m'",
        ),
        ("agent_steps,a\n1,2\n,2\n", "line 3 has no agent_steps"),
        ("agent_steps,a\n1,2\nnan,2\n", "line 3 has no agent_steps"),
        ("agent_steps\n5\n7\n6\n", "line 4, agent_steps: goes back from 7 to 6"),
        (f"agent_steps\n{'1' * 200_000}\n", "line 2 is not CSV"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError, match=re.escape(complaint)) as caught:
        read_table(path).along(STEPS)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    with pytest.raises(UserError, match=r"cannot read .*metrics\.csv: No such file"):
        read_table(path)
    path.write_bytes(b"agent_steps\n\xff\xfe\n")
    with pytest.raises(UserError, match=r"metrics\.csv is not a CSV file: it is not UTF-8"):
        read_table(path)


def saved(folder: Path, **changes: Any) -> Path:
    path = folder / "cross_play.json"
    path.write_text(json.dumps(played_stages(np.random.default_rng(0)) | changes))
    return path


def test_reads_the_cross_play_a_run_writes(tmp_path: Path) -> None:
    loaded = read_cross_play(saved(tmp_path, note="more keys may come"))
    assert [stage.name for stage in loaded.stages] == list(STAGES)
    assert loaded.stages[-1].agent_steps == 12_000_000
    assert loaded.episodes == 256
    assert len(loaded.elo.hider) == len(STAGES)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"stages": []}, "stages: Expected"),
        ({"seeker_win_rate": [[0.5]]}, "seeker_win_rate: expected 6 rows of 6"),
        ({"seeker_win_rate": [[1.5]]}, "seeker_win_rate.*<= 1.0"),
        ({"elo": {"seeker": [1.0], "hider": [1.0]}}, "elo: expected 6 ratings per role"),
        ({"elo": None}, "elo"),
    ],
)
def test_damage_of_cross_play_is_named(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=rf"cross_play\.json: {complaint}"):
        read_cross_play(saved(tmp_path, **changes))


def run_in(folder: Path, **about: Any) -> RunData:
    """A run of two updates with this metadata."""
    folder.mkdir(parents=True)
    write_rows(folder / "metrics.csv", [{"agent_steps": 10 * n, "episode": n} for n in (1, 2)])
    if about:
        (folder / "metadata.json").write_text(json.dumps(about))
    return read_run(folder)


def names_of(*runs: RunData) -> dict[str, int]:
    return {kind.name: len(kind.runs) for kind in group_runs(runs)}


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
        group_runs([run, run])


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
