"""`estragon distill` for tag: small policies as verified files, with size, speed and strength."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from estragon.onnx.compare import GodotRuntime, OnnxRuntime
from estragon.onnx.quantize import cost, describe_cost
from estragon.onnx.tag_export import PolicyExport, load_exported, write_exports
from estragon.onnx.tag_strength import compare_strength, describe_strength, opponents_of
from estragon.selfplay.distill import distill
from estragon.support.errors import UserError
from estragon.support.progress import counting
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.layout import load_layouts
from estragon.tag.matches import Player
from estragon.tag.policy_files import load_policies, save_policies
from estragon.tag.rules import Role, Rules, load_rules


def distill_policies(
    teachers: Sequence[Path],
    layers: Sequence[int],
    out: Path,
    *,
    label: str,
    rounds: int,
    matches: int,
    seed: int,
) -> Iterator[str]:
    """Write `<teacher>-<label>.npz` and `.onnx` for every policy; yields what each is like."""
    rules = load_rules()
    layouts = load_layouts(rules.layout, rules)
    policies = _load(teachers, rules)
    players: dict[Role, Player] = {role: policy for role, (_, policy) in policies.items()}
    for role, (name, teacher) in policies.items():
        opponents = opponents_of(role, players, rules)
        with counting(f"teaching the {role}", " rounds") as report:
            student = distill(
                teacher,
                layers,
                list(opponents.values()),
                rules=rules,
                layouts=layouts,
                seed=seed,
                rounds=rounds,
                report=report,
            )
        target = out / f"{name}-{label}.onnx"
        save_policies(target.with_suffix(".npz"), {role: student}, rules)
        about = {
            "agent_steps": str(teacher.trained_steps),
            "distilled_from": f"{name}, {teacher.trained_steps} steps",
        }
        yield from write_exports([PolicyExport(target.stem, student, about)], out, rules, layouts)
        rates = compare_strength(
            teacher, student, role, opponents, rules=rules, layouts=layouts, matches=matches
        )
        original = out / f".{name}.teacher.onnx"
        try:
            export = PolicyExport(original.stem, teacher, {})
            list(write_exports([export], out, rules, layouts, verify=False))
            with GodotRuntime() as godot:
                spent = describe_cost(cost(original, target, (OnnxRuntime(), godot)))
        finally:
            original.unlink(missing_ok=True)
        yield f"{target}: {spent}; {describe_strength(rates, matches)}"


def _load(teachers: Sequence[Path], rules: Rules) -> dict[Role, tuple[str, FrozenPolicy]]:
    """Name and policy of each role."""
    found: dict[Role, tuple[str, FrozenPolicy]] = {}
    for path in teachers:
        if path.suffix == ".onnx":
            policy = load_exported(path, rules)
            policies = {policy.role: policy}
        else:
            policies = load_policies(path, rules)
        for role, policy in policies.items():
            if role in found:
                raise UserError(f"two teachers play the {role}: {found[role][0]} and {path.stem}")
            found[role] = (path.stem if len(policies) == 1 else f"{path.stem}_{role}", policy)
    return found
