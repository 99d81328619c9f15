"""Trained tag policies as `.onnx` files, written only if both engines play like the policy."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from estragon import __version__
from estragon.onnx.compare import Engine, GodotRuntime, OnnxRuntime
from estragon.onnx.tag_graph import tag_model
from estragon.selfplay.checkpoint import StageRecord, TagRun
from estragon.selfplay.config import Task
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json, write_whole
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.policy_files import load_policies, load_policy
from estragon.tag.rules import ACTION_SIZE, AGENTS, ROLES, Rules

LEVELS = {
    "untrained": "0%",
    "beginner": "5%",
    "learner": "20%",
    "expert": "50%",
    "champion": "100%",
}
"""Strength of the opponent that a player chooses → the share of the training it has had."""
MANIFEST = "levels.json"
ABSOLUTE, RELATIVE = 1e-5, 1e-4
"""Tolerance between two engines."""
TIE = 1e-4
"""Logits closer than this share of the largest may be ordered either way by rounding."""
SEED = 1
ARENAS, DECISIONS = 64, 48
NOISE_SHARE = 8
"""One random observation for this many observations from matches."""


class PolicyExport(NamedTuple):
    """A policy to be written as `<name>.onnx`."""

    name: str
    policy: FrozenPolicy
    about: Mapping[str, str]


def exports_of_files(policies: Sequence[Path], rules: Rules) -> list[PolicyExport]:
    """The policies in files; a file with both roles becomes two."""
    exports: list[PolicyExport] = []
    for path in policies:
        found = load_policies(path, rules)
        for role, policy in found.items():
            name = path.stem if len(found) == 1 else f"{path.stem}_{role}"
            if name in (export.name for export in exports):
                raise UserError(f"two files would become {name}.onnx: export one at a time")
            about = {"agent_steps": str(policy.trained_steps)}
            exports.append(PolicyExport(name, policy, about))
    return exports


def exports_of_run(
    run: TagRun, task: Task, kept: Sequence[StageRecord], *, levels: bool
) -> list[PolicyExport]:
    """The final policies of a run, or those of every level, from the stages it kept."""
    stages = {stage.name: stage for stage in kept}
    exports = []
    for level, share in (LEVELS if levels else {"": kept[-1].name}).items():
        if share not in stages:
            had = ", ".join(stages)
            raise UserError(f"{run.path} has no policies at {share}, only at {had}")
        stage = stages[share]
        if levels and len(stage.roles) < len(ROLES):
            raise UserError(f"{run.path}: only the {stage.roles[0]} learned; levels need both")
        about = {
            "stage": level or share,
            "run": run.run_id,
            "seed": str(task.seed),
            "agent_steps": str(stage.agent_steps),
        }
        for role in (role for role in ROLES if role in stage.roles):
            path = run.checkpoint(role, stage.updates, ".npz")
            name = f"{level}_{role}" if level else role
            exports.append(PolicyExport(name, load_policy(path, task.rules, role), about))
    return exports


def write_exports(
    exports: Sequence[PolicyExport], out: Path, rules: Rules, layouts: list[Layout]
) -> Iterator[str]:
    """Write each file after checking it in both engines; yields a line about each."""
    for export in exports:
        ensure_writable(out / f"{export.name}.onnx")
    models = [_model_bytes(export, rules) for export in exports]
    runtime = OnnxRuntime()
    with tempfile.TemporaryDirectory(prefix="estragon-") as folder, GodotRuntime() as godot:
        for export, model in zip(exports, models, strict=True):
            made = Path(folder) / f"{export.name}.onnx"
            made.write_bytes(model)
            observations = sample_observations(export.policy, rules, layouts)
            worst = 0.0
            for engine in (runtime, godot):
                engine.load(made)
                worst = max(worst, check_model(made.name, engine, export.policy, observations))
            target = out / made.name
            write_whole(target, model)
            yield (
                f"wrote {target}: {len(model) / 1000:.0f} kB, within {worst:.1g} of the policy in "
                f"onnxruntime and in Godot ({len(observations):,} observations)"
            )


def write_levels(exports: Sequence[PolicyExport], out: Path, rules: Rules) -> None:
    """List the levels in order, for the game to offer."""
    about = exports[0].about
    levels: dict[str, dict[str, Any]] = {}
    for export in exports:
        name = export.about["stage"]
        steps = int(export.about["agent_steps"])
        level = {"name": name, "trained": LEVELS[name], "agent_steps": steps}
        levels.setdefault(name, level)[export.policy.role] = f"{export.name}.onnx"
    manifest = {"run": about["run"], "seed": int(about["seed"]), "rules_hash": rules.digest}
    write_json(out / MANIFEST, manifest | {"levels": list(levels.values())})


def sample_observations(policy: FrozenPolicy, rules: Rules, layouts: list[Layout]) -> np.ndarray:
    """Observations of a policy against random actions, and random ones: (rows, size) float32."""
    from estragon.tag.arenas import Arenas

    random = np.random.default_rng(SEED)
    arenas = Arenas(ARENAS, rules=rules, layout=layouts, seed=SEED)
    observations = arenas.reset()
    seen = []
    for _ in range(DECISIONS):
        own = arenas.is_seeker if policy.role == "seeker" else ~arenas.is_seeker
        seen.append(observations[own].copy())
        actions = random.uniform(-1.0, 1.0, (ARENAS, AGENTS, ACTION_SIZE)).astype(np.float32)
        actions[own] = policy.act(seen[-1])
        observations = arenas.step(actions).observations
    played = np.concatenate(seen)
    noise = random.normal(0.0, 3.0, (len(played) // NOISE_SHARE, played.shape[1]))
    return np.concatenate([played, noise.astype(np.float32)])


def check_model(name: str, engine: Engine, policy: FrozenPolicy, observations: np.ndarray) -> float:
    """UserError unless the loaded model acts as the policy does; returns the largest difference.

    Either move is accepted where two moves, or jumping and not jumping, are tied up to rounding.
    """
    state = np.zeros(len(observations), dtype=np.float32)
    found = engine.run({"obs": observations, "state_ins": state})
    logits = policy.scores(observations)
    decided = ~_is_tied(logits.astype(np.float64), len(policy.moves))
    worst = 0.0
    for what, ours, right in (
        ("actions", found["output"][decided], policy.act(observations)[decided]),
        ("values", found["value"][:, 0], logits[:, -1]),
    ):
        error = np.abs(ours.astype(np.float64) - right)
        if not (error <= ABSOLUTE + RELATIVE * np.abs(right)).all():
            raise UserError(
                f"{name}: {what} differ from the policy's by {np.nanmax(error):.2g}; not written"
            )
        worst = max(worst, float(error.max(initial=0.0)))
    return worst


def _is_tied(logits: np.ndarray, moves: int) -> np.ndarray:
    second, best = np.sort(logits[:, :moves], axis=1)[:, -2:].T
    margin = TIE * np.abs(logits).max(axis=1)
    tied: np.ndarray = (best - second <= margin) | (np.abs(logits[:, moves]) <= margin)
    return tied


def _model_bytes(export: PolicyExport, rules: Rules) -> bytes:
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
