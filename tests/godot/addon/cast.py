"""The game in which actors do as a file says, and what it tells at its end."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estragon.godot.process import GodotProcess

REPEAT = 4
ONNX = 3
"""ONNX_INFERENCE of a controller; Sync's is 2."""
MOVE = {"move": {"size": 2, "action_type": "continuous"}}
TURN = {"turn": {"size": 1, "action_type": "continuous"}}
KICK = {"kick": {"size": 3, "action_type": "discrete"}}
JUMP = {"jump": {"size": 2, "action_type": "discrete"}}
SEES = {"obs": ["number", "count"]}
COUNTS = {"obs": ["count"]}


@dataclass
class Told:
    """What a game said at its end."""

    acts: dict[str, list[dict[str, Any]]]
    heuristics: dict[str, str]
    errors: list[str]

    def of(self, actor: str, key: str) -> list[Any]:
        return [act["action"][key] for act in self.acts[actor]]

    def ticks(self, actor: str) -> list[int]:
        return [act["tick"] for act in self.acts[actor]]


class Stage:
    """The game, played from files."""

    def __init__(self, project: Path, folder: Path, scene: str = "") -> None:
        self.project = project
        self.folder = folder
        self.scene = scene
        self._plays = 0

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def file(self, actors: list[dict[str, Any]], ticks: int, events: Any, sync: Any) -> str:
        defaults = {"control_mode": 2, "action_repeat": REPEAT}
        play = {"actors": actors, "ticks": ticks, "events": events, "sync": defaults | sync}
        path = self / "play.json"
        path.write_text(json.dumps(play, default=str))
        return f"--play={path}"

    def play(
        self, *actors: dict[str, Any], ticks: int = 41, events: Any = None, **sync: Any
    ) -> Told:
        self._plays += 1
        words = ["--headless", "--path", str(self.project), "--fixed-fps", "60"]
        words += [*([self.scene] if self.scene else []), "--env_seed=3"]
        words.append(self.file(list(actors), ticks, events or {}, sync))
        with GodotProcess(words, folder=self / f"game{self._plays}") as process:
            assert process.wait("its end", 30.0) == 0
            return told(process.lines())


def told(lines: list[str]) -> Told:
    (report,) = [line for line in lines if line.startswith("REPORT ")]
    errors = [line for line in lines if "ERROR" in line or "WARNING" in line]
    said = json.loads(report.removeprefix("REPORT "))
    return Told(said["acts"], said["heuristics"], errors)


def actor(name: str, sees: Any, actions: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "number": 0, "sees": sees, "actions": actions, **more}
