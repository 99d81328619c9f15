"""The same bits whatever the threads or the batch, and after saving and restoring."""

import io
from typing import Any

import numpy as np
import pytest

from estragon.support.errors import UserError
from estragon.tag.arenas import Arenas

LAYOUT = "playground,random:0-7"
STEPS = 260
"""Long enough that every arena ends an episode or two."""


def play(arenas: Arenas, steps: int, offset: int = 0, first: int = 0) -> list[np.ndarray]:
    """Play actions that depend on the arena's number only; everything that came out."""
    seen = []
    for step in range(offset, offset + steps):
        random = np.random.default_rng(step)
        actions = random.uniform(-1, 1, (768, 2, 3)).astype(np.float32)
        results = arenas.step(actions[first : first + arenas.count])
        seen.append(
            np.concatenate(
                [
                    results.observations.reshape(arenas.count, -1),
                    results.rewards,
                    results.terms.reshape(arenas.count, -1),
                    results.ends[:, None],
                    results.winners[:, None],
                ],
                axis=1,
            )
        )
    return seen


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def whole() -> list[np.ndarray]:
    """What 768 arenas do on one thread; on three, each has as few as a thread may have."""
    arenas = Arenas(768, layout=LAYOUT, seed=4, threads=1)
    arenas.reset()
    return play(arenas, STEPS)


@pytest.mark.parametrize("threads", [2, 3])
def test_more_threads(threads: int, whole: list[np.ndarray]) -> None:
    arenas = Arenas(768, layout=LAYOUT, seed=4, threads=threads)
    arenas.reset()
    assert same(whole, play(arenas, STEPS))
    assert (np.array([step[:, -2] for step in whole]) > 0).any(axis=0).all()


@pytest.mark.parametrize("first", [0, 64, 704])
def test_smaller_batches(first: int, whole: list[np.ndarray]) -> None:
    small = Arenas(64, layout=LAYOUT, seed=4, first_arena=first)
    small.reset()
    part = play(small, STEPS, first=first)
    assert same(part, [step[first : first + 64] for step in whole])


def test_save_and_restore_in_the_middle_of_an_episode() -> None:
    arenas = Arenas(128, layout=LAYOUT, seed=4)
    arenas.reset()
    play(arenas, 77)
    stream = io.BytesIO()
    saved: dict[str, Any] = arenas.save()
    np.savez(stream, **saved)
    before = arenas.observations.copy()
    went_on = play(arenas, 150, offset=77)

    stream.seek(0)
    other = Arenas(128, layout=LAYOUT, seed=999)
    assert other.restore(dict(np.load(stream))).tobytes() == before.tobytes()
    assert same(went_on, play(other, 150, offset=77))
    assert other.save()["agents"].tobytes() == arenas.save()["agents"].tobytes()


def test_a_save_of_another_size_is_refused() -> None:
    saved = Arenas(8).save()
    with pytest.raises(UserError, match="another number of arenas"):
        Arenas(9).restore(saved)


def test_a_save_of_other_layouts_or_a_damaged_one_is_refused() -> None:
    arenas = Arenas(8, layout="random:0-7")
    arenas.reset()
    saved = arenas.save()
    other = Arenas(8, layout="playground")
    before = other.reset().copy()
    with pytest.raises(UserError, match="other layouts"):
        other.restore(saved)
    saved["arenas"][...] = 255
    with pytest.raises(UserError, match=r"other layouts|damaged"):
        arenas.restore(saved)
    assert np.array_equal(other.observations, before)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"first_seeker": 2}, "first_seeker"),
        ({"first_arena": -1}, "first_arena"),
        ({"layout": []}, "at least one"),
        ({"seed": 2**32}, "seed"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        Arenas(4, **options)


def test_another_seed_is_another_match() -> None:
    one, other = Arenas(64, seed=1), Arenas(64, seed=2)
    assert not np.array_equal(one.reset(), other.reset())
    assert np.array_equal(one.reset(2), other.observations)
    assert not np.array_equal(one.next_episode(), other.observations)
