"""Sine and cosine from + − × ÷ alone, so that every language computes the same bits."""

TERMS = 13
PI = 3.14159265358979
"""To 15 digits: every decimal reader turns these into the same double."""


def radians(degrees: float) -> float:
    """Degrees to radians."""
    return degrees * PI / 180.0


def sine(x: float) -> float:
    """Taylor series of sin x in Horner's form, for |x| up to 180°."""
    square = x * x
    value = 1.0
    for term in range(TERMS, 0, -1):
        value = 1.0 - square / ((2.0 * term) * (2.0 * term + 1.0)) * value
    return x * value


def cosine(x: float) -> float:
    """Taylor series of cos x in Horner's form, for |x| up to 180°."""
    square = x * x
    value = 1.0
    for term in range(TERMS, 0, -1):
        value = 1.0 - square / ((2.0 * term - 1.0) * (2.0 * term)) * value
    return value
