"""A policy of the tag game as an ONNX graph: world axes in, world axes out.

Everything `FrozenPolicy.act` does is in the graph, in the same order: the turn into the heading
frame, the normalisation, the network, the choice of a move, and the turn back. Inputs and outputs
have the names that Godot RL Agents gives them.
"""

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from estragon.tag.frozen import CLIP, TURNED_FIELDS, FrozenPolicy
from estragon.tag.rules import ACTION_SIZE, Rules

OPSET, IR_VERSION = 13, 8
"""Old enough for every runtime in use."""


class _Graph:
    """Nodes and constants, put down one after another; a value is known by its name."""

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.constants: list[object] = []

    def constant(self, name: str, value: object, dtype: type = np.float32) -> str:
        array = np.ascontiguousarray(value, dtype=dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, result: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, list(inputs), [result], result, **attributes))
        return result

    def columns(self, result: str, of: str, indices: object) -> str:
        """Some columns of a matrix."""
        return self.add("Gather", result, of, self.constant(f"{result}_at", indices, np.int64), axis=1)


def tag_model(policy: FrozenPolicy, rules: Rules, about: Mapping[str, str]) -> ModelProto:
    """The policy as a model that plays without chance; `about` is kept in it as metadata."""
    graph = _Graph()
    forward = rules.field("forward").start
    forward_x = graph.columns("forward_x", "obs", [forward])
    forward_z = graph.columns("forward_z", "obs", [forward + 1])
    features = _features(graph, policy, rules, forward_x, forward_z)
    scores = _network(graph, policy, features, _order(rules))
    _action(graph, policy, scores, forward_x, forward_z)
    graph.columns("value", scores, [len(policy.moves) + 1])
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


def _port(name: str, *sizes: int) -> object:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *sizes])


def _turned(rules: Rules) -> tuple[list[int], list[int]]:
    """Where the x and the z of everything that is turned lie in an observation."""
    starts = [rules.field(field).start for field in TURNED_FIELDS]
    return starts, [start + 2 for start in starts]


def _order(rules: Rules) -> list[int]:
    """The order of features in the graph: what is turned first, so that nothing is put back."""
    x, z = _turned(rules)
    turned = {*x, *z}
    return x + z + [place for place in range(rules.observation.size) if place not in turned]


def _features(
    graph: _Graph, policy: FrozenPolicy, rules: Rules, forward_x: str, forward_z: str
) -> str:
    """Observations in the heading frame, normalised."""
    order = _order(rules)
    places_x, places_z = _turned(rules)
    x, z = graph.columns("x", "obs", places_x), graph.columns("z", "obs", places_z)
    rest = graph.columns("rest", "obs", order[len(places_x) + len(places_z) :])
    ahead = graph.add(
        "Add",
        "ahead",
        graph.add("Mul", "x_ahead", x, forward_x),
        graph.add("Mul", "z_ahead", z, forward_z),
    )
    aside = graph.add(
        "Sub",
        "aside",
        graph.add("Mul", "z_aside", z, forward_x),
        graph.add("Mul", "x_aside", x, forward_z),
    )
    turned = graph.add("Concat", "turned", ahead, aside, rest, axis=1)
    centred = graph.add("Sub", "centred", turned, graph.constant("mean", policy.mean[order]))
    scaled = graph.add("Div", "scaled", centred, graph.constant("scale", policy.scale[order]))
    limits = graph.constant("least", -CLIP), graph.constant("most", CLIP)
    return graph.add("Clip", "features", scaled, *limits)


def _network(graph: _Graph, policy: FrozenPolicy, features: str, order: list[int]) -> str:
    values = features
    for layer, (weight, bias) in enumerate(policy.weights):
        rows = weight[order] if layer == 0 else weight
        numbers = (
            graph.constant(f"weight_{layer}", rows),
            graph.constant(f"bias_{layer}", bias),
        )
        values = graph.add("Gemm", f"layer_{layer}", values, *numbers)
        if layer < len(policy.weights) - 1:
            values = graph.add("Relu", f"hidden_{layer}", values)
    return values


def _action(
    graph: _Graph, policy: FrozenPolicy, scores: str, forward_x: str, forward_z: str
) -> None:
    """The best move turned back into world axes, and whether to jump."""
    choices = len(policy.moves)
    move_scores = graph.columns("move_scores", scores, np.arange(choices))
    choice = graph.add("ArgMax", "choice", move_scores, axis=1, keepdims=1)
    ahead, aside = (
        graph.add(
            "Gather", f"move_{name}", graph.constant(f"moves_{name}", column), choice, axis=0
        )
        for name, column in zip(("ahead", "aside"), policy.moves.T, strict=True)
    )
    move_x = graph.add(
        "Sub",
        "move_x",
        graph.add("Mul", "ahead_x", ahead, forward_x),
        graph.add("Mul", "aside_z", aside, forward_z),
    )
    move_z = graph.add(
        "Add",
        "move_z",
        graph.add("Mul", "ahead_z", ahead, forward_z),
        graph.add("Mul", "aside_x", aside, forward_x),
    )
    jump_score = graph.columns("jump_score", scores, [choices])
    jumps = graph.add("Greater", "jumps", jump_score, graph.constant("zero", 0.0))
    jump = graph.add("Cast", "jump", jumps, to=TensorProto.FLOAT)
    action = graph.add("Concat", "action", move_x, move_z, jump, axis=1)
    limits = graph.constant("full_back", -1.0), graph.constant("full_ahead", 1.0)
    graph.add("Clip", "output", action, *limits)
