"""Time and memory of a process, segment by segment."""

import itertools
import mmap
import os
import sys

import pytest

from estragon.judge.performance import SEGMENTS, Meter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_every_segment_of_a_fast_game_has_its_own_memory_and_slowest_step() -> None:
    """This process plays the game: it keeps 200 KB per step, and works longer in some steps."""
    meter = Meter(lambda: [os.getpid()])
    kept = []  # mappings, because the allocator would hand out memory of before
    for step in range(10 * SEGMENTS):
        kept.append(mmap.mmap(-1, 200_000))
        kept[-1].write(b"x" * 200_000)
        sum(range(400_000 if step % 10 == 5 else 10_000))
        meter.step()
    found = meter.segments()
    assert [each.steps for each in found] == [10] * SEGMENTS
    memory = [each.memory_mb or 0.0 for each in found]
    growth = [after - before for before, after in itertools.pairwise(memory)]
    assert sorted(growth)[SEGMENTS // 2] == pytest.approx(2.0, abs=0.7)
    ratios = [each.slowest_step_ratio or 0.0 for each in found]
    assert sorted(ratios)[SEGMENTS // 2] > 2.0
    assert all((each.calibration_ms or 0.0) > 0.0 for each in found)


def test_a_game_that_is_not_ours_has_the_time_per_step_alone() -> None:
    meter = Meter(list)
    meter.step()
    (found,) = meter.segments()
    assert found.step_ms > 0.0
    assert (found.step_cpu_ms, found.memory_mb) == (None, None)
