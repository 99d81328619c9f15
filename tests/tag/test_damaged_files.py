"""Damaged layouts and rules files: reading one returns data or raises a one-line error."""

import contextlib
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.tag.layout import Layout, load_layout
from estragon.tag.rules import load_rules

RULES = load_rules()
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NUMBERS = st.floats(-30, 30) | st.integers(-30, 30)
BOX = st.fixed_dictionaries(
    {
        "at_m": st.lists(NUMBERS, min_size=1, max_size=3),
        "size_m": st.lists(NUMBERS, min_size=3, max_size=3),
    }
)
once_per_example = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def one_line(path: Path) -> None:
    complaint = ""
    try:
        load_layout(str(path), RULES)
    except UserError as error:
        complaint = str(error)
    assert "\n" not in complaint
    assert len(complaint) < 1000


@once_per_example
@example(value=[{"\n": None}])
@example(value=[{"x" * 5000: None}])
@example(value="\u2028\x1b[31m")
@given(value=ANYTHING)
def test_any_json(tmp_path: Path, value: object) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(msgspec.json.encode({"boxes": value}))
    one_line(path)


@once_per_example
@given(data=st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(data)
    one_line(path)


@once_per_example
@given(boxes=st.lists(BOX, max_size=5))
def test_any_boxes(tmp_path: Path, boxes: list[object]) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(msgspec.json.encode({"boxes": boxes}))
    one_line(path)


@once_per_example
@given(place=st.integers(0, 3000), junk=st.text(max_size=4))
def test_a_rules_file_with_a_slip_of_the_pen(tmp_path: Path, place: int, junk: str) -> None:
    text = paths.rules_file().read_text()
    path = tmp_path / "rules.json"
    path.write_text(text[:place] + junk + text[place + 1 :])
    with contextlib.suppress(UserError):
        load_rules(path)
    with contextlib.suppress(UserError):
        read_json(path, Layout)
