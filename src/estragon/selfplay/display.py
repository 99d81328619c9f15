"""A run as a person watches it: a live screen in a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from estragon.selfplay.ladder import PAIRINGS, Score, Stage
from estragon.selfplay.self_play import Update
from estragon.selfplay.session import Session

PLAIN_EVERY_SEC = 10.0
RECENT = 20
"""Updates that "now" is the mean of."""


class Display:
    """Shows a session on standard error while it runs."""

    def __init__(self, session: Session) -> None:
        """Show this session."""
        self._session = session
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._recent: list[Update] = []
        self._judging = ""
        self._told_at = time.monotonic()

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._console.is_terminal and sys.stderr.isatty():
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Tell one thing."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def updated(self, update: Update, session: Session) -> None:
        """Another update is done."""
        self._recent = [*self._recent[-RECENT + 1 :], update]
        if self._live is not None:
            self._live.update(self._screen())
        elif time.monotonic() - self._told_at > PLAIN_EVERY_SEC:
            self._told_at = time.monotonic()
            self.say(self._line())

    def judging(self, what: str) -> None:
        """A stage is being judged."""
        self._judging = what
        if self._live is not None:
            self._live.update(self._screen())

    def judged(self, stage: Stage, scores: dict[str, Score], session: Session) -> None:
        """A stage was judged."""
        self._judging = ""
        if self._live is not None:
            self._live.update(self._screen())
            return
        self._told_at = time.monotonic()
        shown = ", ".join(
            f"{name.replace('_vs_', ' beats ')} {score.win_rate:.0%}"
            for name, score in scores.items()
        )
        self.say(f"at {stage.name} ({stage.agent_steps / 1e6:.1f} M steps): {shown}")

    def _line(self) -> str:
        session = self._session
        return (
            f"{session.spent}, "
            f"{self._rate():,.0f} agent-steps/s ({session.shape}), "
            f"seeker wins {self._seeker_wins()}, {_clock(session.seconds_left)} left"
        )

    def _screen(self) -> Group:
        session = self._session
        done = min(1.0, session.trainer.progress)
        head = Text.assemble(
            ("training ", "bold"),
            f"{session.task.role} against {session.task.opponent}, seed {session.task.seed}\n",
            f"{session.spent}, {self._rate():,.0f} agent-steps/s ({session.shape})\n",
            f"seeker wins {self._seeker_wins()} of the matches now, "
            f"{_clock(session.seconds)} gone, about {_clock(session.seconds_left)} left",
        )
        bar = ProgressBar(total=1.0, completed=done, width=64)
        note = Text(f"judging: {self._judging}" if self._judging else "", style="dim")
        return Group(head, bar, strength_table(session), note)

    def _rate(self) -> float:
        seconds = sum(update.seconds for update in self._recent)
        if len(self._recent) < 2:
            return self._session.agent_steps_per_s
        steps = self._recent[-1].agent_steps - self._recent[0].agent_steps
        return steps / (seconds - self._recent[0].seconds)

    def _seeker_wins(self) -> str:
        count = sum(update.episodes.count for update in self._recent)
        won = sum(update.episodes.seeker_wins for update in self._recent)
        return f"{won / count:.0%}" if count else "?"


def strength_table(session: Session) -> Table:
    """How strong each stage is: against the bots, and as an Elo rating."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("stage")
    shown = [pair for pair in PAIRINGS if session.task.role in ("both", pair[0])]
    for role, bot in shown:
        table.add_column(f"{role} beats {bot}", justify="right")
    elos = session.ladder.elo() if session.ladder.stages else ([], [])
    for role in ("seeker", "hider"):
        if session.task.role in ("both", role):
            table.add_column(f"{role} Elo", justify="right")
    for number, (stage, scores) in enumerate(
        zip(session.ladder.stages, session.scores, strict=False)
    ):
        cells = [f"{scores[f'{role}_vs_{bot}'].win_rate:.0%}" for role, bot in shown]
        ratings = [
            f"{elo[number]:.0f}"
            for role, elo in zip(("seeker", "hider"), elos, strict=True)
            if session.task.role in ("both", role)
        ]
        table.add_row(stage.name, *cells, *ratings)
    return table


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
