"""`estragon eval tag`: matches between two players, and a log of them for whoever asks."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable
from estragon.support.options import switched_on
from estragon.tag.evaluate import EvalTag

if TYPE_CHECKING:
    from estragon.show.trajectories.log import TrajectoryLog

AT_MOST = 100
"""Matches logged unless more are asked for: up to 0.4 MB each."""


@dataclasses.dataclass(frozen=True)
class Log:
    """What is kept of the matches, besides the result."""

    log_trajectories: bool = dataclasses.field(
        default_factory=lambda: switched_on("AI_LOG_TRAJECTORIES")
    )
    """Write a file for every match: where everybody was and what they saw. Also by
    AI_LOG_TRAJECTORIES=1."""
    data_root: Path = dataclasses.field(default_factory=paths.data_root)
    """They go into its folder trajectories; AI_DATA_ROOT, or else data, if not given."""
    log_at_most: int = AT_MOST
    """Log no more matches than this, the first ones."""

    def watcher(self, matches: EvalTag) -> "TrajectoryLog | None":
        """Whoever writes the log, if one is wanted."""
        if not self.log_trajectories:
            return None
        if self.log_at_most < 1:
            raise UserError(f"--log-at-most: expected 1 or more, got {self.log_at_most}")
        folder = paths.trajectories_folder(self.data_root)
        ensure_writable(folder / "ep.jsonl")
        if matches.episodes > self.log_at_most:
            print(
                f"logging the first {self.log_at_most} of {matches.episodes} matches "
                "(--log-at-most)",
                file=sys.stderr,
            )
        from estragon.show.trajectories.log import TrajectoryLog

        return TrajectoryLog(
            folder,
            engine=matches.engine,
            players={"seeker": matches.seeker, "hider": matches.hider},
            most=self.log_at_most,
        )


@dataclasses.dataclass(frozen=True)
class PlayMatches:
    """Play matches of tag between two players and report how often the seeker wins."""

    matches: tyro.conf.OmitArgPrefixes[EvalTag]
    log: tyro.conf.OmitArgPrefixes[Log] = dataclasses.field(default_factory=Log)

    def run(self) -> None:
        """Play, report, and say what was logged."""
        watcher = self.log.watcher(self.matches)
        self.matches.run(watcher)
        if watcher is not None:
            print(f"wrote {len(watcher.written)} trajectories to {watcher.written[0].parent}")
