"""Where agents were: in matches that a run's policies play now, or in matches that were logged."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estragon.show.charts.places import Places
from estragon.show.charts.places_chart import Setting
from estragon.show.trajectories.trajectory import Trajectory, read_trajectory
from estragon.support.errors import UserError
from estragon.tag.bots import Bot
from estragon.tag.layout import Layout, load_layouts
from estragon.tag.matches import Player, play_matches
from estragon.tag.policy_files import load_policy
from estragon.tag.rules import HIDER, ROLES, SEEKER, Role, Rules, load_rules

MATCHES, SEED = 256, 11
BATCH = 64
"""Few enough rows that numpy multiplies them on one thread: more threads would mostly wait."""
STAND_INS: dict[Role, str] = {"seeker": "chaser", "hider": "evader"}
"""Who plays a role that did not learn."""


class Seen(NamedTuple):
    """Where agents were, and in what setting."""

    places: Places
    setting: Setting


def places_of_run(folder: Path, about: dict[str, Any], matches: int = MATCHES) -> Seen:
    """Let the newest policies of a run play each other.

    Args:
        folder: of the run.
        about: its metadata.
        matches: how many.
    """
    files = {role: _newest_policy(folder, role) for role in ROLES}
    if not any(files.values()):
        raise UserError(f"no policies in {folder / 'checkpoints'} yet")
    rules_file = about.get("rules_file")
    rules = load_rules(Path(rules_file) if rules_file else None, rules=about.get("rules"))
    layouts = load_layouts(about.get("layout") or rules.layout, rules)
    seeker, hider = (_player(role, files[role], rules) for role in ROLES)
    places = Places.under(rules)
    play_matches(
        seeker,
        hider,
        matches,
        rules=rules,
        layouts=layouts,
        seed=SEED,
        batch=BATCH,
        watcher=places,
    )
    who = {"seeker": _called(seeker), "hider": _called(hider)}
    return Seen(places, _setting(layouts, rules, who))


def places_of_logs(folder: Path) -> Seen:
    """All matches logged in a folder."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UserError(f"no logged matches (*.jsonl) in {folder}")
    logged = [read_trajectory(path) for path in files]
    rules = logged[0].game_rules()
    places = Places.under(rules)
    for path, trajectory in zip(files, logged, strict=True):
        if trajectory.start.arena_size_m != logged[0].start.arena_size_m:
            raise UserError(f"{path}: played in an arena of another size than {files[0].name}")
        _add(places, trajectory)
    who = {str(role): _names(logged, role) for role in ROLES}
    return Seen(places, _setting([each.layout for each in logged], rules, who))


def _add(places: Places, trajectory: Trajectory) -> None:
    places.matches += 1
    passed = np.diff(trajectory.ticks)
    for agent in range(len(trajectory.agents)):
        at = trajectory.positions[1:, agent]
        it = trajectory.is_seeker[1:, agent]
        for role, rows in ((SEEKER, it), (HIDER, ~it)):
            places.add(role, at[rows, 0], at[rows, 2], passed[rows])


def _setting(layouts: list[Layout], rules: Rules, who: dict[str, str]) -> Setting:
    """With several layouts no boxes are drawn: they would be somebody else's."""
    boxes = layouts[0].boxes
    if any(layout.boxes != boxes for layout in layouts):
        return Setting([], rules.jump_height_m, "several layouts", who)
    return Setting(boxes, rules.jump_height_m, layouts[0].name or "the arena", who)


def _newest_policy(folder: Path, role: Role) -> Path | None:
    return max((folder / "checkpoints").glob(f"{role}_*.npz"), default=None)


def _player(role: Role, file: Path | None, rules: Rules) -> Player:
    return Bot(STAND_INS[role], rules) if file is None else load_policy(file, rules, role)


def _called(player: Player) -> str:
    steps = getattr(player, "trained_steps", None)
    return player.name if steps is None else f"trained {steps / 1e6:.1f} million steps"


def _names(logged: list[Trajectory], role: Role) -> str:
    names = sorted({each.start.players.get(role, "unknown") for each in logged})
    return names[0] if len(names) == 1 else f"{len(names)} different players"
