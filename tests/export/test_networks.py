"""Policies written by torch run in Godot as in onnxruntime: plain, with images, with a memory."""

from pathlib import Path

import numpy as np
import pytest

from estragon.export.commands import compare
from estragon.export.engines import Godot, Runtime
from tests.export.networks import NETWORKS, export
from tests.prove import Recorder

OLD_EXPORTER = [(name, opset) for name in NETWORKS for opset in (9, 17)]
SAMPLES = 4


def agrees(path: Path, godot: Godot, runtime: Runtime) -> bool:
    runtime.load(path)
    godot.load(path)
    return bool(compare(godot, runtime, SAMPLES, np.random.default_rng(0))["agrees"])


@pytest.mark.parametrize(("name", "opset"), OLD_EXPORTER)
def test_the_old_exporter(
    name: str, opset: int, godot_engine: Godot, runtime: Runtime, tmp_path: Path
) -> None:
    path = export(name, tmp_path / "policy.onnx", dynamo=False, opset=opset)
    assert agrees(path, godot_engine, runtime)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_new_exporter_with_its_weights_beside(
    godot_engine: Godot, runtime: Runtime, tmp_path: Path
) -> None:
    path = export("mlp", tmp_path / "policy.onnx", dynamo=True, opset=18)
    assert path.with_suffix(".onnx.data").exists()
    assert agrees(path, godot_engine, runtime)


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
def test_both_exporters(
    godot_engine: Godot, runtime: Runtime, tmp_path: Path, record_result: Recorder
) -> None:
    wrong, count = [], 0
    for name in NETWORKS:
        for dynamo, opsets in ((False, (9, 11, 13, 17)), (True, (18, 21))):
            for opset in opsets:
                count += 1
                file = tmp_path / f"{name}_{opset}.onnx"
                if not agrees(
                    export(name, file, dynamo=dynamo, opset=opset), godot_engine, runtime
                ):
                    wrong.append(file.name)
    record_result(
        "onnx_exporters",
        f"{count - len(wrong)} of {count} networks by both exporters of torch agree",
        held=not wrong,
    )
    assert not wrong


@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_networks_are_within_a_step(
    name: str, godot_engine: Godot, runtime: Runtime, tmp_path: Path
) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain = export(name, tmp_path / "policy.onnx", dynamo=False, opset=13)
    small = tmp_path / "small.onnx"
    # of the whole range onnxruntime's own products saturate on processors without VNNI
    quantize_dynamic(plain, small, weight_type=QuantType.QInt8, reduce_range=True)
    runtime.load(small)
    godot_engine.load(small)
    if name != "gru":
        assert any("Integer" in op or "Quantize" in op for op in godot_engine.operators)
    found = compare(godot_engine, runtime, SAMPLES, np.random.default_rng(0), absolute=0.02)
    assert found["agrees"], found
