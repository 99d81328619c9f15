"""Matches: the latest tag policies play in 3D, logged matches again, strength, and films."""

import asyncio
import functools
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from nicegui import app, ui

from estragon.controller.arena_scene import ArenaScene
from estragon.controller.project import Project
from estragon.controller.runs import TAG_BACKENDS, Run
from estragon.controller.tab import LINES, Tab, button, card, chart, problems_shown
from estragon.show.charts.data import CrossPlay, read_cross_play
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support import paths
from estragon.support.errors import UserError
from estragon.support.files import read_json
from estragon.support.runs import latest_run
from estragon.tag.policy_files import DEFAULT_BOTS, TRAINED, trained_steps
from estragon.tag.rules import ROLES

FRAME_SEC = 0.05
MATCH_TIMEOUT_SEC = 300.0
"""The first match compiles the engine."""
KEPT_MATCHES = 20
MOST_LISTED = 200
SEEDS = 2**31


class MatchesTab(Tab):
    """Watch tag."""

    def build(self) -> None:
        """Create its elements."""
        self._row = 0.0
        self._seed = 0
        self._strength: tuple[Path, float] | None = None
        self._films: list[Path] = []
        with ui.row().classes("w-full items-start"):
            with ui.column().classes("grow basis-96"), card("Match"):
                self._arena = ArenaScene()
                self._about = ui.label("Play a match, or choose a logged one.").classes("text-sm")
                self._slider = ui.slider(min=0, max=1, step=1, value=0).classes("w-full")
                self._slider.on("change", self._jump)
                with ui.row().classes("items-center"):
                    self._play = ui.switch("play", value=True)
                    self._speed = ui.select(
                        {0.25: "¼ ×", 0.5: "½ ×", 1.0: "1 ×", 2.0: "2 ×"}, value=1.0
                    )
                    self._again = ui.switch("next match at the end", value=False)
                    button("Play the latest policies", self._new_match, "unelevated")
                    self._spinner = ui.spinner()
                    self._spinner.set_visibility(False)
                self._choice = ui.select({}, label="Logged matches", on_change=self._replay)
                self._choice.classes("w-full").props("dense")
            with ui.column().classes("grow basis-80"):
                with card("Strength"):
                    self._strength_box = ui.column().classes("w-full")
                    with self._strength_box:
                        ui.label("Train tag in Train: its stages are compared here.")
                with card("Films"):
                    self._film_box = ui.column().classes("w-full")
                    with self._film_box:
                        ui.label("No film yet.")
        ui.timer(FRAME_SEC, self._step)

    async def refresh(self) -> None:
        """Look for new matches, stages and films."""
        listed = await asyncio.to_thread(_logged, self.project)
        if listed != self._choice.options:
            self._choice.set_options(listed, value=self._choice.value)
        runs = await asyncio.to_thread(self.state.runs, self.project)
        await self._show_strength([each for each in runs if each.backend in TAG_BACKENDS])
        films = sorted(self.project.inside(self.project.path.glob("*.mp4")), reverse=True)[:6]
        if films != self._films:
            self._films = films
            self._film_box.clear()
            with self._film_box:
                for film in films:
                    ui.label(film.name).classes("text-sm")
                    ui.video(_film_url(film), loop=True).classes("w-full")

    def key(self, name: str) -> None:
        """The space bar pauses."""
        if name == " ":
            self._play.value = not self._play.value

    async def _new_match(self) -> None:
        if self._spinner.visible:
            return
        self._spinner.set_visibility(True)
        self._seed += 1
        played = False
        try:
            with problems_shown():
                path, players = await asyncio.to_thread(_play, self.project, self._seed % SEEDS)
                self._load(await asyncio.to_thread(read_trajectory, path), players)
                played = True
        finally:
            self._spinner.set_visibility(False)
            self._again.value = self._again.value and played  # a problem is told once

    async def _replay(self) -> None:
        if self._choice.value is not None:
            with problems_shown():
                path = self.project.confine(self._choice.value)
                match = await asyncio.to_thread(read_trajectory, path)
                self._load(match, match.start.players)

    def _load(self, match: Trajectory, players: dict[str, str]) -> None:
        self._row = 0.0
        self._slider.props(f"max={len(match.ticks) - 1}")
        self._slider.value = 0
        who = " against ".join(players[role] for role in ROLES if role in players)
        self._about.text = (
            f"{who or 'a logged match'} · {match.layout.name} · "
            f"{match.seconds[-1]:.1f} s, ended by {match.reason}"
        )
        self._arena.load(match)

    def _jump(self) -> None:
        self._row = float(self._slider.value or 0)
        self._arena.show(int(self._row))

    async def _step(self) -> None:
        match = self._arena.trajectory
        if match is None or not self._play.value or not self.page.is_shown(self):
            return
        last = len(match.ticks) - 1
        if self._row >= last:
            if self._again.value:
                await self._new_match()
            return
        rows_per_sec = match.start.ticks_per_second / match.start.decision_ticks
        before, self._row = int(self._row), self._row + self._speed.value * rows_per_sec * FRAME_SEC
        row = min(int(self._row), last)
        if row != before:
            self._arena.show(row)
            if row % 5 == 0 or row == last:
                self._slider.value = row

    async def _show_strength(self, runs: list[Run]) -> None:
        for each in runs:
            path = each.folder / "cross_play.json"
            if not path.exists():
                continue
            version = (path, path.stat().st_mtime)
            if version != self._strength:
                self._strength = version
                found = await asyncio.to_thread(read_cross_play, path)
                self._strength_box.clear()
                with self._strength_box:
                    ui.label(each.title).classes("text-sm")
                    ui.echart(_matrix(found)).classes("w-full h-64")
                    ui.echart(_elo(found)).classes("w-full h-48")
                    button("Make a film", functools.partial(self._film, each))
            return

    def _film(self, of: Run) -> None:
        with problems_shown():
            self.sessions.add("film", ["film", f"--run={of.id}"])
            ui.notify("making the film; Train shows its log")


