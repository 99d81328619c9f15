"""Policies of the tag game back from `.onnx` files, number by number, for playing from Python."""

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from estragon.onnx.tag_export import _turned
from estragon.tag.frozen import FrozenPolicy
from estragon.tag.rules import Rules


def metadata(path: Path) -> dict[str, str]:
    return {entry.key: entry.value for entry in onnx.load(path).metadata_props}


def policy_in(path: Path, rules: Rules) -> FrozenPolicy:
    """The very policy that was exported."""
    numbers = {
        constant.name: numpy_helper.to_array(constant)
        for constant in onnx.load(path).graph.initializer
    }
    layers = sum(name.startswith("weight_") for name in numbers)
    about = metadata(path)
    return FrozenPolicy(
        "seeker" if about["role"] == "seeker" else "hider",
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
        trained_steps=int(about["agent_steps"]),
    )


def _put_back(turned_first: np.ndarray, rules: Rules) -> np.ndarray:
    """The rows of a graph's features in the order of an observation."""
    x, z = _turned(rules)
    rows = turned_first[-rules.observation.size :].copy()
    rows[x + z] = turned_first[: len(x) + len(z)]
    return rows
