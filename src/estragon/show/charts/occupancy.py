"""Where each role spends its time: counted in matches played now or logged, drawn as a heatmap."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator

from estragon.show.canvas import ROLE_COLOURS
from estragon.show.charts.figure import FAINT, FRAME, INK, ChartFigure, label_axes, new_figure
from estragon.show.trajectory import Trajectory
from estragon.show.trajectory_reader import read_trajectory
from estragon.support.errors import UserError
from estragon.tag.layout import Box, Layout, load_layouts
from estragon.tag.policy_files import load_policy
from estragon.tag.rules import HIDER, ROLES, SEEKER, Role, Rules, load_rules

if TYPE_CHECKING:
    from estragon.tag.matches import Player

CELLS_PER_M = 4
MATCHES, SEED = 256, 11
STAND_INS: dict[Role, str] = {"seeker": "chaser", "hider": "evader"}
"""Bots for a role that did not learn."""
PERCENTILE = 99.7
"""Of all cells: the end of the colour scale."""
PER_MATCHES = 100
"""Seconds are those in so many matches."""
TICK_M = 5.0
BOX, BOX_EDGE = "#8d8981", "#57544e"


class Occupancy:
    """Adds up where agents were."""

    def __init__(self, rules: Rules) -> None:
        self.width_m, self.depth_m = rules.arena.width_m, rules.arena.depth_m
        self.agent_m = rules.agent.size_m
        self.matches = 0
        self._tick_sec = 1.0 / rules.physics.ticks_per_second
        cells = (round(self.depth_m * CELLS_PER_M), round(self.width_m * CELLS_PER_M))
        self._seconds = np.zeros((len(ROLES), *cells))

    def add(self, match: Trajectory) -> None:
        """Count a match: the ticks since the row before count where the agents are at a row."""
        self.matches += 1
        seconds = np.diff(match.ticks)[:, None] * self._tick_sec
        x, _, z = np.moveaxis(match.positions[1:], -1, 0)
        rows, columns = self._seconds.shape[1:]
        row = np.clip(((z + self.depth_m / 2.0) * CELLS_PER_M).astype(int), 0, rows - 1)
        column = np.clip(((x + self.width_m / 2.0) * CELLS_PER_M).astype(int), 0, columns - 1)
        role = np.where(match.is_seeker[1:], SEEKER, HIDER)
        np.add.at(self._seconds, (role, row, column), seconds)

    def seconds(self, role: int) -> np.ndarray:
        """How long an agent in this role covered each cell in a match: (along z, along x), s.

        An agent covers a square of its own size; with a side of 1 m these are the seconds per
        square metre.
        """
        side = max(1, round(self.agent_m * CELLS_PER_M))
        covered = np.cumsum(np.cumsum(np.pad(self._seconds[role], side), axis=0), axis=1)
        sums = covered[side:, side:] - covered[:-side, side:]
        sums = sums - covered[side:, :-side] + covered[:-side, :-side]
        first = side // 2
        rows, columns = self._seconds.shape[1:]
        middle: np.ndarray = sums[first : first + rows, first : first + columns]
        return middle / max(1, self.matches)


class Setting(NamedTuple):
    """The arena and the players."""

    boxes: Sequence[Box]
    jump_m: float
    """How high a box may be to be jumped on."""
    layout: str
    players: dict[str, str]
    """By role."""


def occupancy_of_run(
    folder: Path, about: dict[str, Any], matches: int = MATCHES
) -> tuple[Occupancy, Setting]:
    """Let the newest policies of a run, with the metadata `about`, play each other."""
    checkpoints = folder / "checkpoints"
    files = {role: max(checkpoints.glob(f"{role}_*.npz"), default=None) for role in ROLES}
    if not any(files.values()):
        raise UserError(f"no policies in {checkpoints} yet")
    from estragon.show.trajectory_log import (
        play_in_memory,
    )  # needs numba, which other charts do not

    rules_file = about.get("rules_file")
    rules = load_rules(Path(rules_file) if rules_file else None, rules=about.get("rules"))
    layouts = load_layouts(about.get("layout") or rules.layout, rules)
    seeker, hider = (_player(role, files[role], rules) for role in ROLES)
    occupancy = Occupancy(rules)
    for match in play_in_memory(seeker, hider, matches, rules=rules, layouts=layouts, seed=SEED):
        occupancy.add(match)
    players = {"seeker": _name(seeker), "hider": _name(hider)}
    return occupancy, _setting(layouts, rules, players)


def occupancy_of_logs(folder: Path) -> tuple[Occupancy, Setting]:
    """All matches logged in a folder."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UserError(f"no logged matches (*.jsonl) in {folder}")
    logged = [read_trajectory(path) for path in files]
    rules = logged[0].game_rules()
    occupancy = Occupancy(rules)
    for path, trajectory in zip(files, logged, strict=True):
        if trajectory.start.arena_size_m != logged[0].start.arena_size_m:
            raise UserError(f"{path}: played in an arena of another size than {files[0].name}")
        occupancy.add(trajectory)
    players = {}
    for role in ROLES:
        names = sorted({each.start.players.get(role, "unknown") for each in logged})
        players[str(role)] = names[0] if len(names) == 1 else f"{len(names)} different players"
    return occupancy, _setting([each.layout for each in logged], rules, players)


