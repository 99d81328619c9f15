"""Matches between bots, logged to files, for tests of whatever reads them."""

import json
from pathlib import Path
from typing import Any

from estragon.show.trajectory_log import TrajectoryLog
from estragon.tag.bots import Bot
from estragon.tag.layout import load_layouts
from estragon.tag.matches import Outcomes, play_matches
from estragon.tag.rules import Rules, load_rules

PLAYERS = {"seeker": "bot:chaser", "hider": "bot:evader"}


def log_matches(
    folder: Path,
    count: int = 1,
    *,
    rules: Rules | None = None,
    layout: str = "playground",
    hider: str = "evader",
    seed: int = 5,
    most: int = 1000,
    batch: int = 1024,
) -> tuple[list[Path], Outcomes]:
    """Play and log; returns the files, and how the matches ended."""
    rules = rules or load_rules()
    log = TrajectoryLog(
        folder,
        engine="embedded",
        players={"seeker": "bot:chaser", "hider": f"bot:{hider}"},
        most=most,
    )
    outcomes = play_matches(
        Bot("chaser", rules),
        Bot(hider, rules),
        count,
        rules=rules,
        layouts=load_layouts(layout, rules),
        seed=seed,
        batch=batch,
        watcher=log,
    )
    return sorted(log.written), outcomes


def records(path: Path) -> list[dict[str, Any]]:
    """Every record of a file, as plain JSON."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_records(path: Path, lines: list[dict[str, Any]]) -> Path:
    """A file with these records."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def old_log(path: Path, *, moments: int = 5, begins_at: float = 0.0) -> Path:
    """A log as older versions wrote it: no format, ticks, facing nor layout."""
    lines: list[dict[str, Any]] = [{"type": "episode_start", "episode": 3, "ts": begins_at}]
    for moment in range(moments):
        for agent, (name, is_it) in enumerate((("Red", True), ("Blue", False))):
            speed = 4.0 if moment else 0.0
            lines.append(
                {
                    "type": "step",
                    "episode": 3,
                    "agent": name,
                    "pos": [speed * moment / 20.0 - 5.0, 0.5, 5.0 * agent],
                    "vel": [speed, 0.0, 0.0],
                    "is_it": is_it,
                    "dists": [3.0, 15.0, 1.0],
                    "types": [1, 0, 2 if agent and moment else 1],
                    "ts": begins_at + moment * 0.05,
                    "note": "ignored",
                }
            )
    lines.append({"type": "tag", "attacker": "Red", "target": "Blue"})
    lines.append({"type": "episode_end", "episode": 3, "ts": begins_at + (moments - 1) * 0.05})
    return write_records(path, lines)
