"""`estragon train tag`: train a seeker and a hider; write policies, charts and a film."""

import contextlib
import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from estragon.selfplay.config import PPOConfig
from estragon.support.errors import INTERRUPTED, UserError
from estragon.support.files import ensure_writable, locked
from estragon.support.interrupts import deferred_interrupts
from estragon.support.options import check_span, optional
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from estragon.selfplay.config import Task
    from estragon.selfplay.session import Session
    from estragon.tag.rules import Rules

STEPS = 30_000_000
PROBE_STEPS = 3_000_000


@dataclasses.dataclass(frozen=True)
class TrainTagCommand:
    """Train a seeker and a hider by self-play on the embedded engine."""

    steps: int = STEPS
    """Budget in agent-steps, both roles together."""
    role: Literal["seeker", "hider", "both"] = "both"
    """The roles that learn."""
    opponent: Annotated[str | None, optional("WHO")] = None
    """league (past selves and bots; only with --role both), bot:NAME, or a policy file; by default
    league with --role both, otherwise a bot."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek (a tag ends the match), transfer (a tag swaps the roles) or hide (the seeker starts
    with closed eyes); by default as in rules.json."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """A rules file to use instead of the game's own."""
    rewards: Annotated[str | None, optional("NAME")] = None
    """The reward profile; by default as in rules.json."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, random:SEED, random:FIRST-LAST, or several separated by
    commas, one of which is drawn for every episode; by default as in rules.json."""
    parameters: Annotated[Path | None, optional("FILE")] = None
    """A parameter file (YAML or JSON): rule numbers and layouts that are drawn for every episode,
    and lessons; policies are evaluated with the usual rules."""
    seed: int = 0
    """Random seed; the same seed gives the same run."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where updates are computed; auto is the CPU, which is faster for networks this small."""
    resume: bool = False
    """Resume the latest run, or --run-id, with the same result as without the interruption. All
    other options except --output, --film and --probe-steps are ignored."""
    run_id: Annotated[str | None, optional("ID")] = None
    """The run to resume; by default the latest."""
    output: Path = Path()
    """Output folder for trainer/, charts/ and the film."""
    film: bool = True
    """Make a quick top-down film: one match for each of five stages of the training."""
    probe_steps: int = PROBE_STEPS
    """Steps by which the opponent of each final policy is trained further against it, to measure
    how far it can be exploited; 0 skips it."""
    config: tyro.conf.OmitArgPrefixes[PPOConfig] = dataclasses.field(default_factory=PPOConfig)

    def run(self) -> int:
        """Train, evaluate, draw, film, and print the results."""
        from estragon.selfplay.console import Display, print_results
        from estragon.show.film import draw_results

        with contextlib.ExitStack() as alone:
            session = self._session(alone)
            print(session.describe(), file=sys.stderr)
            with Display(session) as display, deferred_interrupts(display.say) as stop:
                finished = session.run(display, stop)
            if not finished:
                print(
                    f"stopped at {session.trainer.agent_steps:,} of {session.budget:,} steps; "
                    f"saved; continue with --resume",
                    file=sys.stderr,
                )
                return INTERRUPTED
            with Progress() as progress:
                responses = session.write_summary(self.probe_steps, progress)
                charts, film = draw_results(session.folder, progress, film=self.film)
            print_results(session, responses, charts, film)
        return 0

    def _session(self, alone: contextlib.ExitStack) -> "Session":
        import torch

        from estragon.selfplay.checkpoint import TagRun
        from estragon.selfplay.session import Session, start_session
        from estragon.trainers.settings import choose_device

        check_span("--probe-steps", self.probe_steps, 0)
        ensure_writable(self.output / "trainer" / "policy.pt")
        if self.resume:
            folder = TagRun.find(self.output, self.run_id or "latest")
            alone.enter_context(locked(folder.lock, timeout_sec=0.0))
            return Session.resume(folder)
        if self.run_id is not None:
            raise UserError(f"--run-id {self.run_id}: only together with --resume")
        task, device = self._task(), torch.device(choose_device(self.device))
        session = start_session(self.output, task, self.config, self.steps, device)
        alone.enter_context(locked(session.folder.lock, timeout_sec=0.0))
        rules_file = None if self.rules_file is None else str(self.rules_file.absolute())
        about = {"layout": self.layout, "rules_file": rules_file}
        if self.parameters is not None:
            about["parameters"] = str(self.parameters.absolute())
        session.write_metadata(about)
        session.folder.mark_latest()
        return session

    def _task(self) -> "Task":
        from estragon.selfplay.config import LEAGUE, Task
        from estragon.selfplay.league import fixed_opponents, resolve_opponent
        from estragon.tag.arenas import SEEDS
        from estragon.tag.layout import load_layouts
        from estragon.tag.rules import load_rules
        from estragon.tag.variation import Variation

        rules: Rules = load_rules(self.rules_file, rules=self.rules, rewards=self.rewards)
        check_span("--seed", self.seed, 0, SEEDS // 4 - 1)
        opponent = resolve_opponent(self.opponent, self.role, rules)
        if opponent != LEAGUE:
            fixed_opponents(opponent, self.role, rules)  # fail before anything is created
        if self.parameters is None:
            layouts = load_layouts(self.layout or rules.layout, rules)
            return Task(rules, layouts, self.seed, self.role, opponent)
        variation = Variation.read(self.parameters, rules, self.layout)
        layouts = variation.layouts_of(-1)
        return Task(rules, layouts, self.seed, self.role, opponent, variation)
