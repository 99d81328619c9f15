"""The end of a training run: final judgement, charts, film, and one screen that says it all."""

from dataclasses import asdict
from pathlib import Path
from typing import cast

from rich.console import Console

from estragon.selfplay.display import strength_table
from estragon.selfplay.ladder import PAIRINGS
from estragon.selfplay.probe import Probe, probe
from estragon.selfplay.session import Session
from estragon.show.film import draw_results
from estragon.support.files import write_json
from estragon.support.progress import Progress
from estragon.tag.matches import wilson_interval
from estragon.tag.rules import Role


def finish(session: Session, *, film: bool, probe_steps: int) -> None:
    """Leave charts, a film and a summary, and print the end screen."""
    with Progress() as progress:
        probes = _probe(session, probe_steps, progress)
        charts, filmed = draw_results(session.folder, progress, film=film)
    write_json(
        session.folder.path / "summary.json",
        {
            "agent_steps": session.trainer.agent_steps,
            "seconds": round(session.seconds, 3),
            "agent_steps_per_s": round(session.agent_steps_per_s),
            "scores": {name: asdict(score) for name, score in session.scores[-1].items()},
            "probes": [asdict(found) for found in probes],
        },
    )
    _tell(session, probes, charts, filmed)


def _probe(session: Session, steps: int, progress: Progress) -> list[Probe]:
    """Let a newcomer study each finished policy."""
    if not steps or not session.task.rules.rule_set.tag_ends_episode:
        return []
    found = []
    for role, policy in session.trainer.freeze().items():
        progress.step(f"a newcomer studies the {role}", f"{steps:,} steps")
        file = session.folder.policy(f"policy_{role}")
        found.append(probe(cast("Role", role), file, policy, session.task, session.config, steps))
    return found


def _tell(session: Session, probes: list[Probe], charts: list[Path], film: Path | None) -> None:
    """One screen: how strong, against whom, what to look at, what to do next."""
    console = Console(highlight=False)
    steps, seconds = session.trainer.agent_steps, session.seconds
    console.print(
        f"\nTrained {steps:,} agent-steps in {seconds:.0f} s: {session.agent_steps_per_s:,.0f} a "
        f"second ({session.shape})\n"
    )
    console.print(strength_table(session))
    console.print()
    scores = session.scores[-1]
    for role, bot in PAIRINGS:
        if score := scores.get(f"{role}_vs_{bot}"):
            low, high = wilson_interval(score.win_rate, score.matches)
            console.print(
                f"  {role:<6} beats bot:{bot:<7} {score.win_rate:6.1%}   "
                f"(95% interval {low:.0%} to {high:.0%})"
            )
    if cross_play := session.ladder.cross_play():
        rate = cross_play["seeker_win_rate"][-1][-1]
        console.print(f"  trained against trained: the seeker wins {rate:.1%}")
    for found in probes:
        console.print(
            f"  a newcomer who studied the {found.exploited} for {found.steps:,} steps beats it in "
            f"{found.win_rate:.1%}"
        )
    console.print("\nLook at")
    if film:
        console.print(f"  {film}")
    console.print(f"  {charts[0].parent if charts else session.folder.path}/*.png")
    console.print(f"  tensorboard --logdir {session.folder.tensorboard}")
    console.print("\nThen")
    trainer = session.folder.root / "trainer"
    for role, other in (("seeker", "bot:evader"), ("hider", "bot:chaser")):
        if (trainer / f"policy_{role}.npz").is_file() and session.task.role in ("both", role):
            players = (
                f"--seeker {trainer / 'policy_seeker.npz'} --hider {other}"
                if role == "seeker"
                else f"--seeker {other} --hider {trainer / 'policy_hider.npz'}"
            )
            console.print(f"  estragon eval tag {players}", soft_wrap=True)
    if film:
        console.print(f"  estragon film --run {session.folder.path}", soft_wrap=True)
