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
        actions = random.uniform(-1, 1, (2048, 2, 3)).astype(np.float32)
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


def test_one_thread_and_two_threads() -> None:
    runs = []
    for threads in (1, 2, 3):
        arenas = Arenas(1024, layout=LAYOUT, seed=4, threads=threads)
        arenas.reset()
        runs.append(play(arenas, STEPS))
    assert same(runs[0], runs[1])
    assert same(runs[0], runs[2])
    assert (np.array([step[:, -2] for step in runs[0]]) > 0).any(axis=0).all()


def test_batches_of_64_and_1024() -> None:
    large = Arenas(1024, layout=LAYOUT, seed=4)
    large.reset()
    whole = play(large, STEPS)
    for first in (0, 64, 960):
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
    went_on = play(arenas, 200, offset=77)

    stream.seek(0)
    other = Arenas(128, layout=LAYOUT, seed=999)
    assert other.restore(dict(np.load(stream))).tobytes() == before.tobytes()
    assert same(went_on, play(other, 200, offset=77))
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
