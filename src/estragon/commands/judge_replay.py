"""`estragon judge replay`: play the trace of a bug again."""

import dataclasses
import tempfile
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from estragon.judge.hunt.traces import Trace, open_trace, replay
from estragon.judge.hunt.words import steps, title
from estragon.support.errors import CHECK_FAILED, OK, UserError
from estragon.support.files import ensure_writable
from estragon.support.options import check_span, optional
from estragon.support.progress import counting

FPS = 60


@dataclasses.dataclass(frozen=True)
class JudgeReplayCommand:
    """Play the actions of a trace again, and say whether the same bug shows.

    Exit code: 0 it does, 1 it does not (any more), 2 bad input.
    """

    trace: Positional[Path]
    """A trace of `estragon judge hunt`."""
    game: Annotated[Path | None, optional("PATH")] = None
    """The game; by default the folder or file of the trace's game, here."""
    window: bool = False
    """Show the game in a window, in real time."""
    film: Annotated[Path | None, optional("FILE.mp4")] = None
    """Make a film of it."""
    times: int = 1
    """Play it so many times, each in a new process; all must show the bug."""

    def run(self) -> int:
        """Play it."""
        check_span("--times", self.times, 1, 1000)
        trace = Trace.read(self.trace)
        game = self.game or Path(trace.game)
        if not game.exists():
            raise UserError(f"{game} does not exist; --game says where the game is")
        if self.film is not None:
            ensure_writable(self.film)
        print(title(trace))
        for number, text in enumerate(steps(trace), 1):
            print(f"  {number}. {text}")
        shown = sum(self._shows(trace, game) for _ in range(self.times))
        print(f"{'reproduced' if shown == self.times else 'not reproduced'}, {shown}/{self.times}")
        return OK if shown == self.times else CHECK_FAILED

    def _shows(self, trace: Trace, game: Path) -> bool:
        with tempfile.TemporaryDirectory(prefix="estragon-") as folder:
            options: dict[str, object] = {"show_window": self.window}
            if self.film is not None:
                movie = ("--write-movie", str(Path(folder) / "f.png"), "--fixed-fps", str(FPS))
                options = {"show_window": True, "engine_options": movie}
            with open_trace(trace, game, **options) as opened:
                outcome = replay(trace, opened)
            if self.film is not None:
                from estragon.show.frames import encode_frames

                frames = sorted(Path(folder).glob("f*.png"))
                with counting("encoding", " frames") as on_progress:
                    encode_frames(frames, self.film, FPS, on_progress)
                print(f"wrote {self.film}")
        for signature, text in outcome.others.items():
            print(f"also seen: {signature} ({text})")
        if outcome.finding is not None:
            print(f"{outcome.finding.signature}: {outcome.finding.text}")
        return outcome.finding is not None
