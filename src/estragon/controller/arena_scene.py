"""A match of tag in 3D in the page: the arena, the agents and what their rays meet.

Everything that changes from one moment to the next is sent as one message.
"""

import math
from typing import Any

from nicegui import ui

from estragon.show.trajectory import Trajectory

SEEKER, HIDER, BOX, FLOOR = "#d1495b", "#2e86ab", "#b8b08d", "#8d9b8a"
SEEN, WALL_M = 2, 0.5
RAY_OPACITY = 0.5


class ArenaScene:
    """A three.js scene of one match; y of the game is z here, z points the other way."""

    def __init__(self) -> None:
        self.scene = ui.scene(600, 420, grid=False, background_color="#1d2326", fps=20)
        self.scene.classes("w-full").props("data-scene")
        self.trajectory: Trajectory | None = None
        self._agents: list[Any] = []
        self._fans: list[Any] = []
        self._rays: list[list[Any]] = []
        self._colors: dict[str, str] = {}

    def load(self, trajectory: Trajectory) -> None:
        """Build the arena of a match, and show how it began."""
        self.trajectory = trajectory
        self.scene.clear()
        self._agents, self._fans, self._rays, self._colors = [], [], [], {}
        width, depth = trajectory.start.arena_size_m
        size = trajectory.start.agent_size_m
        eyes = trajectory.start.eyes
        count = trajectory.ray_distances.shape[2]
        fan = math.radians(eyes.fan_deg if eyes else 120.0)
        height = (eyes.height_m if eyes else 0.5) - size / 2.0
        with self.scene as scene:
            scene.box(width, depth, 0.1).move(0, 0, -0.05).material(FLOOR)
            for x, y, long, deep in (
                (0, depth / 2, width, 0.1),
                (0, -depth / 2, width, 0.1),
                (width / 2, 0, 0.1, depth),
                (-width / 2, 0, 0.1, depth),
            ):
                scene.box(long, deep, WALL_M).move(x, y, WALL_M / 2).material(BOX, opacity=0.5)
            for box in trajectory.layout.boxes:
                across, up, deep = box.size_m
                scene.box(across, deep, up).move(box.at_m[0], -box.at_m[1], up / 2).material(BOX)
            for agent in range(2):
                self._agents.append(scene.box(size, size, size))
                with scene.group() as group:
                    rays = []
                    for ray in range(count):
                        angle = fan * (ray / (count - 1.0) - 0.5) if count > 1 else 0.0
                        rays.append(scene.line([0, 0, height], [1, 0, height]).rotate(0, 0, -angle))
                self._fans.append(group)
                self._rays.append(rays)
                self._colors[self._agents[agent].id] = ""
        self.scene.move_camera(0, -0.55 * depth, 0.6 * depth, 0, -1.0, 0, duration=0)
        self.show(0)

    def show(self, row: int) -> None:
        """One moment of the match."""
        match = self.trajectory
        if match is None:
            return
        calls: list[list[Any]] = []
        for agent, (cube, fan, rays) in enumerate(
            zip(self._agents, self._fans, self._rays, strict=True)
        ):
            x, y, z = (round(float(each), 3) for each in match.positions[row, agent])
            ahead = float(match.forwards[row, agent, 0]), -float(match.forwards[row, agent, 1])
            turn = [[ahead[0], -ahead[1], 0], [ahead[1], ahead[0], 0], [0, 0, 1]]
            color = SEEKER if match.is_seeker[row, agent] else HIDER
            for part in (cube, fan):
                calls += [["move", part.id, x, -z, y], ["rotate", part.id, turn]]
                part.x, part.y, part.z, part.R = x, -z, y, turn
            self._paint(calls, cube, color, 1.0)
            distances = match.ray_distances[row, agent]
            for ray, reach, what in zip(rays, distances, match.ray_types[row, agent], strict=True):
                ray.sx = round(max(float(reach), 0.01), 2)
                calls.append(["scale", ray.id, ray.sx, 1, 1])
                self._paint(calls, ray, "#ffd166" if what == SEEN else color, RAY_OPACITY)
        self.scene.run_method("run_methods", calls)

    def _paint(self, calls: list[list[Any]], part: Any, color: str, opacity: float) -> None:
        if self._colors.get(part.id) != color:
            self._colors[part.id] = part.color = color
            part.opacity, part.material_is_set = opacity, True
            calls.append(["material", part.id, color, opacity, "front"])
