"""How an option that may be left out looks in a verb's `--help`."""

from typing import Any

import tyro


def optional(metavar: str, name: str | None = None) -> Any:
    """Shown as `--option METAVAR`, without a default that says nothing."""
    return tyro.conf.arg(name=name, metavar=metavar, help_behavior_hint="(optional)")
