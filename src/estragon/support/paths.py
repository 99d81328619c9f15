"""Where the game's data, private installations and caches live."""

import os
from pathlib import Path

import platformdirs

from estragon.support.errors import UserError

PACKAGE = Path(__file__).resolve().parents[1]


def godot_project() -> Path:
    """The Godot project: `godot/` of a checkout, or the copy inside an installed wheel."""
    for candidate in (PACKAGE.parents[1] / "godot", PACKAGE / "_game"):
        if (candidate / "tag" / "rules.json").is_file():
            return candidate
    raise UserError("the game's data (godot/tag/rules.json) is missing; reinstall estragon")


def checkout() -> Path:
    """The repository this package runs from, for what an installed wheel does not carry."""
    root = PACKAGE.parents[1]
    if not (root / "benchmarks").is_dir():
        raise UserError("this needs a checkout of the repository, not an installed wheel")
    return root


def rules_file() -> Path:
    """The file that holds every number of the tag game."""
    return godot_project() / "tag" / "rules.json"


def layouts_folder() -> Path:
    """The folder of the named arena layouts."""
    return godot_project() / "tag" / "layouts"


def policies_folder() -> Path:
    """The folder of the trained policies that come with the game."""
    return godot_project() / "tag" / "policies"


def home() -> Path:
    """Estragon's own cache folder: `ESTRAGON_HOME`, or the platform's user cache."""
    if chosen := os.environ.get("ESTRAGON_HOME"):
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("estragon", appauthor=False, opinion=False)


def data_root() -> Path:
    """Where logged matches and frames are kept: `AI_DATA_ROOT`, or `data` in this folder."""
    return Path(os.environ.get("AI_DATA_ROOT") or "data").expanduser()


def trajectories_folder(root: Path | None = None) -> Path:
    """The folder of logged matches under a data root."""
    return (data_root() if root is None else root) / "trajectories"
