"""`estragon parity`: the same actions in both engines; do they agree to the bit?"""

import dataclasses
from pathlib import Path
from typing import Annotated

from estragon.support.files import ensure_writable, write_json
from estragon.support.options import check_span, optional
from estragon.support.progress import counting


@dataclasses.dataclass(frozen=True)
class ParityCommand:
    """Play the same random actions in Godot and in the embedded engine, and compare everything."""

    episodes: int = 200
    """Number of episodes."""
    layout: Annotated[str | None, optional("LAYOUT")] = None
    """A layout, or several separated by commas; by default as in rules.json."""
    rules: Annotated[str | None, optional("NAME")] = None
    """seek, transfer or hide; by default as in rules.json."""
    rewards: Annotated[str | None, optional("NAME")] = None
    """A reward profile; by default as in rules.json."""
    parameters: Annotated[Path | None, optional("FILE")] = None
    """Draw the rule numbers and the layout of every episode as this parameter file says; of a
    curriculum, its last lesson."""
    seed: int = 0
    """Seed of the spawns and of the actions."""
    arenas: int = 32
    """Episodes played side by side in one Godot process."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write summary and episodes to this file."""
    plot: Annotated[Path | None, optional("FILE")] = None
    """Write a picture of the paths in both engines and of the largest errors to this file."""

    def run(self) -> int:
        """Compare, print, write; 0 if all agree within 1 mm and end alike, else 1."""
        from estragon.tag.arenas import Arenas
        from estragon.tag.godot_arenas import GodotArenas
        from estragon.tag.layout import load_layouts
        from estragon.tag.parity import agrees, compare_engines, plot_parity, summarise
        from estragon.tag.rules import load_rules
        from estragon.tag.variation import Variation

        check_span("--episodes", self.episodes, 1, 1_000_000)
        check_span("--arenas", self.arenas, 1, 1024)
        for path in (self.json_file, self.plot):
            if path is not None:
                ensure_writable(path)
        rules = load_rules(rules=self.rules, rewards=self.rewards)
        count = min(self.arenas, self.episodes)
        if self.parameters is None:
            variation, layouts = None, load_layouts(self.layout or rules.layout, rules)
        else:
            variation = Variation.read(self.parameters, rules, self.layout)
            layouts = variation.layouts_of(-1)
        embedded = Arenas(count, rules=rules, layout=layouts, seed=self.seed, variation=variation)
        embedded.lesson = len(variation.plan.lessons) - 1 if variation else 0
        with (
            counting("comparing", " episodes") as report,
            GodotArenas(count, rules=rules, layouts=layouts, seed=self.seed) as godot,
        ):
            episodes, positions = compare_engines(
                embedded, godot, self.episodes, lambda done: report(done, self.episodes)
            )
        summary = summarise(episodes)
        for key, value in summary.items():
            print(f"{key:20} {value}")
        if self.json_file is not None:
            write_json(self.json_file, {**summary, "per_episode": episodes})
            print(f"wrote {self.json_file}")
        if self.plot is not None:
            plot_parity(self.plot, episodes, positions)
            print(f"wrote {self.plot}")
        return 0 if agrees(summary) else 1
