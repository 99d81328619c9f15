"""Optional arguments in `--help`, options from environment variables, and range checks."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import tyro

from estragon.support.errors import UserError

T = TypeVar("T")
ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def optional(metavar: str, name: str | None = None) -> Any:
    """Show the option as `--option METAVAR (optional)` instead of with its default None."""
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint="(optional)")


def switched_on(variable: str) -> bool:
    """Whether an environment variable, such as AI_LOG_TRAJECTORIES, is on."""
    value = os.environ.get(variable, "")
    if value.lower() in ON:
        return True
    if value.lower() in OFF:
        return False
    raise UserError(f"{variable}: expected 1 or 0, got '{value}'")


def from_environment(option: T | None, variable: str, usual: T, read: Callable[[str], T]) -> T:
    """The option if given, else the environment variable, else the default `usual`."""
    if option is not None:
        return option
    value = os.environ.get(variable, "")
    try:
        return read(value) if value else usual
    except ValueError:
        kind = "a whole number" if read is int else "a number"
        raise UserError(f"{variable}: expected {kind}, got '{value}'") from None


def check_span(name: str, value: float | None, least: float, most: float | None = None) -> None:
    """Raise a UserError for a number out of range; None is accepted."""
    if value is not None and not least <= value <= (float("inf") if most is None else most):
        span = f"at least {least:.12g}" if most is None else f"{least:.12g} to {most:.12g}"
        raise UserError(f"{name}: expected {span}, got {value}")
