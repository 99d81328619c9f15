"""`estragon live`: Godot plays, Python learns, and you can watch."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from estragon.judge.debug_bundle import collect
from estragon.live.protocol import PORT
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable, locked
from estragon.support.options import check_span, optional
from estragon.support.progress import Progress
from estragon.support.runs import create_unique, timestamps

if TYPE_CHECKING:
    from estragon.selfplay.session import Session


@dataclasses.dataclass(frozen=True)
class LiveCommand:
    """Train in Godot, over a WebSocket: new policies, or ones trained before."""

    mode: Annotated[Literal["seeker", "hider", "self-play"], tyro.conf.Positional] = "self-play"
    """Role in which the first agent starts every episode; self-play changes it every round. Both
    roles learn in every mode."""
    seconds: Annotated[float | None, optional("SECONDS")] = None
    """Length of the run; by default AI_TRAIN_DURATION, else 600, or for self-play all rounds
    together."""
    rounds: Annotated[int | None, optional("N")] = None
    """Number of rounds of self-play; by default SELF_PLAY_ROUNDS, else 4."""
    round_seconds: Annotated[float | None, optional("SECONDS")] = None
    """Length of a round of self-play, if the length of the run is not set; by default
    SELF_PLAY_DURATION, else 180."""
    arenas: int = 16
    """Number of arenas, all in one Godot process."""
    update_rows: int = 8192
    """Agent-steps per update: with fewer, learning starts sooner; with more, it is steadier."""
    watch: bool = False
    """Open a window and play in real time, in one arena."""
    warm_start: Annotated[Path | None, optional("FILE")] = None
    """Policies to start from, for example trainer/policy.pt of make train."""
    resume: bool = False
    """Resume the latest live run, or --run-id, from its last save."""
    run_id: Annotated[str | None, optional("ID")] = None
    """The run to resume; by default the latest."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """As in `estragon train tag`."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek, transfer or hide; by default as in rules.json."""
    rewards: Annotated[str | None, optional("NAME")] = None
    """A reward profile of rules.json: default or classic; by default as in rules.json."""
    seed: int = 0
    """Seed of the spawns and of the training."""
    port: int = PORT
    """Port of the server, which listens on this machine only; 0: any free port."""
    godot: bool = True
    """Start Godot; with --no-godot, start only the server, for a game that you start yourself."""
    output: Path = Path()
    """Output folder for trainer/, charts/ and debug/."""

    def run(self) -> int:
        """Serve, play and learn; collect the logs."""
        from estragon.live.live_session import plan_rounds, train_live
        from estragon.selfplay.console import print_results
        from estragon.show.film import draw_results

        check_span("--arenas", self.arenas, 1)
        if self.run_id is not None and not self.resume:
            raise UserError(f"--run-id {self.run_id}: only together with --resume")
        roles, seconds = plan_rounds(self.mode, self.rounds, self.round_seconds, self.seconds)
        folder = create_unique(self.output / "debug", timestamps())
        try:
            with contextlib.ExitStack() as stack:
                session = self._session(seconds, stack)
                finished = train_live(
                    session,
                    roles,
                    folder,
                    port=self.port,
                    arenas=1 if self.watch else self.arenas,
                    watch=self.watch,
                    start_godot=self.godot,
                )
                if not finished:
                    print(
                        f"stopped after {session.spent}; saved; continue with --resume",
                        file=sys.stderr,
                    )
                    return INTERRUPTED
                with Progress() as progress:
                    session.write_summary(0, progress)
                    charts, _ = draw_results(session.folder, progress, film=False)
                print_results(session, [], charts, None)
                return 0
        finally:
            collect(folder, {}, root=self.output)
            print(f"logs, metrics and policies are in {folder}", file=sys.stderr)

    def _session(self, seconds: float, stack: contextlib.ExitStack) -> "Session":
        from estragon.live.live_session import update_size
        from estragon.live.source import APPROACH, LiveSource, start_live_session
        from estragon.selfplay.checkpoint import TagRun
        from estragon.selfplay.config import LEAGUE, Task
        from estragon.selfplay.session import Session
        from estragon.tag.layout import load_layouts
        from estragon.tag.rules import load_rules

        ensure_writable(self.output / "trainer" / "policy.pt")
        if self.resume:
            folder = TagRun.find(self.output, self.run_id or "latest")
            stack.enter_context(locked(folder.lock, timeout_sec=0.0))
            if folder.path.parent.name != APPROACH:
                raise UserError(f"--resume: {folder.path} is not a live run; give its --run-id")
            return Session.resume(folder, LiveSource)
        rules = load_rules(rules=self.rules, rewards=self.rewards)
        layouts = load_layouts(self.layout or rules.layout, rules)
        session = start_live_session(
            self.output,
            Task(rules, layouts, self.seed, "both", LEAGUE),
            update_size(self.update_rows),
            max(1, round(seconds)),
            self.warm_start,
        )
        stack.enter_context(locked(session.folder.lock, timeout_sec=0.0))
        session.write_metadata({"mode": self.mode, "layout": self.layout})
        session.folder.mark_latest()
        return session
