"""`estragon parity`: the same actions in both engines; do they agree to the bit?"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from estragon.tag.arenas import Arenas, Results
    from estragon.tag.godot_arenas import GodotArenas

TELL_SEC = 10.0
MILLIMETRE = 0.001
RAY_TOLERANCE_M = 0.01


@dataclasses.dataclass(frozen=True)
class Parity:
    """Play the same random actions in Godot and in the embedded engine, and compare everything."""

    episodes: int = 200
    """How many episodes."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout, or several with commas between; the game's default if not given."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek or transfer; by default as in rules.json."""
    rewards: Annotated[str | None, optional("NAME")] = None
    """A reward profile; by default as in rules.json."""
    seed: int = 0
    """Of the spawns and of the actions."""
    arenas: int = 32
    """Episodes played side by side in one Godot process."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write summary and episodes to this file."""
    plot: Annotated[Path | None, optional("FILE")] = None
    """Write a picture of the paths in both engines and of the largest errors to this file."""

    def run(self) -> int:
        """Compare, print, write; 0 if all agree within 1 mm and end alike, else 1."""
        for path in (self.json_file, self.plot):
            if path is not None:
                ensure_writable(path)
        episodes, paths_taken = self.compare()
        summary = summarise(episodes)
        for key, value in summary.items():
            print(f"{key:20} {value}")
        if self.json_file is not None:
            write_json(self.json_file, {**summary, "per_episode": episodes})
            print(f"wrote {self.json_file}")
        if self.plot is not None:
            from estragon.tag.parity_plot import plot_parity

            plot_parity(self.plot, episodes, paths_taken)
            print(f"wrote {self.plot}")
        agrees = summary["share_within_1mm"] == summary["outcome_agreement"] == 1.0
        return 0 if agrees else 1

    def compare(self) -> tuple[list[dict[str, Any]], np.ndarray]:
        """Play; returns a record an episode, and the positions in the first batch's last arena.

        That arena stands outermost; the positions are (2 engines, decisions, 2 agents, 3).
        """
        from estragon.tag.arenas import Arenas
        from estragon.tag.godot_arenas import GodotArenas
        from estragon.tag.layout import load_layouts
        from estragon.tag.rules import load_rules

        if not 1 <= self.episodes <= 1_000_000:
            raise UserError(f"--episodes: expected 1 to 1,000,000, got {self.episodes}")
        if not 1 <= self.arenas <= 1024:
            raise UserError(f"--arenas: expected 1 to 1024, got {self.arenas}")
        rules = load_rules(rules=self.rules, rewards=self.rewards)
        layouts = load_layouts(self.layout or rules.layout, rules)
        count = min(self.arenas, self.episodes)
        records: list[dict[str, Any]] = []
        first_path = np.zeros((2, 0, 2, 3))
        with (
            Progress(TELL_SEC) as progress,
            GodotArenas(count, rules=rules, layouts=layouts, seed=self.seed) as godot,
        ):
            progress.step("comparing", announced=False)
            for first in range(0, self.episodes, count):
                embedded = Arenas(
                    count, rules=rules, layout=layouts, seed=self.seed, first_arena=first
                )
                batch = _Batch(embedded, godot, first)
                batch.play(np.random.default_rng((self.seed, first)))
                records += batch.records[: self.episodes - first]
                progress.update(len(records), self.episodes, " episodes")
                if first == 0:
                    first_path = np.array(batch.path).swapaxes(0, 1)
        return records, first_path


def summarise(episodes: list[dict[str, Any]]) -> dict[str, Any]:
    """What all episodes say together."""
    return {
        "episodes": len(episodes),
        "share_identical": float(np.mean([e["identical"] for e in episodes])),
        "share_within_1mm": float(np.mean([e["worst_error_m"] <= MILLIMETRE for e in episodes])),
        "worst_error_m": float(max(e["worst_error_m"] for e in episodes)),
        "ray_agreement": _share(episodes, "rays_agreeing", "rays"),
        "reward_agreement": _share(episodes, "rewards_agreeing", "rewards"),
        "outcome_agreement": float(np.mean([e["same_outcome"] for e in episodes])),
    }


def _share(episodes: list[dict[str, Any]], part: str, whole: str) -> float:
    return float(sum(e[part] for e in episodes) / sum(e[whole] for e in episodes))


