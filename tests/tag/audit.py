"""An independent look at whether anything overlaps anything, in plain numpy."""

import numpy as np

from estragon.tag.arenas import Arenas
from estragon.tag.state import vectors


class Audit:
    """Measures how deep agents are inside boxes, walls, the floor and each other."""

    def __init__(self, arenas: Arenas) -> None:
        """Remember the solid things of every layout, from the layouts themselves."""
        self.arenas = arenas
        self.half = arenas.rules.agent.size_m / 2
        self.walls = np.array([arenas.rules.arena.width_m / 2, arenas.rules.arena.depth_m / 2])
        most = max(1, *(len(layout.boxes) for layout in arenas.layouts))
        self.low = np.full((len(arenas.layouts), most, 3), np.inf)
        self.high = np.full((len(arenas.layouts), most, 3), np.inf)
        for row, layout in enumerate(arenas.layouts):
            for column, box in enumerate(layout.boxes):
                (x, z), (width, height, depth) = box.at_m, box.size_m
                self.low[row, column] = (x - width / 2, 0.0, z - depth / 2)
                self.high[row, column] = (x + width / 2, height, z + depth / 2)

    def deepest(self) -> float:
        """The deepest overlap now, in metres; negative where all keep apart."""
        places = vectors(self.arenas.agents, "x", "y", "z")
        out_of_walls = np.abs(places[..., [0, 2]]) + self.half - self.walls
        under_floor = self.half - places[..., 1]
        layouts = self.arenas.arenas["layout"]
        low, high = self.low[layouts][:, None], self.high[layouts][:, None]
        here = places[:, :, None]
        into_boxes = np.minimum(here + self.half - low, high - here + self.half).min(axis=-1)
        apart = np.abs(places[:, 0] - places[:, 1])
        into_each_other = (2 * self.half - apart).min(axis=-1)
        return float(
            max(out_of_walls.max(), under_floor.max(), into_boxes.max(), into_each_other.max())
        )
