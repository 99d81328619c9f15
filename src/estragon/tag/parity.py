"""Whether both engines agree: the same actions in each, compared to the bit at every decision."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estragon.support.files import write_whole
from estragon.tag.arenas import Arenas, Results
from estragon.tag.godot_arenas import GodotArenas
from estragon.tag.rules import GOING_ON, RAY_CHANNELS
from estragon.tag.state import vectors

MILLIMETRE = 0.001
RAY_TOLERANCE_M = 0.01
IDENTICAL = 1e-17
"""Where an error of exactly zero is drawn on a logarithmic axis."""


def compare_engines(
    embedded: Arenas,
    godot: GodotArenas,
    episodes: int,
    tell: Callable[[int], None] = lambda _: None,
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Play; returns a record per episode, and the positions in the first batch's last arena.

    That arena stands outermost; the positions are (2 engines, decisions, 2 agents, 3). Both engines
    need the same rules, layouts, seed and count; what varies in the embedded one, Godot is told.
    `tell` is called with the episodes done so far.
    """
    records: list[dict[str, Any]] = []
    first_path = np.zeros((2, 0, 2, 3))
    for first in range(0, episodes, embedded.count):
        batch = _Batch(embedded, godot, first)
        batch.play(np.random.default_rng((embedded.seed, first)))
        records += batch.records[: episodes - first]
        tell(len(records))
        if first == 0:
            first_path = np.array(batch.path).swapaxes(0, 1)
    return records, first_path


def agrees(summary: dict[str, Any]) -> bool:
    """Whether everything agrees within 1 mm and all episodes end alike."""
    return bool(summary["share_within_1mm"] == summary["outcome_agreement"] == 1.0)


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

    def __init__(self, embedded: Arenas, godot: GodotArenas, first: int) -> None:
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
        first = self.records[0]["episode"]
        ours_seen = self.embedded.reset(first_arena=first)
        if self.embedded.variation is not None:
            self.godot.vary(self.embedded.rules_in_force)
        theirs_seen = self.godot.reset(first_arena=first)
        for record, drawn in zip(self.records, self.embedded.arenas["layout"], strict=True):
            record["layout"] = self.embedded.layouts[drawn].name
        playing = np.ones(self.embedded.count, dtype=bool)
        self._compare(ours_seen, theirs_seen, playing)
        actions = np.zeros((self.embedded.count, 2, 3), dtype=np.float32)
        while playing.any():
            _draw_actions(actions, self.embedded, random)
            ours = self.embedded.step(actions, restart=False)
            theirs = self.godot.step(actions, restart=False)
            self._compare(ours.observations, theirs.observations, playing)
            self._compare_results(ours, theirs, playing)
            playing &= ours.ends == GOING_ON

    def _compare(self, ours: np.ndarray, theirs: np.ndarray, playing: np.ndarray) -> None:
        """State and sight after a decision, of the arenas that are still in play."""
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

    def _compare_results(self, ours: Results, theirs: Results, playing: np.ndarray) -> None:
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


def _draw_actions(actions: np.ndarray, arenas: Arenas, random: np.random.Generator) -> None:
    """Random actions held for a while; now and then both run at each other, to touch."""
    count = len(actions)
    fresh = random.random(count) < 0.15
    actions[fresh] = random.uniform(-1.2, 1.2, (int(fresh.sum()), 2, 3))
    places = vectors(arenas.agents, "x", "y", "z")[..., [0, 2]]
    meeting = np.arange(count) % 2 == 0
    towards = places[:, ::-1] - places + random.normal(0.0, 0.5, places.shape)
    actions[meeting, :, :2] = towards[meeting]
    actions[meeting, :, 2] = random.random((int(meeting.sum()), 2)) < 0.2


def plot_parity(path: Path, episodes: list[dict[str, Any]], positions: np.ndarray) -> None:
    """Draw what `compare_engines` returns: positions are (2 engines, decisions, 2 agents, 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    above, errors = figure.subplots(1, 2)
    for agent, colour in enumerate(("tab:red", "tab:blue")):
        for engine, (name, style) in enumerate((("embedded", "-"), ("Godot", ":"))):
            walked = positions[engine, :, agent]
            label = f"{'seeker' if agent == 0 else 'hider'}, {name}"
            width = 1.5 if engine == 0 else 4.0
            above.plot(walked[:, 0], walked[:, 2], style, color=colour, lw=width, label=label)
    above.set(
        title="An episode in the outermost arena, from above",
        xlabel="x (m)",
        ylabel="z (m)",
        aspect="equal",
    )
    above.invert_yaxis()
    above.legend(loc="upper right", fontsize=8)
    worst = [max(episode["worst_error_m"], IDENTICAL) for episode in episodes]
    errors.semilogy(range(len(worst)), worst, ".", color="tab:green")
    errors.axhline(MILLIMETRE, color="tab:red", lw=1)
    errors.annotate("1 mm", (0, 0.0012), color="tab:red")
    errors.annotate("identical to the bit", (0, IDENTICAL * 1.5), color="tab:green")
    errors.set(
        title="Largest position error of each episode",
        xlabel="episode",
        ylabel="m",
        ylim=(IDENTICAL / 10, 10.0),
    )
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110)
    write_whole(path, stream.getvalue())
