"""Models over operators, opsets and shapes give the same numbers in Godot and in onnxruntime."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest

from estragon.onnx.compare import GodotRuntime, OnnxRuntime
from estragon.support.errors import UserError
from tests.onnx.corpus import corpus
from tests.onnx.corpus.cases import OPSETS, Case
from tests.prove import Recorder

EVERY = 9
ABSOLUTE, RELATIVE = 1e-5, 1e-4


def differences(
    cases: Iterable[Case], godot: GodotRuntime, onnx_runtime: OnnxRuntime, folder: Path
) -> tuple[int, set[str], list[str]]:
    """How many cases there were, their operators, and what is not alike."""
    count, operators, unlike = 0, set(), []
    path = folder / "case.onnx"
    for case in cases:
        count += 1
        path.write_bytes(case.model.SerializeToString())
        operators |= {node.op_type for node in case.model.graph.node}
        try:
            onnx_runtime.load(path)
            godot.load(path)
            for inputs in case.inputs:
                unlike += compare(case, godot.run(inputs), onnx_runtime.run(inputs))
        except UserError as error:
            unlike.append(f"{case.name}: {error}")
    return count, operators, unlike


def compare(case: Case, ours: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> list[str]:
    unlike = []
    for name, expected in right.items():
        found = ours[name]
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            unlike.append(f"{case.name}: {name} is {found.dtype} {found.shape}")
        elif not np.allclose(found, expected, RELATIVE, ABSOLUTE, equal_nan=True):
            unlike.append(f"{case.name}: {name} is {found}, should be {expected}")
    return unlike


@pytest.mark.slow
def test_a_sample_of_the_corpus_agrees(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    cases = (case for index, case in enumerate(corpus()) if index % EVERY == 0)
    count, _, unlike = differences(cases, godot_runtime, onnx_runtime, tmp_path)
    assert count > 400
    assert not unlike, "\n".join(unlike)


@pytest.mark.prove
def test_the_corpus_agrees(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path, record_result: Recorder
) -> None:
    count, operators, unlike = differences(corpus(), godot_runtime, onnx_runtime, tmp_path)
    record_result(
        "onnx_corpus",
        f"{count - len(unlike)} of {count} models over {len(operators)} operators and opsets "
        f"{OPSETS[0]} to {OPSETS[-1]} agree with onnxruntime",
        held=not unlike,
    )
    assert not unlike, "\n".join(unlike)


def test_the_corpus_has_every_operator_that_can_be_run() -> None:
    source = Path(__file__).parents[2] / "godot/addons/godot_rl_agents/onnx/operators"
    text = (source / "onnx_operators.gd").read_text()
    tried = {node.op_type for case in corpus((13, 21)) for node in case.model.graph.node}
    missing = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if not schema.domain and f" {schema.name} " in text.replace('"', " ").replace("\n", " ")
    } - tried
    assert not missing - {"CastLike", "Dropout"}
