"""The reference's arithmetic and chance, written from docs/physics.md alone."""

import struct

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
WORD = 0xFFFFFFFF
TINY = 1 / 1000000000
SINGLE = struct.Struct("<f")


def sine(x: float) -> float:
    """The sine of an angle in radians, by the page's loop."""
    q = x * x
    v = 1.0
    for n in range(13, 0, -1):
        v = 1 - q / ((2 * n) * (2 * n + 1)) * v
    return x * v


def cosine(x: float) -> float:
    """The cosine of an angle in radians, by the page's loop."""
    q = x * x
    v = 1.0
    for n in range(13, 0, -1):
        v = 1 - q / ((2 * n - 1) * (2 * n)) * v
    return v


def radians(degrees: float) -> float:
    """Degrees to radians, with the page's fifteen digits of pi."""
    return degrees * 3.14159265358979 / 180


def rounded(x: float) -> int:
    """The nearest whole number."""
    return int(x + 0.5)


def lesser(a: float, b: float) -> float:
    """The page's min: a if a < b, else b."""
    return min(b, a)


def greater(a: float, b: float) -> float:
    """The page's max: a if a > b, else b."""
    return max(b, a)


def single(x: float) -> float:
    """The nearest 32-bit float."""
    value: float = SINGLE.unpack(SINGLE.pack(x))[0]
    return value


def singles(numbers: list[float]) -> list[float]:
    """Every number's nearest 32-bit float."""
    form = f"<{len(numbers)}f"
    return list(struct.unpack(form, struct.pack(form, *numbers)))


def away_from_zero(component: float) -> float:
    """A direction's component that can be divided by."""
    return TINY if abs(component) < TINY else component


def threefry(key0: int, key1: int, counter0: int, counter1: int) -> tuple[int, int]:
    """Threefry-2x32 with 20 rounds."""
    k = (key0, key1, 0x1BD11BDA ^ key0 ^ key1)
    a = (counter0 + k[0]) & WORD
    b = (counter1 + k[1]) & WORD
    for block in range(5):
        for r in ROTATIONS[block % 2]:
            a = (a + b) & WORD
            b = ((b << r | b >> (32 - r)) & WORD) ^ a
        a = (a + k[(block + 1) % 3]) & WORD
        b = (b + k[(block + 2) % 3] + block + 1) & WORD
    return a, b
