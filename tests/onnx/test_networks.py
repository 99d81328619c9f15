"""Policies written by torch run in Godot as in onnxruntime: plain, with images, with a memory."""

from pathlib import Path

import numpy as np
import pytest

from estragon.onnx.compare import GodotRuntime, OnnxRuntime, compare
from tests.onnx.corpus.cases import single
from tests.onnx.networks import NETWORKS, export
from tests.prove import Recorder

OLD_EXPORTER = [(name, opset) for name in NETWORKS for opset in (9, 17)]
SAMPLES = 4
DYNAMO = Path(__file__).parent / "dynamo" / "policy.onnx"
LSTM_STEP = 0.02
"""onnxruntime rounds an LSTM's inputs to 255 steps of their range, about 5 here; Godot does not."""


def agrees(path: Path, godot: GodotRuntime, onnx_runtime: OnnxRuntime) -> bool:
    onnx_runtime.load(path)
    godot.load(path)
    return bool(compare(godot, onnx_runtime, SAMPLES, np.random.default_rng(0))["agrees"])


@pytest.mark.parametrize(("name", "opset"), OLD_EXPORTER)
def test_the_old_exporter(
    name: str, opset: int, godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    path = export(name, tmp_path / "policy.onnx", dynamo=False, opset=opset)
    assert agrees(path, godot_runtime, onnx_runtime)


def test_a_file_of_the_new_exporter_with_its_weights_beside(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime
) -> None:
    """`export("mlp", DYNAMO, dynamo=True, opset=18)` made it; exporting takes 13 s of CPU time."""
    assert DYNAMO.with_suffix(".onnx.data").exists()
    assert agrees(DYNAMO, godot_runtime, onnx_runtime)


@pytest.mark.prove
@pytest.mark.filterwarnings("ignore")
def test_both_exporters(
    godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path, record_result: Recorder
) -> None:
    wrong, count = [], 0
    for name in NETWORKS:
        for dynamo, opsets in ((False, (9, 11, 13, 17)), (True, (18, 21))):
            for opset in opsets:
                count += 1
                file = tmp_path / f"{name}_{opset}.onnx"
                if not agrees(
                    export(name, file, dynamo=dynamo, opset=opset), godot_runtime, onnx_runtime
                ):
                    wrong.append(file.name)
    record_result(
        "onnx_exporters",
        f"{count - len(wrong)} of {count} networks by both exporters of torch agree",
        held=not wrong,
    )
    assert not wrong


@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_networks(
    name: str, godot_runtime: GodotRuntime, onnx_runtime: OnnxRuntime, tmp_path: Path
) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain = export(name, tmp_path / "policy.onnx", dynamo=False, opset=13)
    small = tmp_path / "small.onnx"
    # 7 bits: with 8, onnxruntime's own sums saturate on processors without VNNI (see below)
    quantize_dynamic(plain, small, weight_type=QuantType.QInt8, reduce_range=True)
    onnx_runtime.load(small)
    godot_runtime.load(small)
    if name != "gru":
        assert any("Integer" in op or "Quantize" in op for op in godot_runtime.operators)
    absolute = LSTM_STEP if name == "lstm" else 1e-5
    found = compare(
        godot_runtime, onnx_runtime, SAMPLES, np.random.default_rng(0), absolute=absolute
    )
    assert found["agrees"], found


@pytest.mark.parametrize("depth", [6, 64, 256])
def test_products_of_whole_numbers_are_exact_over_the_whole_range(
    depth: int, godot_runtime: GodotRuntime, tmp_path: Path
) -> None:
    """Against exact sums: without VNNI onnxruntime saturates pairs of products at 16 bits."""
    random = np.random.default_rng(depth)
    left = random.integers(0, 256, (3, depth)).astype(np.uint8)
    right = random.integers(-128, 128, (depth, 4)).astype(np.int8)
    case = single("MatMulInteger", 13, [left, right], constants=(1,))
    path = tmp_path / "product.onnx"
    path.write_bytes(case.model.SerializeToString())
    godot_runtime.load(path)
    found = godot_runtime.run(case.inputs[0])["out0"]
    assert np.array_equal(found, left.astype(np.int64) @ right.astype(np.int64))
