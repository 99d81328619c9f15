"""`estragon judge hunt`: play any game until it breaks."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from estragon.support.errors import CHECK_FAILED, OK, UserError
from estragon.support.files import ensure_writable, locked, write_whole
from estragon.support.interrupts import deferred_interrupts
from estragon.support.options import check_span, optional
from estragon.support.progress import Progress


@dataclasses.dataclass(frozen=True)
class JudgeHuntCommand:
    """Play a game with several explorers until it breaks, and write a short trace of every bug.

    Crashes, hangs, script errors, NaN, bodies out of the level, and more are found without writing
    anything. A bug is reported once its trace showed it again in a new process. The same --output
    folder resumes a hunt. Exit code: 0 no bug, 1 bugs, 2 bad input.
    """

    game: Positional[Path]
    """A project folder, a .pck or an exported game. A project without a Sync node is played by its
    InputMap and its buttons."""
    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play; by default the main scene."""
    minutes: float = 10.0
    """How long to hunt."""
    games: Annotated[int | None, optional("N")] = None
    """Number of games side by side; by default one per core."""
    output: Path = Path("hunt")
    """Folder for traces, bug reports, the map of what was visited, and the state to resume from."""
    json: Annotated[Path | None, optional("FILE")] = None
    """Also write the result to this file; `bugs` has oracle, place, trace, first_seen."""
    report: tuple[Path, ...] = ()
    """Also write reports: .md, .html or .xml (JUnit)."""
    summary: Annotated[Path | None, optional("FILE")] = None
    """Also write a Markdown report to a file of any name, for the page of a CI run."""
    explorers: tuple[str, ...] = (
        *("random", "sticky", "sweep", "novelty", "goexplore", "seek", "repeat"),
    )
    """The explorers to use."""
    model: Annotated[Path | None, optional("FILE")] = None
    """A trained policy that explores, too, with noise: .onnx, or a model of `train sb3`."""
    log_pattern: tuple[str, ...] = ()
    """A line of the log that matches one of these regular expressions is a bug."""
    expect: tuple[str, ...] = ()
    """Must always hold: a comparison of values of the game's info, such as "score >= 0", or of
    properties, such as "{Main/Player:position:y} > -5"."""
    warnings: bool = False
    """Warnings of the game's scripts are bugs, too."""
    action_repeat: Annotated[int | None, optional("TICKS")] = None
    """Physics ticks per action; by default the setting of the game's Sync node, or 8."""
    argument: tuple[str, ...] = ()
    """Further arguments of the game, each KEY=VALUE."""
    seed: int = 1
    """Seed of the games and explorers."""
    hang_sec: float = 10.0
    """A step that takes longer is a hang."""

    def run(self) -> int:
        """Hunt, and report."""
        from estragon.envs.launch import Launch
        from estragon.judge.hunt.explorers import EXPLORERS
        from estragon.judge.hunt.hunt import Hunt
        from estragon.judge.hunt.report import check_name, make_report, write_reports
        from estragon.judge.hunt.state import HuntSettings
        from estragon.judge.hunt.user_oracles import UserOracles
        from estragon.judge.report import to_markdown

        check_span("--minutes", self.minutes, 0.01, 100_000)
        check_span("--games", self.games, 1, 256)
        check_span("--action-repeat", self.action_repeat, 1, 1000)
        check_span("--seed", self.seed, 0, 2**31 - 1)
        check_span("--hang-sec", self.hang_sec, 0.1, 3600)
        for name in self.explorers:
            if name not in EXPLORERS:
                raise UserError(f"--explorers: expected {', '.join(EXPLORERS)}, got '{name}'")
        if not self.explorers and self.model is None:
            raise UserError("--explorers: expected at least one")
        if not self.game.exists():
            raise UserError(f"{self.game} does not exist: expected a project folder or a game")
        if self.model is not None and not self.model.is_file():
            raise UserError(f"--model {self.model} does not exist")
        scene = self.scene
        if scene is not None and not scene.startswith(("res://", "uid://")):
            scene = f"res://{scene}"
        arguments: dict[str, str] = {}
        for each in self.argument:
            key, equals, value = each.partition("=")
            if not equals or not key:
                raise UserError(f"--argument: expected KEY=VALUE, got '{each}'")
            arguments[key.removeprefix("--")] = value
        outputs = (*self.report, *([self.json] if self.json else []))
        for path in self.report:
            check_name(path)
        for path in (
            *outputs,
            *([self.summary] if self.summary else []),
            self.output / "hunt.json",
        ):
            ensure_writable(path)
        settings = HuntSettings(
            launch=Launch(
                env_path=self.game,
                scene=scene,
                seed=self.seed,
                action_repeat=self.action_repeat,
                arguments=arguments,
                step_timeout_sec=self.hang_sec,
            ),
            output=self.output,
            minutes=self.minutes,
            games=self.games or os.cpu_count() or 1,
            explorers=self.explorers,
            model=self.model,
            user=UserOracles(self.log_pattern, self.expect, self.warnings),
        )
        with (
            locked(self.output / ".lock", timeout_sec=0.0),
            Progress() as progress,
            deferred_interrupts(progress.say) as stop,
        ):
            progress.step("hunting", announced=False)
            state = Hunt(settings, progress, stop).run()
        write_reports(state, self.output, (self.output / "report.md", *outputs))
        report = make_report(state, [])
        if self.summary is not None:
            write_whole(self.summary, to_markdown(report).encode())
        for row in report.tables[0].rows:
            print("  ".join(row[:3]))
        print(f"{report.verdict}; {'; '.join(report.notes)}; see {self.output / 'report.md'}")
        return CHECK_FAILED if state.bugs else OK
