"""`estragon layout`: check a layout, see it from above, or make one from a seed."""

import dataclasses
from pathlib import Path
from typing import Annotated

import msgspec
import tyro

from estragon.support.files import ensure_writable, write_json
from estragon.support.options import optional
from estragon.tag.layout import draw_layout, load_layout
from estragon.tag.rules import load_rules


@dataclasses.dataclass(frozen=True)
class LayoutCommand:
    """Check a layout and show it from above: tall boxes solid, boxes to jump onto shaded."""

    layout: Annotated[str | None, tyro.conf.Positional, optional("LAYOUT")] = None
    """A layout's name, a .json file, or random:SEED; by default as in rules.json."""
    json_file: Annotated[Path | None, optional("FILE", name="json")] = None
    """Write the layout to this file, to edit it or use it elsewhere."""

    def run(self) -> None:
        """Load, print, and write."""
        if self.json_file is not None:
            ensure_writable(self.json_file)
        rules = load_rules()
        layout = load_layout(self.layout or rules.layout, rules)
        print(f"{layout.name}: {layout.description}")
        print(draw_layout(layout, rules))
        if self.json_file is not None:
            plain = msgspec.to_builtins(layout)
            del plain["name"]
            write_json(self.json_file, plain)
            print(f"wrote {self.json_file}")
