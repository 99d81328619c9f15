"""`estragon migrate-user-data`."""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.godot import user_data
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.options import optional


@dataclasses.dataclass(frozen=True)
class MigrateUserDataCommand:
    """Copy matches, frames and logs from Godot's user folders into data/_imported.

    Nothing is moved, overwritten or copied twice.
    """

    source: Annotated[Path | None, optional("DIR", "from")] = None
    """A game's user folder; by default all of this user's that contain matches or frames."""

    def run(self) -> None:
        """Copy, and print the counts."""
        if self.source is not None and not self.source.is_dir():
            raise UserError(f"--from {self.source}: no such folder")
        games = user_data.played_folders() if self.source is None else [self.source]
        if not any(True for game in games for _ in user_data.files_to_copy(game)):
            searched = user_data.app_userdata_roots() if self.source is None else games
            print(f"nothing to import from {', '.join(map(str, searched))}")
            return
        for game in games:
            target = paths.data_root() / "_imported" / game.absolute().name
            copied, existing = user_data.copy_user_data(game, target)
            counts = ", ".join(f"{copied[kind]} {kind}" for kind in user_data.KINDS)
            already = f"; {existing.total()} files existed already" if existing else ""
            print(f"copied {counts} from {game} into {target}{already}")
