"""Where Godot keeps its own settings, logs and `user://`: it crashes where it cannot."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from estragon import paths

DEFAULTS = {
    "XDG_DATA_HOME": ".local/share",
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
}


def usable_user_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The environment as it is where Godot can write its files, else with folders of ours."""
    if sys.platform in ("win32", "darwin"):
        return dict(env)
    home = Path(env.get("HOME") or "/")
    chosen = [Path(env.get(name) or home / default) for name, default in DEFAULTS.items()]
    usable = all(_can_make(folder / "godot") for folder in chosen)
    return dict(env) if usable else private_user_folders(env)


def private_user_folders(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with folders that are not the user's."""
    folder = paths.home() / "user"
    return {**env, **{name: str(folder / name.split("_")[1].lower()) for name in DEFAULTS}}


def _can_make(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