def _setting(layouts: Sequence[Layout], rules: Rules, players: dict[str, str]) -> Setting:
    """Of several layouts no boxes are drawn: they would be wrong for the others."""
    boxes = layouts[0].boxes
    if any(layout.boxes != boxes for layout in layouts):
        return Setting([], rules.jump_height_m, "several layouts", players)
    return Setting(boxes, rules.jump_height_m, layouts[0].name or "the arena", players)


def _player(role: Role, file: Path | None, rules: Rules) -> "Player":
    from estragon.tag.bots import Bot

    return Bot(STAND_INS[role], rules) if file is None else load_policy(file, rules, role)


def _name(player: "Player") -> str:
    steps = getattr(player, "trained_steps", None)
    return player.name if steps is None else f"trained {steps / 1e6:.1f} million steps"


def draw_occupancy(occupancy: Occupancy, setting: Setting) -> ChartFigure:
    """Both roles side by side, on the same scale."""
    about = [f"seconds per square metre in {PER_MATCHES} matches", f"{setting.layout} from above"]
    about.append(f"{occupancy.matches} matches were played")
    if setting.boxes:
        about.append("filled boxes are tall, outlined ones can be jumped on")
    figure, panels = new_figure("Where they spend their time", about, len(ROLES))
    seconds = [PER_MATCHES * occupancy.seconds(role) for role in range(len(ROLES))]
    most = float(np.percentile(np.stack(seconds), PERCENTILE)) or 1.0
    half_x, half_z = occupancy.width_m / 2.0, occupancy.depth_m / 2.0
    for axes, role, each in zip(panels, ROLES, seconds, strict=True):
        colours = LinearSegmentedColormap.from_list(role, ["#ffffff", ROLE_COLOURS[role], INK])
        image = axes.imshow(
            each,
            colours,
            vmin=0.0,
            vmax=most,
            extent=(-half_x, half_x, half_z, -half_z),
            interpolation="bilinear",
        )
        for box in setting.boxes:
            _draw_box(axes, box, tall=box.size_m[1] > setting.jump_m)
        label_axes(
            axes, title=f"{role.capitalize()}: {setting.players[role]}", x="x (m)", y="z (m)"
        )
        axes.set_anchor("NW")
        axes.grid(visible=False)
        axes.xaxis.set_major_locator(MultipleLocator(TICK_M))
        axes.yaxis.set_major_locator(MultipleLocator(TICK_M))
        for spine in axes.spines.values():
            spine.set_visible(True)
            spine.set_color(FRAME)
        bar = axes.inset_axes((1.03, 0.0, 0.035, 1.0))
        scale = figure.colorbar(image, cax=bar, extend="max" if each.max() > most else "neither")
        scale.outline.set_visible(False)
        bar.tick_params(colors=FAINT, labelsize=10, length=0, pad=5)
        bar.yaxis.set_major_formatter("{x:g} s")
    return figure


def _draw_box(axes: Axes, box: Box, *, tall: bool) -> None:
    (x, z), (width, _, depth) = box.at_m, box.size_m
    corner = (x - width / 2.0, z - depth / 2.0)
    face = BOX if tall else "none"
    axes.add_patch(Rectangle(corner, width, depth, facecolor=face, edgecolor=BOX_EDGE, lw=1.2))
