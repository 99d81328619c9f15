"""Binary frames: what goes in comes out, and nothing else gets through."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from estragon.live.protocol import BadFrameError, FrameCodec, Hello
from tests.live.staging import SIZE, frame, results, seen

HELLO = Hello(protocol=1, observation_size=SIZE, arenas=3)


def spoilt(name: str, value: float) -> bytes:
    """A frame with results in which one number is as it must not be."""
    brought = results(ended=[1])
    brought[name].flat[0] = value
    return frame(8, brought=brought)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "0 bytes"),
    "shorter than a header": (lambda: b"D\x00\x03", "3 bytes"),
    "another kind": (lambda: frame(8, kind=0x41), "kind 65"),
    "unknown flags": (lambda: frame(8, flags=2), "flags 2"),
    "other arenas": (lambda: frame(8, seen(2, 0)), "2 arenas"),
    "other arenas than it holds": (lambda: frame(8, seen(2, 0), arenas=3), "bytes instead of"),
    "the same seq again": (lambda: frame(7), "seq 7"),
    "a seq left out": (lambda: frame(9), "seq 9"),
    "cut off": (lambda: frame(8)[:-1], "bytes instead of"),
    "too long": (lambda: frame(8) + b"\0", "bytes instead of"),
    "results announced and not there": (lambda: frame(8, flags=1), "too few"),
    "results there and not announced": (
        lambda: frame(8, brought=results(), flags=0),
        "bytes instead of",
    ),
    "results cut off": (lambda: frame(8, brought=results())[:-1], "too few"),
    "last of nobody": (
        lambda: frame(8, brought=results() | {"last": seen(1, 0)}),
        "bytes instead of",
    ),
    "no last": (
        lambda: frame(8, brought=results(ended=[0]) | {"last": seen(0, 0)}),
        "bytes instead of",
    ),
    "observations not a number": (lambda: frame(8, seen(3, np.nan)), "observations"),
    "observations infinite": (lambda: frame(8, seen(3, -np.inf)), "observations"),
    "nobody seeks": (lambda: frame(8, seekers=np.array([0, 2, 0], "i1")), "seekers"),
    "minus one seeks": (lambda: frame(8, seekers=np.array([0, 0, -1], "i1")), "seekers"),
    "rewards": (lambda: spoilt("rewards", np.nan), "rewards"),
    "terms": (lambda: spoilt("terms", np.inf), "terms"),
    "distances": (lambda: spoilt("distances", -np.inf), "distances"),
    "last": (lambda: spoilt("last", np.nan), "last"),
    "ends": (lambda: spoilt("ends", 3), "ends"),
    "ends below 0": (lambda: spoilt("ends", -1), "ends"),
    "winners": (lambda: spoilt("winners", 2), "winners"),
    "winners below": (lambda: spoilt("winners", -2), "winners"),
}


def begun() -> FrameCodec:
    frames = FrameCodec(HELLO)
    frames.read(frame(7))
    return frames


def test_a_decision_without_results() -> None:
    seekers = np.array([0, 1, 0], "i1")
    decision = FrameCodec(HELLO).read(frame(7, seekers=seekers))
    assert decision.seq == 7
    assert decision.outcome is None
    np.testing.assert_array_equal(decision.seekers, seekers)
    np.testing.assert_array_equal(decision.observations, seen(3, 7))
    assert decision.observations.dtype == np.float32
    assert decision.observations.flags.aligned


@pytest.mark.parametrize("ended", [[], [0], [0, 2], [0, 1, 2]])
def test_a_decision_with_results(ended: list[int]) -> None:
    brought = results(ended=ended)
    outcome = begun().read(frame(8, brought=brought)).outcome
    assert outcome is not None
    for name, expected in brought.items():
        np.testing.assert_array_equal(getattr(outcome, name), expected)
    assert outcome.last.shape == (len(ended), 2, SIZE)
    assert {array.dtype.str for array in outcome} == {"<f4", "<f8", "<i4", "|i1"}


@pytest.mark.parametrize(("make", "says"), BAD.values(), ids=BAD)
def test_a_bad_frame(make: Callable[[], bytes], says: str) -> None:
    with pytest.raises(BadFrameError, match=says):
        begun().read(make())


def test_results_in_the_first_frame_belong_to_nothing() -> None:
    with pytest.raises(BadFrameError, match="first frame"):
        FrameCodec(HELLO).read(frame(7, brought=results()))


def test_a_frame_without_results_may_come_at_any_time() -> None:
    frames = begun()
    assert frames.read(frame(8)).outcome is None
    assert frames.read(frame(9, brought=results())).outcome is not None


def test_seq_begins_again_after_the_last() -> None:
    frames = FrameCodec(HELLO)
    frames.read(frame(2**32 - 1))
    assert frames.read(frame(0)).seq == 0


def test_large_numbers_are_finite() -> None:
    """Their squares are not."""
    assert begun().read(frame(8, seen(3, 3e38))).seq == 8


def test_the_answer() -> None:
    actions = np.arange(18, dtype=np.float32).reshape(3, 2, 3)
    data = FrameCodec(HELLO).write(0xFFEEDDCC, actions)
    assert data[:8] == b"A\x00\x03\x00\xcc\xdd\xee\xff"
    np.testing.assert_array_equal(np.frombuffer(data, "<f4", offset=8), np.arange(18))


@pytest.mark.parametrize("controlled", [(True, False), (False, True), (False, False)])
def test_zeros_for_whom_the_server_does_not_play(controlled: tuple[bool, bool]) -> None:
    frames = FrameCodec(replace(HELLO, controlled=controlled))
    actions = np.ones((3, 2, 3), dtype=np.float32)
    sent = np.frombuffer(frames.write(0, actions), "<f4", offset=8).reshape(3, 2, 3)
    np.testing.assert_array_equal(sent[:, 0], float(controlled[0]))
    np.testing.assert_array_equal(sent[:, 1], float(controlled[1]))
    assert actions.all()


def test_the_largest_frame() -> None:
    brought = results(ended=[0, 1, 2])
    assert FrameCodec(HELLO).largest == len(frame(8, brought=brought))
