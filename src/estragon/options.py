"""How an option that may be left out looks in a verb's `--help`, and options by environment."""

import os
from typing import Any

import tyro

from estragon.errors import UserError

ON, OFF = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def optional(metavar: str, name: str | None = None) -> Any:
    """Shown as `--option METAVAR`, without a default that says nothing."""
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint="(optional)")


def switched_on(variable: str) -> bool:
    """Whether an environment variable, such as AI_LOG_TRAJECTORIES, switches something on."""
    value = os.environ.get(variable, "")
    if value.lower() in ON:
        return True
    if value.lower() in OFF:
        return False
    raise UserError(f"{variable}: expected 1 or 0, got '{value}'")