class _Batch:
    """Episodes that both engines play side by side, and what was seen of them."""

    def __init__(self, embedded: "Arenas", godot: "GodotArenas", first: int) -> None:
        self.embedded, self.godot = embedded, godot
        self.path: list[np.ndarray] = []
        self.records: list[dict[str, Any]] = [
            {
                "episode": first + arena,
                "layout": None,
                "identical": True,
                "first_difference_tick": None,
                "worst_error_m": 0.0,
                "worst_velocity_error_mps": 0.0,
                "same_flags": True,
                "rays": 0,
                "rays_agreeing": 0,
                "rewards": 0,
                "rewards_agreeing": 0,
                "same_outcome": False,
                "outcome": None,
                "ticks": 0,
            }
            for arena in range(embedded.count)
        ]

    def play(self, random: np.random.Generator) -> None:
        """One episode in every arena."""
        from estragon.tag.match import GOING_ON

        ours_seen, theirs_seen = self.embedded.reset(), self.godot.reset(self.records[0]["episode"])
        for record, drawn in zip(self.records, self.embedded.arenas["layout"], strict=True):
            record["layout"] = self.embedded.layouts[drawn].name
        playing = np.ones(self.embedded.count, dtype=bool)
        self._compare(ours_seen, theirs_seen, playing)
        actions = np.zeros((self.embedded.count, 2, 3), dtype=np.float32)
        while playing.any():
            _change_minds(actions, self.embedded, random)
            ours = self.embedded.step(actions, restart=False)
            theirs = self.godot.step(actions, restart=False)
            self._compare(ours.observations, theirs.observations, playing)
            self._compare_results(ours, theirs, playing)
            playing &= ours.ends == GOING_ON

    def _compare(self, ours: np.ndarray, theirs: np.ndarray, playing: np.ndarray) -> None:
        """State and sight after a decision, of the arenas that are still in play."""
        from estragon.tag.rules import RAY_CHANNELS

        names = self.embedded.agents.dtype.names or ()
        mine = np.stack([self.embedded.agents[name] for name in names], axis=-1).astype(np.float64)
        other = self.godot.states
        if playing[-1]:
            self.path.append(np.stack([mine[-1, :, :3], other[-1, :, :3]]))
        same_state = (mine == other).all(axis=(1, 2))
        same_sight = (ours == theirs).all(axis=(1, 2))
        error = np.abs(mine - other)
        rays = self.embedded.rules.field("rays")
        shape = (len(ours), -1, RAY_CHANNELS)
        my_rays, other_rays = ours[..., rays].reshape(shape), theirs[..., rays].reshape(shape)
        tolerance = RAY_TOLERANCE_M / self.embedded.rules.eyes.range_m
        agreeing = np.abs(my_rays[..., 0] - other_rays[..., 0]) <= tolerance
        agreeing &= (my_rays[..., 1:] == other_rays[..., 1:]).all(axis=-1)
        for arena in np.flatnonzero(playing):
            record = self.records[arena]
            record["worst_error_m"] = max(record["worst_error_m"], float(error[arena, :, :3].max()))
            record["worst_velocity_error_mps"] = max(
                record["worst_velocity_error_mps"], float(error[arena, :, 3:6].max())
            )
            record["same_flags"] &= bool((error[arena, :, 11:] == 0.0).all())
            record["rays"] += agreeing.shape[1]
            record["rays_agreeing"] += int(agreeing[arena].sum())
            if record["identical"] and not (same_state[arena] and same_sight[arena]):
                record["identical"] = False
                record["first_difference_tick"] = int(self.embedded.arenas["tick"][arena])

    def _compare_results(self, ours: "Results", theirs: "Results", playing: np.ndarray) -> None:
        from estragon.tag.match import GOING_ON

        same_terms = (ours.terms == theirs.terms).all(axis=2) & (ours.rewards == theirs.rewards)
        for arena in np.flatnonzero(playing):
            record = self.records[arena]
            record["rewards"] += same_terms.shape[1]
            record["rewards_agreeing"] += int(same_terms[arena].sum())
            record["identical"] &= bool(same_terms[arena].all())
            if ours.ends[arena] != GOING_ON or theirs.ends[arena] != GOING_ON:
                record["ticks"] = int(ours.ticks[arena])
                record["outcome"] = ["going on", "tag", "timeout"][ours.ends[arena]]
                record["same_outcome"] = bool(
                    ours.ends[arena] == theirs.ends[arena]
                    and ours.winners[arena] == theirs.winners[arena]
                    and ours.ticks[arena] == theirs.ticks[arena]
                )


def _change_minds(actions: np.ndarray, arenas: "Arenas", random: np.random.Generator) -> None:
    """Random actions held for a while; now and then both run at each other, to touch."""
    from estragon.tag.state import vectors

    count = len(actions)
    fresh = random.random(count) < 0.15
    actions[fresh] = random.uniform(-1.2, 1.2, (int(fresh.sum()), 2, 3))
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    meeting = np.arange(count) % 2 == 0
    towards = places[:, ::-1] - places + random.normal(0.0, 0.5, places.shape)
    actions[meeting, :, :2] = towards[meeting]
    actions[meeting, :, 2] = random.random((int(meeting.sum()), 2)) < 0.2
