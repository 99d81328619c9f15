"""Tables: numbers, gaps, and damage that is named."""

import re
from pathlib import Path

import numpy as np
import pytest

from estragon.show.charts.table import EPISODES, STEPS, read_table
from estragon.support.errors import UserError


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
    with pytest.raises(UserError, match=r"line 2, layout: 'play, ground' is no number"):
        table.column("layout")


def test_a_line_that_is_being_written_is_left_out_and_noted(tmp_path: Path) -> None:
    path = written(tmp_path, "agent_steps,a\n1,2\n10,2")
    table = read_table(path)
    assert table.column("a").tolist() == [2.0]
    assert table.notes == [f"{path}: line 3 is not finished and left out"]
    assert read_table(written(tmp_path, "agent_steps,a\n1,2\n")).notes == []


def test_names_after_a_prefix_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "x_term_b,agent_steps,x_term_a,y_term_c\n1,1,1,1\n"))
    assert table.names_after("x_term_") == ["b", "a"]


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
        ("agent_steps,a\n1,2\nmany,2\n", "line 3, agent_steps: 'many' is no number"),
        ("agent_steps,a\n1,2\n\x1b[31m,2\n", r"line 3, agent_steps: '\x1b[31m' is no number"),
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
