"""`make quick` runs what was fast, and what is new."""

from pathlib import Path

import pytest

from tests.quick import BUDGET_SEC, choose


def test_fast_tests_of_files_with_cheap_fixtures_are_chosen() -> None:
    known = {
        "a.py::fast": [0.0, 0.1],
        "a.py::slow": [0.0, 9.0],
        "b.py::starts_a_game": [8.0, 0.1],
        "b.py::shares_it": [0.0, 0.1],
    }
    assert choose(known) == {"a.py::fast"}


def test_the_cheapest_files_come_first_until_the_budget_is_spent() -> None:
    known = {"cheap.py::one": [0.0, 0.1]}
    known |= {f"dear.py::{number}": [0.0, 0.5] for number in range(int(BUDGET_SEC / 0.5))}
    assert choose(known) == {"cheap.py::one"}


def test_a_run_measures_what_the_next_one_selects(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\nmarkers = slow: takes long")
    pytester.makepyfile(
        test_it="""
import time
import pytest

def test_fast():
    pass

def test_takes_a_while():
    time.sleep(0.6)

@pytest.mark.slow
def test_marked():
    pass
"""
    )
    words = ["-p", "tests.quick", "-p", "no:xdist"]
    pytester.syspathinsert(Path(__file__).parents[1])
    with monkeypatch.context() as patch:
        patch.setattr("tests.quick.TIME_LIMIT_SEC", -1.0)
        late = pytester.runpytest_inprocess(*words, "--quick")
    late.assert_outcomes(skipped=2, deselected=1)
    first = pytester.runpytest_inprocess(*words, "--quick")
    first.assert_outcomes(passed=2, deselected=1)
    second = pytester.runpytest_inprocess(*words, "--quick")
    second.assert_outcomes(passed=1, deselected=2)
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=3)
