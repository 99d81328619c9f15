"""`estragon export tag`: trained policies as `.onnx` files, for a game without Python."""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import tyro

from estragon.support.errors import UserError
from estragon.support.options import check_span, optional


@dataclasses.dataclass(frozen=True)
class ExportTagCommand:
    """Export trained policies as .onnx files that act the same in Godot, onnxruntime and Python."""

    policies: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Policy files (.npz, .pt, or .onnx of an earlier export); default: those of a run."""
    run_name: Annotated[str | None, optional("RUN", "run")] = None
    """The run: its directory, its id, or the directory it was trained into; default: the latest."""
    levels: bool = False
    """Write all levels of the game, from untrained to champion, not only the final policies."""
    out: Path = Path("policies")
    """Output directory."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """The rules that the policy files were trained with, if not the game's own."""
    verify: bool = True
    """Compare the actions of each file and of its policy on thousands of observations, in
    onnxruntime and in Godot, before writing it."""

    quantize: Annotated[Literal["int8"] | None, optional("int8")] = None
    """Also write <name>.int8.onnx, calibrated on matches, and say what it costs and saves."""
    matches: int = 1000
    """Matches for the win rates of --quantize."""

    def run(self) -> None:
        """Export."""
        from estragon.onnx import tag_export
        from estragon.selfplay.checkpoint import TagRun, read_stages
        from estragon.tag.layout import load_layouts
        from estragon.tag.rules import load_rules

        check_span("--matches", self.matches, 1, 1_000_000)
        if self.policies:
            if self.run_name is not None or self.levels:
                raise UserError("give policy files, or a run (--run, --levels), not both")
            rules = load_rules(self.rules_file)
            layouts = load_layouts(rules.layout, rules)
            exports = tag_export.exports_of_files(self.policies, rules)
        else:
            if self.rules_file is not None:
                raise UserError("--rules-file is only for policy files; a run has its own rules")
            run = TagRun.find(Path(), self.run_name or "latest")
            task, stages = read_stages(run)
            rules, layouts = task.rules, task.layouts
            exports = tag_export.exports_of_run(run, task, stages, levels=self.levels)
        for line in tag_export.write_exports(exports, self.out, rules, layouts, verify=self.verify):
            print(line, flush=True)
        if self.quantize is not None:
            for line in tag_export.quantize_exports(
                exports, self.out, rules, layouts, self.matches
            ):
                print(line, flush=True)
        if self.levels:
            tag_export.write_levels(exports, self.out, rules)
