"""`estragon eval tag`: how often does this seeker catch that hider?"""

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional
from estragon.support.progress import Progress

if TYPE_CHECKING:
    from estragon.tag.layout import Layout
    from estragon.tag.matches import Outcomes, Watcher
    from estragon.tag.players import Player
    from estragon.tag.rules import Rules

GODOT_ARENAS = 32
"""Matches played side by side in one Godot process."""
TELL_SEC = 10.0
"""How often a long run says how far it is where there is no terminal."""
Z95 = 1.959963984540054


@dataclasses.dataclass(frozen=True)
class EvalTag:
    """Play matches of tag between two players and report how often the seeker wins."""

    seeker: str
    """A policy file (.npz), or bot:random, bot:chaser, bot:evader."""
    hider: str
    """The same, for the hider."""
    engine: Literal["embedded", "godot"] = "embedded"
    """Where the matches are played; both engines play the same ones."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout's name, a .json file, random:SEED, random:FIRST-LAST, or several with commas
    between; the game's default if not given."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek (a tag ends the match) or transfer (a tag hands over the role); by default as in
    rules.json."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """A rules file to play by instead of the game's own."""
    seed: int = 0
    """Decides spawns and layouts; the same seed plays the same matches."""
    episodes: int = 1000
    """How many matches."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write the result to this file as well."""

    def run(self, watcher: "Watcher | None" = None) -> None:
        """Play, print, and write; a watcher sees every decision."""
        if self.json_file is not None:
            ensure_writable(self.json_file)
        result = self.evaluate(watcher)
        low, high = result["ci95"]
        print(
            f"{result['seeker']} tags {result['hider']} in {result['seeker_win_rate']:.1%} of "
            f"{self.episodes} matches (95% interval {low:.1%} to {high:.1%}); "
            f"a match lasts {result['mean_seconds']:.2f} s on average "
            f"[{result['layout']}, {result['rules']}, seed {self.seed}]"
        )
        if self.json_file is not None:
            write_json(self.json_file, result)
            print(f"wrote {self.json_file}")

    def evaluate(self, watcher: "Watcher | None" = None) -> dict[str, Any]:
        """Play the matches; returns what goes into the JSON file."""
        if not 1 <= self.episodes <= 10_000_000:
            raise UserError(f"--episodes: expected 1 to 10,000,000, got {self.episodes}")
        from estragon.tag.layout import load_layouts
        from estragon.tag.players import load_player
        from estragon.tag.rules import load_rules

        rules = load_rules(self.rules_file, rules=self.rules)
        spec = self.layout or rules.layout
        seeker = load_player(self.seeker, rules, "seeker")
        hider = load_player(self.hider, rules, "hider")
        layouts = load_layouts(spec, rules)
        outcomes = self._play(seeker, hider, rules, layouts, watcher)
        # a draw, possible under transfer rules only, is half a win for each
        rate = float(
            np.mean(np.select([outcomes.winners == 0, outcomes.winners == 1], [1.0, 0.0], 0.5))
        )
        return {
            "engine": self.engine,
            "seeker": self.seeker,
            "hider": self.hider,
            "layout": spec,
            "rules": rules.rules,
            "seed": self.seed,
            "episodes": self.episodes,
            "seeker_win_rate": rate,
            "ci95": wilson_interval(rate, self.episodes),
            "mean_seconds": float(outcomes.ticks.mean()) / rules.physics.ticks_per_second,
        }

    def _play(
        self,
        seeker: "Player",
        hider: "Player",
        rules: "Rules",
        layouts: "list[Layout]",
        watcher: "Watcher | None",
    ) -> "Outcomes":
        from estragon.tag.matches import play_batches, play_matches

        with Progress(TELL_SEC) as progress:

            def tell(played: int) -> None:
                progress.update(played, self.episodes, " matches")

            progress.step("playing", announced=False)
            if self.engine == "embedded":
                return play_matches(
                    seeker,
                    hider,
                    self.episodes,
                    rules=rules,
                    layouts=layouts,
                    seed=self.seed,
                    tell=tell,
                    watcher=watcher,
                )
            from estragon.tag.godot_arenas import GodotArenas

            count = min(self.episodes, GODOT_ARENAS)
            with GodotArenas(
                count, rules=rules, layouts=layouts, seed=self.seed, rules_file=self.rules_file
            ) as arenas:
                return play_batches(
                    seeker,
                    hider,
                    self.episodes,
                    lambda first: (arenas, arenas.reset(first)),
                    tell,
                    watcher,
                )


def wilson_interval(rate: float, count: int) -> list[float]:
    """The 95% interval of a share that was seen in `count` trials (Wilson's score interval)."""
    z2 = Z95 * Z95
    middle = (rate + z2 / (2 * count)) / (1 + z2 / count)
    reach = Z95 / (1 + z2 / count) * math.sqrt(rate * (1 - rate) / count + z2 / (4 * count * count))
    return [max(0.0, middle - reach), min(1.0, middle + reach)]
