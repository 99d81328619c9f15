"""Trained tag policies as `.onnx` files, written only if both engines play like the policy.

Everything `FrozenPolicy.act` does is in the graph, in the same order: the turn into the heading
frame, the normalisation, the network, the choice of a move, and the turn back. World axes go in,
and world axes come out. Inputs and outputs have the names that Godot RL Agents gives them.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from estragon import __version__
from estragon.onnx.compare import Engine, GodotRuntime, OnnxRuntime
from estragon.onnx.metadata import about_policy, read_metadata, read_model
from estragon.onnx.quantize import INT8, cost, describe_cost, outputs_of, quantized
from estragon.onnx.tag_strength import (
    OnnxPlayer,
    compare_strength,
    describe_strength,
    opponents_of,
)
from estragon.selfplay.checkpoint import StageRecord, TagRun
from estragon.selfplay.config import Task
from estragon.support.errors import UserError
from estragon.support.files import ensure_writable, write_json, write_whole
from estragon.tag.frozen import CLIP, TURNED_FIELDS, FrozenPolicy
from estragon.tag.layout import Layout
from estragon.tag.matches import Player
from estragon.tag.policy_files import load_policies, load_policy
from estragon.tag.rules import ACTION_SIZE, AGENTS, ROLES, Role, Rules

LEVELS = {
    "untrained": "0%",
    "beginner": "5%",
    "learner": "20%",
    "expert": "50%",
    "champion": "100%",
}
"""Strength of the opponent that a player chooses → the share of the training it has had."""
MANIFEST = "levels.json"
OF_THE_RUN = ("stage", "run", "seed", "distilled_from")
ABSOLUTE, RELATIVE = 1e-5, 1e-4
"""Tolerance between two engines."""
TIE = 1e-4
"""Logits closer than this share of the largest may be ordered either way by rounding."""
SEED = 1
ARENAS, DECISIONS = 64, 48
NOISE_SHARE = 8
"""One random observation for this many observations from matches."""
ACTIONS = (
    {"key": "move", "action_type": "continuous", "size": 2},
    {"key": "jump", "action_type": "continuous", "size": 1},
)
OPSET, IR_VERSION = 13, 8
"""Old enough for every runtime in use."""


class PolicyExport(NamedTuple):
    """A policy to be written as `<name>.onnx`."""

    name: str
    policy: FrozenPolicy
    about: Mapping[str, str]


def exports_of_files(policies: Sequence[Path], rules: Rules) -> list[PolicyExport]:
    """The policies in files; a file with both roles becomes two.

    A file may itself be an export, which keeps what it says about its run.
    """
    exports: list[PolicyExport] = []
    for path in policies:
        told: dict[str, str] = {}
        if path.suffix == ".onnx":
            policy = load_exported(path, rules)
            found = {policy.role: policy}
            about = read_metadata(path)
            told = {key: about[key] for key in OF_THE_RUN if key in about}
        else:
            found = load_policies(path, rules)
        for role, policy in found.items():
            name = path.stem if len(found) == 1 else f"{path.stem}_{role}"
            if name in (export.name for export in exports):
                raise UserError(f"two files would become {name}.onnx: export one at a time")
            about = {"agent_steps": str(policy.trained_steps)} | told
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
    exports: Sequence[PolicyExport],
    out: Path,
    rules: Rules,
    layouts: list[Layout],
    *,
    verify: bool = True,
) -> Iterator[str]:
    """Write each file after checking it in both engines; yields a line about each."""
    for export in exports:
        ensure_writable(out / f"{export.name}.onnx")
    models = [_model_bytes(export, rules) for export in exports]
    if not verify:
        for export, model in zip(exports, models, strict=True):
            target = out / f"{export.name}.onnx"
            write_whole(target, model)
            yield f"wrote {target}: {len(model) / 1000:.0f} kB, not compared with the policy"
        return
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


def quantize_exports(
    exports: Sequence[PolicyExport], out: Path, rules: Rules, layouts: list[Layout], matches: int
) -> Iterator[str]:
    """Write `<name>.int8.onnx` beside each file that was written; yields what that costs."""
    players: dict[Role, Player] = {
        export.policy.role: OnnxPlayer(out / f"{export.name}.onnx") for export in exports
    }
    with GodotRuntime() as godot:
        for export in exports:
            source = out / f"{export.name}.onnx"
            target = out / f"{export.name}.{INT8}.onnx"
            seen = sample_observations(export.policy, rules, layouts)[: ARENAS * DECISIONS]
            held_out = len(seen) // 2
            state = np.zeros(1, np.float32)
            feeds = [{"obs": row[None], "state_ins": state} for row in seen[:held_out]]
            write_whole(target, quantized(source.read_bytes(), feeds))
            rest = [{"obs": seen[held_out:], "state_ins": np.zeros(len(seen) - held_out, "f4")}]
            apart = np.abs(outputs_of(source, rest) - outputs_of(target, rest)).max(axis=1)
            role = export.policy.role
            rates = compare_strength(
                OnnxPlayer(source),
                OnnxPlayer(target),
                role,
                opponents_of(role, players, rules),
                rules=rules,
                layouts=layouts,
                matches=matches,
            )
            yield (
                f"wrote {target}: {describe_cost(cost(source, target, (OnnxRuntime(), godot)))}; "
                f"{np.mean(apart > TIE):.1%} of actions changed; "
                f"{describe_strength(rates, matches)}"
            )


def load_exported(path: Path, rules: Rules) -> FrozenPolicy:
    """The very policy that was exported to a file; UserError if that is no export of tag."""
    model = read_model(path)
    about = {entry.key: entry.value for entry in model.metadata_props}
    numbers = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    layers = sum(name.startswith("weight_") for name in numbers)
    role = about.get("role")
    if role not in ROLES or not {"mean", "scale", "moves", "weight_0"} <= set(numbers):
        raise UserError(f"{path} is not a policy of tag, or it is quantized; export it again")
    if about.get("observation_version") not in (None, str(rules.observation.version)):
        raise UserError(f"{path} is of observation version {about['observation_version']}")
    try:
        return FrozenPolicy(
            role,
            rules,
            mean=_put_back(numbers["mean"], rules),
            scale=_put_back(numbers["scale"], rules),
            moves=numbers["moves"],
            weights=[
                (
                    _put_back(numbers["weight_0"], rules) if n == 0 else numbers[f"weight_{n}"],
                    numbers[f"bias_{n}"],
                )
                for n in range(layers)
            ],
            name=path.name,
            trained_steps=int(about.get("agent_steps", 0)),
        )
    except (IndexError, KeyError, ValueError) as error:
        raise UserError(f"{path} is not a policy of this game: {error}") from error


def _put_back(turned_first: np.ndarray, rules: Rules) -> np.ndarray:
    """The rows of a graph's features in the order of an observation."""
    x, z = _turned(rules)
    rows = turned_first[-rules.observation.size :].copy()
    rows[x + z] = turned_first[: len(x) + len(z)]
    return rows


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
    """Observations of a policy against random actions, random ones, and edges.

    Returns:
        (rows, size) float32: thousands of real ones, then one of noise for eight of these, then
        zeros, ones, single ones and huge numbers.
    """
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
    size = played.shape[1]
    noise = random.normal(0.0, 3.0, (len(played) // NOISE_SHARE, size))
    edges = np.outer([0.0, 1.0, -1.0, 0.5, 1e3, -1e3, 1e6, -1e6, 1e-30], np.ones(size))
    return np.concatenate([played, noise, edges, np.eye(size)]).astype(np.float32)


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
        **about_policy(
            algorithm="ppo",
            trainer="estragon self-play",
            observations={"obs": {"space": "box", "size": [rules.observation.size]}},
            actions=ACTIONS,
            normalization="in the graph: obs",
            memory=0,
            training_steps=export.policy.trained_steps,
        ),
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


class _Graph:
    """Nodes and constants in order; a value is referred to by its name."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, name: str, value: ArrayLike, dtype: DTypeLike = np.float32) -> str:
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=dtype), name))
        return name

    def add(self, operator: str, result: str, *inputs: str, **attributes: int) -> str:
        node = helper.make_node(operator, list(inputs), [result], result)
        node.attribute.extend(helper.make_attribute(*pair) for pair in attributes.items())
        self.nodes.append(node)
        return result

    def columns(self, result: str, of: str, indices: ArrayLike) -> str:
        """Some columns of a matrix."""
        return self.add(
            "Gather", result, of, self.constant(f"{result}_at", indices, np.int64), axis=1
        )


def tag_model(policy: FrozenPolicy, rules: Rules, about: Mapping[str, str]) -> ModelProto:
    """The policy as a deterministic model, with `about` as its metadata."""
    graph = _Graph()
    forward = rules.field("forward").start
    forward_x = graph.columns("forward_x", "obs", [forward])
    forward_z = graph.columns("forward_z", "obs", [forward + 1])
    features = _features(graph, policy, rules, forward_x, forward_z)
    logits = _network(graph, policy, features, rules)
    _action(graph, policy, logits, forward_x, forward_z)
    graph.columns("value", logits, [len(policy.moves) + 1])
    graph.add("Identity", "state_outs", "state_ins")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"tag_{policy.role}",
            [_port("obs", rules.observation.size), _port("state_ins")],
            [_port("output", ACTION_SIZE), _port("state_outs"), _port("value", 1)],
            graph.constants,
        ),
        producer_name="estragon",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, dict(about))
    checker.check_model(model, full_check=True)
    return model


def _port(name: str, *sizes: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *sizes])


def _turned(rules: Rules) -> tuple[list[int], list[int]]:
    """Indices of the x and the z of every turned vector in an observation."""
    starts = [rules.field(field).start for field in TURNED_FIELDS]
    return starts, [start + 2 for start in starts]


def _with_turned_first(numbers: np.ndarray, rules: Rules, unturned: float) -> np.ndarray:
    """Reorder numbers, one row per feature: the turned vectors first, then the observation.

    The vectors are in the observation, too: their rows there are set to `unturned`.
    """
    x, z = _turned(rules)
    rest = numbers.copy()
    rest[x + z] = unturned
    return np.concatenate([numbers[x], numbers[z], rest])


def _features(
    graph: _Graph, policy: FrozenPolicy, rules: Rules, forward_x: str, forward_z: str
) -> str:
    """Vectors in the heading frame, then the unchanged observation; all normalized."""
    x, z = _turned(rules)
    vectors = graph.columns("vectors", "obs", x + z)
    # a quarter turn takes (x, z) to (z, -x)
    swapped = graph.columns("swapped", "obs", z + x)
    signs = graph.constant("signs", [1.0] * len(z) + [-1.0] * len(x))
    quarter = graph.add("Mul", "quarter_turned", swapped, signs)
    ahead_and_aside = _turn(graph, "ahead_and_aside", vectors, quarter, forward_x, forward_z)
    turned = graph.add("Concat", "turned", ahead_and_aside, "obs", axis=1)
    mean = graph.constant("mean", _with_turned_first(policy.mean, rules, 0.0))
    scale = graph.constant("scale", _with_turned_first(policy.scale, rules, 1.0))
    scaled = graph.add("Div", "scaled", graph.add("Sub", "centred", turned, mean), scale)
    limits = graph.constant("least", -CLIP), graph.constant("most", CLIP)
    return graph.add("Clip", "features", scaled, *limits)


def _turn(
    graph: _Graph, result: str, vectors: str, quarter_turned: str, forward_x: str, forward_z: str
) -> str:
    """Vectors rotated by the heading: cosine of them plus sine of their quarter turn."""
    along = graph.add("Mul", f"{result}_along", vectors, forward_x)
    across = graph.add("Mul", f"{result}_across", quarter_turned, forward_z)
    return graph.add("Add", result, along, across)


def _network(graph: _Graph, policy: FrozenPolicy, features: str, rules: Rules) -> str:
    values = features
    for layer, (weight, bias) in enumerate(policy.weights):
        rows = _with_turned_first(weight, rules, 0.0) if layer == 0 else weight
        weights = graph.constant(f"weight_{layer}", rows)
        biases = graph.constant(f"bias_{layer}", bias)
        values = graph.add("Gemm", f"layer_{layer}", values, weights, biases)
        if layer < len(policy.weights) - 1:
            values = graph.add("Relu", f"hidden_{layer}", values)
    return values


def _action(
    graph: _Graph, policy: FrozenPolicy, logits: str, forward_x: str, forward_z: str
) -> None:
    """The best move rotated back into world axes, and whether to jump."""
    choices = len(policy.moves)
    move_scores = graph.columns("move_scores", logits, np.arange(choices))
    choice = graph.add("ArgMax", "choice", move_scores, axis=1, keepdims=0)
    ahead, aside = policy.moves.T
    moves = graph.constant("moves", policy.moves)
    # back into the world, a quarter turn takes (ahead, aside) to (-aside, ahead)
    quarter = graph.constant("moves_quarter_turned", np.stack([-aside, ahead], axis=1))
    move = graph.add("Gather", "move", moves, choice, axis=0)
    swapped = graph.add("Gather", "move_quarter_turned", quarter, choice, axis=0)
    in_world = _turn(graph, "move_in_world", move, swapped, forward_x, forward_z)
    jump_score = graph.columns("jump_score", logits, [choices])
    jumps = graph.add("Greater", "jumps", jump_score, graph.constant("zero", 0.0))
    jump = graph.add("Cast", "jump", jumps, to=TensorProto.FLOAT)
    action = graph.add("Concat", "action", in_world, jump, axis=1)
    limits = graph.constant("full_back", -1.0), graph.constant("full_ahead", 1.0)
    graph.add("Clip", "output", action, *limits)
