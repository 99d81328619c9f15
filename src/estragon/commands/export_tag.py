"""`estragon export tag`: trained policies as `.onnx` files, for a game without Python."""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from estragon import __version__
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json, write_whole
from estragon.support.options import optional

if TYPE_CHECKING:
    from estragon.tag.frozen import FrozenPolicy
    from estragon.tag.layout import Layout
    from estragon.tag.rules import Rules

LEVELS = {
    "untrained": "0%",
    "beginner": "5%",
    "learner": "20%",
    "expert": "50%",
    "champion": "100%",
}
"""How strong an opponent one may choose, and how much of the training it has had."""
MANIFEST = "levels.json"


class Export(NamedTuple):
    """A policy that is to be written."""

    name: str
    """The file's, without its ending."""
    policy: "FrozenPolicy"
    about: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class ExportTag:
    """Write trained policies as .onnx files that play alike in Godot, onnxruntime and Python."""

    policies: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Policy files (.npz or .pt); by default those of a run."""
    run_name: Annotated[str | None, optional("RUN", "run")] = None
    """The run: its folder, its id, or the folder it was trained into; the latest if not given."""
    levels: bool = False
    """Write all levels of the game, from untrained to champion, not the finished policies alone."""
    out: Path = Path("policies")
    """The folder they go to."""
    rules_file: Annotated[Path | None, optional("FILE")] = None
    """The rules that policy files were trained by, where they are not the game's own."""

    def run(self) -> None:
        """Make every model, check it in both engines, put it in its place, and tell."""
        rules, layouts, exports = self._from_files() if self.policies else self._from_run()
        for export in exports:
            ensure_writable(self.out / f"{export.name}.onnx")
        self._write(rules, layouts, exports)
        if self.levels:
            write_json(self.out / MANIFEST, _manifest(rules, exports))

    def _write(self, rules: "Rules", layouts: "list[Layout]", exports: list[Export]) -> None:
        from estragon.onnx.engines import Godot, Runtime
        from estragon.onnx.tag_proof import check_model, sample_observations

        models = [_model_of(export, rules) for export in exports]
        runtime = Runtime()
        with tempfile.TemporaryDirectory(prefix="estragon-") as folder, Godot() as godot:
            for export, model in zip(exports, models, strict=True):
                made = Path(folder) / f"{export.name}.onnx"
                made.write_bytes(model)
                observations = sample_observations(export.policy, rules, layouts)
                worst = 0.0
                for engine in (runtime, godot):
                    engine.load(made)
                    found = check_model(made.name, engine, export.policy, observations)
                    worst = max(worst, found)
                target = self.out / made.name
                write_whole(target, model)
                print(
                    f"wrote {target}: {target.stat().st_size / 1000:.0f} kB, within {worst:.1g} of "
                    f"the policy in onnxruntime and in Godot ({len(observations):,} observations)",
                    flush=True,
                )

    def _from_files(self) -> "tuple[Rules, list[Layout], list[Export]]":
        from estragon.tag.layout import load_layouts
        from estragon.tag.policy_files import load_policies
        from estragon.tag.rules import load_rules

        if self.run_name is not None or self.levels:
            raise UserError("give policy files, or a run (--run, --levels), not both")
        rules = load_rules(self.rules_file)
        exports: list[Export] = []
        for path in self.policies:
            held = load_policies(path, rules)
            for role, policy in held.items():
                name = path.stem if len(held) == 1 else f"{path.stem}_{role}"
                if name in (export.name for export in exports):
                    raise UserError(f"two files would become {name}.onnx: export one at a time")
                about = {"agent_steps": str(policy.trained_steps)}
                exports.append(Export(name, policy, about))
        return rules, load_layouts(rules.layout, rules), exports

    def _from_run(self) -> "tuple[Rules, list[Layout], list[Export]]":
        from estragon.selfplay.checkpoint import TagRun, read_stages
        from estragon.tag.policy_files import load_policy
        from estragon.tag.roles import ROLES

        if self.rules_file is not None:
            raise UserError("--rules-file: only with policy files; a run knows its rules")
        folder = TagRun.find(Path(), self.run_name or "latest")
        task, kept = read_stages(folder)
        stages = {stage.name: stage for stage in kept}
        wanted = LEVELS if self.levels else {"": kept[-1].name}
        exports = []
        for level, share in wanted.items():
            if share not in stages:
                had = ", ".join(stages)
                raise UserError(f"{folder.path} kept no policies at {share}, only at {had}")
            stage = stages[share]
            if self.levels and len(stage.roles) < len(ROLES):
                raise UserError(
                    f"{folder.path}: only the {stage.roles[0]} learned; levels need both"
                )
            for role in (role for role in ROLES if role in stage.roles):
                path = folder.checkpoint(role, stage.updates, ".npz")
                about = {
                    "stage": level or share,
                    "run": folder.run_id,
                    "seed": str(task.seed),
                    "agent_steps": str(stage.agent_steps),
                }
                name = f"{level}_{role}" if level else role
                exports.append(Export(name, load_policy(path, task.rules, role), about))
        return task.rules, task.layouts, exports


def _model_of(export: Export, rules: "Rules") -> bytes:
    from estragon.onnx.tag_graph import tag_model

    about = {
        "role": export.policy.role,
        **export.about,
        "rules": rules.rules,
        "rules_hash": rules.digest,
        "observation_version": str(rules.observation.version),
        "observation_size": str(rules.observation.size),
        "decision_ticks": str(rules.episode.step_tick_interval),
        "estragon": __version__,
    }
    model = tag_model(export.policy, rules, about)
    return bytes(model.SerializeToString(deterministic=True))


def _manifest(rules: "Rules", exports: list[Export]) -> dict[str, Any]:
    """The levels in order, for the game to offer."""
    about = exports[0].about
    levels: dict[str, dict[str, Any]] = {}
    for export in exports:
        level = levels.setdefault(
            export.about["stage"],
            {
                "name": export.about["stage"],
                "trained": LEVELS[export.about["stage"]],
                "agent_steps": int(export.about["agent_steps"]),
            },
        )
        level[export.policy.role] = f"{export.name}.onnx"
    return {
        "run": about["run"],
        "seed": int(about["seed"]),
        "rules_hash": rules.digest,
        "levels": list(levels.values()),
    }
