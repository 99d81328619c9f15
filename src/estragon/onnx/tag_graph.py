"""A policy of the tag game as an ONNX graph: world axes in, world axes out.

Everything `FrozenPolicy.act` does is in the graph, in the same order: the turn into the heading
frame, the normalisation, the network, the choice of a move, and the turn back. Inputs and outputs
have the names that Godot RL Agents gives them.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from estragon.tag.frozen import CLIP, TURNED_FIELDS, FrozenPolicy
from estragon.tag.rules import ACTION_SIZE, Rules

OPSET, IR_VERSION = 13, 8
"""Old enough for every runtime in use."""


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