@functools.cache
def _film_url(path: Path) -> str:
    """Where the page gets a film from; its name is not part of it."""
    name = hashlib.sha256(str(path).encode()).hexdigest()[:32]
    return app.add_media_file(local_file=path, url_path=f"/films/{name}.mp4")


def _play(project: Project, seed: int) -> tuple[Path, dict[str, str]]:
    """Play one match of the latest policies, or of bots where there are none.

    Returns its log and, by role, who played.
    """
    files = {role: project.path / file for role, file in TRAINED.items()}
    files = {role: path for role, path in files.items() if path.is_file()}
    words = [f"--{role}={files.get(role, bot)}" for role, bot in DEFAULT_BOTS.items()]
    words += _rules_of_latest(project) if files else []
    steps = {role: trained_steps(path)[role] for role, path in files.items()}
    players = DEFAULT_BOTS | {role: f"{role} after {n:,} steps" for role, n in steps.items()}
    root = project.folder / "matches"
    folder = paths.trajectories_folder(root)
    before = set(folder.glob("*.jsonl"))
    words += ["--episodes=1", f"--seed={seed}", "--log-trajectories", f"--data-root={root}"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "estragon", "eval", "tag", *words],
            cwd=project.path,
            capture_output=True,
            text=True,
            timeout=MATCH_TIMEOUT_SEC,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"a match was not over after {MATCH_TIMEOUT_SEC:.0f} s") from error
    new = sorted(set(folder.glob("*.jsonl")) - before)
    if not new:
        raise UserError(f"the match could not be played: {done.stderr.strip()[-300:]}")
    for old in sorted(before)[:-KEPT_MATCHES]:
        old.unlink(missing_ok=True)
    return new[-1], players


def _rules_of_latest(project: Project) -> list[str]:
    """The options of a match with the rules and the layout of the run that writes the policies."""
    try:
        about = read_json(latest_run(project.path) / "metadata.json", dict[str, Any])
    except UserError:
        return []
    options = ("rules", "rules_file", "layout")
    return [f"--{name.replace('_', '-')}={about[name]}" for name in options if about.get(name)]


def _logged(project: Project) -> dict[str, str]:
    """The logs of matches, by path in the project; the latest first."""
    folders = [paths.trajectories_folder(project.folder / "matches"), project.path / "data"]
    found = [path for folder in folders for path in folder.rglob("ep_*.jsonl")]
    found = sorted(found, key=lambda path: path.name, reverse=True)[:MOST_LISTED]
    return {path.relative_to(project.path).as_posix(): path.stem for path in found}


def _matrix(found: CrossPlay) -> dict[str, Any]:
    names = [stage.name for stage in found.stages]
    cells = [
        [hider, seeker, round(rate, 2)]
        for seeker, row in enumerate(found.seeker_win_rate)
        for hider, rate in enumerate(row)
    ]
    axis = {"type": "category", "data": names, "nameLocation": "middle"}
    return chart(
        tooltip={"renderMode": "richText"},
        grid={"left": 70, "right": 10, "top": 10, "bottom": 60},
        xAxis=axis | {"name": "hider", "nameGap": 25},
        yAxis=axis | {"name": "seeker", "nameGap": 45},
        visualMap={"min": 0, "max": 1, "show": False,
                   "inRange": {"color": ["#2e86ab", "#e8e8e8", "#d1495b"]}},
        series=[{"type": "heatmap", "data": cells, "label": {"show": True, "fontSize": 9}}],
    )  # fmt: skip


def _elo(found: CrossPlay) -> dict[str, Any]:
    lines = {"seeker": found.elo.seeker, "hider": found.elo.hider}
    return chart(
        color=["#d1495b", "#2e86ab"],
        grid={"left": 50, "right": 10, "top": 30, "bottom": 30},
        xAxis={"type": "category", "data": [stage.name for stage in found.stages]},
        yAxis={"type": "value", "name": "Elo", "scale": True, "splitLine": LINES},
        series=[{"name": role, "type": "line", "data": data} for role, data in lines.items()],
    )
