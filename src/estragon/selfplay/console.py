"""What a person sees of a run: a live screen in a terminal or lines elsewhere, then the results."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self, cast

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from estragon.selfplay.evaluation import PAIRINGS, PANEL, BestResponse, Score, Stage
from estragon.selfplay.league import USUAL_BOTS
from estragon.selfplay.session import Session
from estragon.selfplay.trainer import Update
from estragon.tag.matches import wilson_interval
from estragon.tag.rules import ROLES, Role

PLAIN_EVERY_SEC = 10.0
RECENT = 20
"""Updates that the numbers shown are means of."""


class Display:
    """Shows a session on standard error while it runs."""

    def __init__(self, session: Session) -> None:
        """Show this session."""
        self._session = session
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._recent: list[Update] = []
        self._evaluating = ""
        self._printed_at = time.monotonic()

    def __enter__(self) -> Self:
        """Start the live screen."""
        if self._console.is_terminal and sys.stderr.isatty():
            self._live = Live(console=self._console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the live screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def on_update(self, update: Update) -> None:
        """Show the numbers of an update."""
        self._recent = [*self._recent[-RECENT + 1 :], update]
        if self._live is not None:
            self._live.update(self._screen())
        elif time.monotonic() - self._printed_at > PLAIN_EVERY_SEC:
            self._printed_at = time.monotonic()
            self.say(self._line())

    def on_evaluation(self, what: str) -> None:
        """Show what is being evaluated."""
        self._evaluating = what
        if self._live is not None:
            self._live.update(self._screen())

    def on_stage(self, stage: Stage, scores: dict[str, Score]) -> None:
        """Show the scores of a stage."""
        self._evaluating = ""
        if self._live is not None:
            self._live.update(self._screen())
            return
        self._printed_at = time.monotonic()
        shown = ", ".join(
            f"{name.replace('_vs_', ' beats ')} {score.win_rate:.0%}"
            for name, score in scores.items()
        )
        self.say(f"at {stage.name} ({stage.agent_steps / 1e6:.1f} M steps): {shown}")

    def _line(self) -> str:
        session = self._session
        return (
            f"{session.spent}, "
            f"{self._rate():,.0f} agent-steps/s ({session.source.shape}), "
            f"seeker wins {self._seeker_wins()}, {_clock(session.seconds_left)} left"
        )

    def _screen(self) -> Group:
        session = self._session
        done = min(1.0, session.trainer.progress)
        head = Text.assemble(
            ("training ", "bold"),
            f"{session.task.role} against {session.task.opponent}, seed {session.task.seed}\n",
            f"{session.spent}, {self._rate():,.0f} agent-steps/s ({session.source.shape})\n",
            f"seeker wins {self._seeker_wins()} of the matches now, "
            f"{_clock(session.seconds)} gone, about {_clock(session.seconds_left)} left",
        )
        bar = ProgressBar(total=1.0, completed=done, width=64)
        note = Text(f"evaluating: {self._evaluating}" if self._evaluating else "", style="dim")
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
    played = session.scores[-1] if session.scores else {}
    shown = [
        (role, opponent)
        for role, opponent in (*PAIRINGS, *((role, PANEL) for role in ROLES))
        if opponent != "random" and f"{role}_vs_{opponent}" in played
    ]
    for role, opponent in shown:
        table.add_column(f"{role} beats {opponent}", justify="right")
    elos = session.evaluator.elo() if session.evaluator.stages else ([], [])
    for role in ("seeker", "hider"):
        if session.task.role in ("both", role):
            table.add_column(f"{role} Elo", justify="right")
    for number, (stage, scores) in enumerate(
        zip(session.evaluator.stages, session.scores, strict=False)
    ):
        cells = [f"{scores[f'{role}_vs_{opponent}'].win_rate:.0%}" for role, opponent in shown]
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


def print_results(
    session: Session, responses: Sequence[BestResponse], charts: Sequence[Path], film: Path | None
) -> None:
    """One screen: how strong the policies are, what to look at, what to do next."""
    console = Console(highlight=False)
    console.print(
        f"\nTrained {session.trainer.agent_steps:,} agent-steps in {session.seconds:.0f} s: "
        f"{session.agent_steps_per_s:,.0f} per second ({session.source.shape})\n"
    )
    console.print(strength_table(session))
    console.print()
    stages = session.evaluator.stages
    kept = {role: stages.index(stage) for role, stage in session.kept_stages().items()}
    for name in session.scores[-1]:
        role, opponent = name.split("_vs_")
        score = session.scores[kept.get(cast("Role", role), -1)][name]
        low, high = wilson_interval(score.win_rate, score.matches)
        drawn = score.sampled_win_rate
        console.print(
            f"  {role:<6} beats {opponent:<7} {score.win_rate:6.1%}   (95% interval {low:.0%} to "
            f"{high:.0%})" + ("" if drawn is None else f", sampled {drawn:.1%}")
        )
    if cross_play := session.evaluator.cross_play():
        rate, sampled = cross_play["seeker_win_rate"], cross_play["sampled_seeker_win_rate"]
        one, two = (kept.get(role, -1) for role in ROLES)
        console.print(
            f"  trained against trained: the seeker wins {rate[one][two]:.1%}"
            + (f", sampled {sampled[one][two]:.1%}" if sampled else "")
        )
    for role, number in kept.items():
        if stages[number] is not stages[-1]:
            console.print(
                f"  policy_{role} is the one of {stages[number].name}: it beats the later stages "
                "more often than the last one"
            )
    for response in responses:
        console.print(f"  {response.describe()}")
    run = session.folder
    console.print("\nLook at")
    if film:
        console.print(f"  {film}")
    console.print(f"  {charts[0].parent if charts else run.path}/*.png")
    console.print(f"  tensorboard --logdir {run.tensorboard}")
    console.print("\nThen")
    for role, opponent in USUAL_BOTS.items():
        file = run.policy(f"policy_{role}").with_suffix(".npz")
        if file.is_file() and session.task.role in ("both", role):
            players = {"seeker": opponent, "hider": opponent} | {role: file}
            console.print(
                f"  estragon eval tag --seeker {players['seeker']} --hider {players['hider']} "
                f"--rules {session.task.rules.rules}",
                soft_wrap=True,
            )
    if film:
        console.print(f"  estragon film --run {run.path}", soft_wrap=True)
