"""`estragon eval tag`: how often does this seeker catch that hider?"""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from estragon.support import paths
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import check_span, optional, switched_on
from estragon.support.progress import counting

if TYPE_CHECKING:
    from estragon.show.trajectory_log import TrajectoryLog

LOG_AT_MOST = 100
"""Matches logged unless more are asked for: up to 0.4 MB each."""


@dataclasses.dataclass(frozen=True)
class EvalTagCommand:
    """Play matches of tag between two players and report how often the seeker wins."""

    seeker: str
    """A policy file (.npz or .pt), or bot:random, bot:chaser, bot:evader."""
    hider: str
    """The same for the hider."""
    engine: Literal["embedded", "godot"] = "embedded"
    """Where to play the matches; both engines give the same result."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, random:SEED, random:FIRST-LAST, or several separated by
    commas; by default as in rules.json."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek (a tag ends the match), transfer (a tag swaps the roles) or hide (the seeker starts
    with closed eyes); by default as in rules.json."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """A rules file to use instead of the game's own."""
    seed: int = 0
    """Seed of spawns and layouts; the same seed plays the same matches."""
    episodes: int = 1000
    """Number of matches."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Also write the result to this file."""
    log_trajectories: bool = dataclasses.field(
        default_factory=lambda: switched_on("AI_LOG_TRAJECTORIES")
    )
    """Write a log of every match: where each agent was and what it saw. Same as
    AI_LOG_TRAJECTORIES=1."""
    data_root: Path = dataclasses.field(default_factory=paths.data_root)
    """Logs are written to trajectories in this folder; by default AI_DATA_ROOT, or else data."""
    log_at_most: int = LOG_AT_MOST
    """Log only this many matches, the first ones."""

    def run(self) -> None:
        """Play, print, and write."""
        from estragon.tag.matches import evaluate
        from estragon.tag.rules import load_rules

        check_span("--episodes", self.episodes, 1, 10_000_000)
        if self.json_file is not None:
            ensure_writable(self.json_file)
        log = self._log() if self.log_trajectories else None
        with counting("playing", " matches") as report:
            result = evaluate(
                self.seeker,
                self.hider,
                rules=load_rules(self.rules_file, rules=self.rules),
                engine=self.engine,
                layout=self.layout,
                seed=self.seed,
                episodes=self.episodes,
                tell=lambda played: report(played, self.episodes),
                watcher=log,
            )
        low, high = result["ci95"]
        print(
            f"{self.seeker} tags {self.hider} in {result['seeker_win_rate']:.1%} of "
            f"{self.episodes} matches (95% interval {low:.1%} to {high:.1%}); "
            f"a match lasts {result['mean_seconds']:.2f} s on average, "
            f"the hider is out of sight for {result['out_of_sight']:.0%} of the search "
            f"[{result['layout']}, {result['rules']}, seed {self.seed}]"
        )
        if self.json_file is not None:
            write_json(self.json_file, result)
            print(f"wrote {self.json_file}")
        if log is not None:
            print(f"wrote {len(log.written)} trajectories to {log.written[0].parent}")

    def _log(self) -> "TrajectoryLog":
        from estragon.show.trajectory_log import TrajectoryLog

        check_span("--log-at-most", self.log_at_most, 1)
        folder = paths.trajectories_folder(self.data_root)
        ensure_writable(folder / "ep.jsonl")
        if self.episodes > self.log_at_most:
            print(
                f"logging the first {self.log_at_most} of {self.episodes} matches (--log-at-most)",
                file=sys.stderr,
            )
        return TrajectoryLog(
            folder,
            engine=self.engine,
            players={"seeker": self.seeker, "hider": self.hider},
            most=self.log_at_most,
        )
