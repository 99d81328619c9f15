"""`estragon godot path`."""

import dataclasses

from estragon.godot.find import find_godot


@dataclasses.dataclass(frozen=True)
class GodotPathCommand:
    """Print the path of the Godot in use, and nothing else."""

    def run(self) -> None:
        """Find and print."""
        print(find_godot())
