"""`estragon godot probe`: start any game that speaks the protocol, play it at random, report."""

import collections
import dataclasses
import re
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from estragon.envs.findings import Findings
from estragon.envs.games import Games
from estragon.envs.launch import Launch
from estragon.envs.profile import Profile
from estragon.envs.random_play import masks_of_next, random_actions
from estragon.envs.roster import Agent
from estragon.godot.process import GodotError
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional

BAD = 2
# Xvfb has no V-Sync to switch off, which no game is to blame for.
COMPLAINT = re.compile(r"(SCRIPT |USER )?(ERROR|WARNING): (?!Could not set V-Sync mode)")
QUOTED = 3
OLD_ADDON = (
    "the game speaks JSON, so it has an older addon: slower, no terminal observations, time limits "
    "look like ends, seeds count only at the start; Estragon's addon in its place mends that"
)


@dataclasses.dataclass(frozen=True)
class GodotProbe:
    """Play any game that speaks the Godot RL Agents protocol at random, and say what is noticed."""

    env_path: tyro.conf.Positional[str]
    """A project folder, a .pck, or an exported game; debug: wait for the editor."""

    scene: Annotated[str | None, optional("SCENE")] = None
    """The scene to play, for example res://training.tscn; else the game's main scene."""

    seconds: float = 10.0
    """How long to play."""

    action_repeat: Annotated[int | None, optional("N")] = None
    """Physics ticks an action lasts; by default what the game's Sync node says."""

    n_parallel: int = 1
    """Games side by side."""

    seed: int = 0
    """Of the game, and of the actions."""

    port: Annotated[int | None, optional("PORT")] = None
    """Where to listen; by default 11008 for the editor, else any free one."""

    show_window: bool = False
    """Open a window, and play in real time."""

    strict_import: bool = False
    """Refuse a project in which anything is broken; else missing decoration is a warning."""

    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write what was found to this file."""

    def run(self) -> int:
        """Play, print, write; 0 if it could be played for that long, else 2."""
        if not 0.0 < self.seconds <= 86400.0:
            raise UserError(f"--seconds: expected more than 0, at most 86400, got {self.seconds}")
        if self.json_file is not None:
            ensure_writable(self.json_file)
        found = self.probe()
        _print(found)
        if self.json_file is not None:
            write_json(self.json_file, found)
            print(f"wrote {self.json_file}")
        return BAD if found["error"] else 0

    def probe(self) -> dict[str, Any]:
        """What was noticed."""
        start = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="estragon-") as folder,
            Games(self._launch(folder)) as games,
        ):
            started = time.monotonic() - start
            agents = [agent for roster in games.rosters for agent in roster.agents]
            findings = Findings()
            error, steps, seconds = "", 0, 0.0
            measured: dict[str, Any] = {}
            grown: list[str] = []
            try:
                steps, profile = self._play(games, findings)
                seconds, grown = profile.seconds, profile.warnings()
                measured = profile.summary(steps)
            except GodotError as problem:
                error = str(problem)
            complaints = _complaints(Path(folder))
            rate = findings.agent_steps / seconds if seconds else None
            return {
                "env_path": self.env_path,
                "scene": self.scene,
                "encoding": games.encoding,
                "agents": len(agents),
                "policies": dict(collections.Counter(agent.policy for agent in agents)),
                "spaces": _describe(agents),
                "start_seconds": round(started, 2),
                "seconds": round(seconds, 2),
                "steps": steps,
                "agent_steps": findings.agent_steps,
                "agent_steps_per_s": None if rate is None else round(rate, 1),
                **measured,
                **findings.summary(),
                "warnings": [
                    *games.warnings,
                    *_warn_of_addon(games.encoding),
                    *findings.warnings(),
                    *grown,
                    *complaints,
                ],
                "error": error,
            }

    def _launch(self, folder: str) -> Launch:
        return Launch(
            self.env_path,
            scene=self.scene,
            n_parallel=self.n_parallel,
            seed=self.seed,
            port=self.port,
            action_repeat=self.action_repeat,
            show_window=self.show_window,
            strict_import=self.strict_import,
            restarts=0,
            log_folder=folder,
        )

    def _play(self, games: Games, findings: Findings) -> tuple[int, Profile]:
        """Steps that were made, and where their time went."""
        rng = np.random.default_rng(self.seed)
        outcomes = games.reset()
        for game, outcome in enumerate(outcomes):
            findings.watch(game, outcome, reset=True)
        profile = Profile(games)
        begin = time.monotonic()
        steps = 0
        while time.monotonic() - begin < self.seconds:
            games.send(
                [
                    random_actions(roster, rng, masks_of_next(outcome, roster))
                    for roster, outcome in zip(games.rosters, outcomes, strict=True)
                ]
            )
            outcomes = games.gather()
            steps += 1
            with profile.leave_out():
                for game, outcome in enumerate(outcomes):
                    findings.watch(game, outcome)
        return steps, profile


def _describe(agents: list[Agent]) -> list[dict[str, Any]]:
    kinds = dict.fromkeys((agent.policy, agent.spaces) for agent in agents)
    return [
        {
            "policy": policy,
            "observation_space": [
                {"key": seen.key, "space": seen.kind, "size": list(seen.shape) or seen.choices}
                for seen in spaces.observations
            ],
            "action_space": [
                {
                    "key": action.key,
                    "action_type": action.kind,
                    "size": action.size,
                    "masked": action.masked,
                }
                for action in spaces.actions
            ],
            "summary": spaces.describe(),
        }
        for policy, spaces in kinds
    ]


def _warn_of_addon(encoding: str) -> list[str]:
    return [OLD_ADDON] if encoding == "json" else []


def _complaints(folder: Path) -> list[str]:
    """What the games said was wrong."""
    found = collections.Counter(
        line.strip()
        for log in sorted(folder.glob("*.log"))
        for line in log.read_text(errors="replace").splitlines()
        if COMPLAINT.match(line.strip())
    )
    told = [
        f"the game said{f' {count} times' if count > 1 else ''}: {line}"
        for line, count in found.most_common(QUOTED)
    ]
    if len(found) > QUOTED:
        told.append(f"the game had {len(found) - QUOTED} more kinds of errors and warnings")
    return told


def _print(found: dict[str, Any]) -> None:
    policies = ", ".join(f"{name} × {count}" for name, count in found["policies"].items())
    print(f"agents      {found['agents']} ({policies})")
    for spaces in found["spaces"]:
        print(f"            {spaces['policy']} {spaces['summary']}")
    print(f"encoding    {found['encoding']}")
    if found["agent_steps_per_s"] is not None:
        print(
            f"speed       {found['agent_steps_per_s']:,.0f} agent-steps/s "
            f"({found['steps']:,} steps in {found['seconds']:g} s, "
            f"started in {found['start_seconds']:g} s)"
        )
    if found.get("step_ms") is not None:
        print(
            f"time        {found['step_ms']:.2f} ms per step: game {found['time_in_game']:.0%}, "
            f"wire {found['time_on_wire']:.0%}, Python {found['time_in_python']:.0%}"
        )
    if found.get("game_memory_mb") is not None:
        grew = found["game_memory_growth_mb"]
        print(
            f"memory      {found['game_memory_mb']:.0f} MB in the game, {grew:+.0f} MB in this time"
        )
    for seen in found["observations"]:
        constant = f", {seen['constant']} never changed" if seen["constant"] else ""
        print(
            f"observes    {seen['policy']} {seen['key']}: {seen['min']:.3g} to {seen['max']:.3g} "
            f"({seen['size']} numbers{constant})"
        )
    if found["agent_steps"]:
        print(
            f"rewards     {found['reward_min']:.3g} to {found['reward_max']:.3g}, "
            f"mean {found['reward_mean']:.3g}, std {found['reward_std']:.3g}, "
            f"not 0 in {found['reward_nonzero']:.1%} of agent-steps"
        )
    ends = f"{found['episodes_terminated']} terminated, {found['episodes_truncated']} truncated"
    if found["episodes"]:
        mean = f"mean length {found['episode_length_mean']:.1f} steps "
        mean += f"({found['episode_length_min']} to {found['episode_length_max']}), "
        mean += f"mean return {found['episode_return_mean']:.3g}"
        print(f"episodes    {found['episodes']} ({ends}), {mean}")
    else:
        print("episodes    none ended")
    for warning in found["warnings"]:
        print(f"warning     {warning}")
    if found["error"]:
        print(f"ERROR       {found['error']}")
    elif not found["warnings"]:
        print("nothing suspicious")
