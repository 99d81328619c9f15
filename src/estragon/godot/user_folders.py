"""Where Godot keeps its own settings, logs and `user://`: it crashes where it cannot."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from estragon.support import paths

DEFAULTS = {
    "XDG_DATA_HOME": ".local/share",
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
}
OWN_PROJECT = "Estragon"
FLATPAK = Path(".var", "app", "org.godotengine.Godot", "data")


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


def app_userdata_roots(env: Mapping[str, str]) -> list[Path]:
    """Where Godot keeps `user://` of every project, a folder each."""
    home = Path.home()
    if sys.platform == "win32":
        data = [Path(env.get("APPDATA") or home / "AppData" / "Roaming") / "Godot"]
    elif sys.platform == "darwin":
        data = [home / "Library" / "Application Support" / "Godot"]
    else:
        private = Path(private_user_folders(env)["XDG_DATA_HOME"])
        shared = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share")
        data = [folder / "godot" for folder in (shared, home / FLATPAK, private)]
    return [folder / "app_userdata" for folder in data]


def project_folders(env: Mapping[str, str]) -> list[Path]:
    """`user://` of every project that has one."""
    return [game for root in app_userdata_roots(env) for game in sorted(_folders_in(root))]


def own_folders(env: Mapping[str, str]) -> list[Path]:
    """`user://` of the tag game; several when Godot was installed in several ways."""
    return [game for game in project_folders(env) if game.name == OWN_PROJECT]


def _folders_in(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _can_make(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)
