"""Random numbers that depend only on what they are for: Threefry-2x32, 20 rounds.

A draw is a function of (seed, arena, episode, purpose, index), so no result depends on the number
of threads, the batch an arena sits in, or the order of calls. Only 32-bit additions, rotations and
exclusive-ors, so that GDScript computes the same bits.
"""

from estragon.tag.compile import kernel

MASK = 0xFFFFFFFF
PARITY = 0x1BD11BDA
PURPOSE_SHIFT = 24

SPAWN, FACING, LAYOUT, BOXES, ACTION = 1, 2, 3, 4, 5
"""Purposes: each has 2^24 draws of its own in an episode."""


@kernel
def _mix(first: int, second: int, rotation: int) -> tuple[int, int]:
    first = (first + second) & MASK
    second = ((second << rotation) | (second >> (32 - rotation))) & MASK
    return first, second ^ first


@kernel
def threefry(key_0: int, key_1: int, first: int, second: int) -> tuple[int, int]:
    """Two random 32-bit words for a 64-bit key and a 64-bit counter, each as two words."""
    key_2 = PARITY ^ key_0 ^ key_1
    first = (first + key_0) & MASK
    second = (second + key_1) & MASK
    for block in range(5):
        if block % 2 == 0:
            first, second = _mix(first, second, 13)
            first, second = _mix(first, second, 15)
            first, second = _mix(first, second, 26)
            first, second = _mix(first, second, 6)
        else:
            first, second = _mix(first, second, 17)
            first, second = _mix(first, second, 29)
            first, second = _mix(first, second, 16)
            first, second = _mix(first, second, 24)
        key_0, key_1, key_2 = key_1, key_2, key_0
        first = (first + key_0) & MASK
        second = (second + key_1 + block + 1) & MASK
    return first, second


@kernel
def uniform_pair(
    seed: int, arena: int, episode: int, purpose: int, index: int
) -> tuple[float, float]:
    """Two numbers in [0, 1)."""
    first, second = threefry(seed, arena, episode, (purpose << PURPOSE_SHIFT) | index)
    return first / 4294967296.0, second / 4294967296.0
