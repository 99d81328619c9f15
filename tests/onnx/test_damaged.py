"""A damaged file is refused with a reason or runs; it never ends, stalls or bloats the game."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from estragon.godot.process import GodotError
from estragon.onnx.compare import GodotRuntime, random_inputs
from estragon.support.errors import UserError
from tests.onnx.corpus import corpus
from tests.onnx.corpus.cases import wrap
from tests.onnx.mutations import MUTATIONS
from tests.onnx.networks import NETWORKS, export
from tests.prove import Recorder

LARGEST_INPUT = 2**20
LONGEST_SEC = 30.0
MOST_MEMORY_MB = 1024
SHORT, LONG = 240, 6000


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Sound models to damage: each network, and one of every few of the corpus."""
    folder = tmp_path_factory.mktemp("models")
    files = [export(name, folder / name, dynamo=False, opset=13) for name in NETWORKS]
    small = [case.model.SerializeToString() for case in corpus((13, 21))]
    return [path.read_bytes() for path in files] * 12 + small[::11]


def damaged(models: list[bytes], count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    choice = random.Random(seed)
    for index in range(count):
        mutate = MUTATIONS[index % len(MUTATIONS)]
        yield mutate.__name__, mutate(choice.choice(models), choice)


def run_loaded(godot: GodotRuntime, random: np.random.Generator) -> bool:
    """Run what was loaded; what it says against the inputs is its right, a fault is none."""
    inputs = random_inputs(godot.inputs, random)
    if sum(array.size for array in inputs.values()) > LARGEST_INPUT:
        return False
    try:
        godot.run(inputs)
    except GodotError:
        raise
    except UserError:
        return False
    return True


def try_all(godot: GodotRuntime, models: list[bytes], count: int, folder: Path) -> dict[str, float]:
    """Load every file, and run what loads."""
    path = folder / "damaged.onnx"
    random = np.random.default_rng(0)
    refused, ran, slowest = 0, 0, 0.0
    for kind, data in damaged(models, count, seed=8):
        path.write_bytes(data)
        start = time.monotonic()
        try:
            godot.load(path)
        except GodotError:
            raise
        except UserError:
            refused += 1
        else:
            ran += run_loaded(godot, random)
        slowest = max(slowest, time.monotonic() - start)
        assert slowest < LONGEST_SEC, f"{kind} took {slowest:.0f} s"
    return {"refused": refused, "ran": ran, "slowest_sec": slowest}


def peak_memory_mb(godot: GodotRuntime) -> float:
    """The most memory Godot ever had, where the system tells."""
    status = Path(f"/proc/{godot.process.pid}/status")
    if not status.exists():
        return 0.0
    lines = [line.split() for line in status.read_text().splitlines()]
    return float(next(words[1] for words in lines if words[0] == "VmHWM:")) / 1024


@pytest.mark.slow
def test_some_damaged_files(
    models: list[bytes], godot_runtime: GodotRuntime, tmp_path: Path
) -> None:
    found = try_all(godot_runtime, models, SHORT, tmp_path)
    assert found["refused"] > SHORT // 3
    assert found["ran"] > 0


@pytest.mark.prove
def test_many_damaged_files(models: list[bytes], tmp_path: Path, record_result: Recorder) -> None:
    with GodotRuntime() as godot:
        found = try_all(godot, models, LONG, tmp_path)
        memory = peak_memory_mb(godot)
    record_result(
        "onnx_damaged_files",
        f"{LONG} damaged files: {found['refused']} refused with a reason, {found['ran']} ran, none "
        f"crashed; slowest {found['slowest_sec']:.1f} s, peak memory {memory:.0f} MB",
        held=memory < MOST_MEMORY_MB,
    )
    assert memory < MOST_MEMORY_MB


def refusal(godot: GodotRuntime, path: Path) -> str:
    with pytest.raises(UserError) as caught:
        godot.load(path)
    return str(caught.value)


X = {"x": np.zeros((2, 3), np.float32)}
WRONG = {
    "an operator that is not known": (
        [helper.make_node("Frobnicate", ["x"], ["out"], "odd")],
        'the operator Frobnicate "odd" cannot be run',
    ),
    "an operator of another domain": (
        [helper.make_node("Relu", ["x"], ["out"], "odd", domain="example.com")],
        'the operator example.com.Relu "odd" cannot be run',
    ),
    "an attribute that is not known": (
        [helper.make_node("Relu", ["x"], ["out"], "rectify", slope=0.5)],
        "Relu \"rectify\": its attribute 'slope' cannot be run",
    ),
    "an attribute of another type": (
        [helper.make_node("Elu", ["x"], ["out"], "bend", alpha=3)],
        "Elu \"bend\": its attribute 'alpha' is of another type",
    ),
    "a cycle": (
        [
            helper.make_node("Add", ["x", "b"], ["a"], "first"),
            helper.make_node("Relu", ["a"], ["b"], "second"),
            helper.make_node("Relu", ["b"], ["out"], "third"),
        ],
        "a cycle",
    ),
    "an input that nothing makes": (
        [helper.make_node("Add", ["x", "y"], ["out"], "sum")],
        "Add \"sum\" reads 'y', which nothing makes",
    ),
    "a wrong rank": (
        [helper.make_node("GlobalAveragePool", ["x"], ["out"], "pool")],
        'GlobalAveragePool "pool": it cannot work on float 2×3',
    ),
    "an output made twice": (
        [helper.make_node("Relu", ["x"], ["out"]), helper.make_node("Tanh", ["x"], ["out"])],
        "makes 'out' again",
    ),
    "a type that is not run": (
        [helper.make_node("Cast", ["x"], ["out"], "narrow", to=TensorProto.FLOAT16)],
        'Cast "narrow": it makes float16',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_run_is_refused_by_name(
    name: str, godot_runtime: GodotRuntime, tmp_path: Path
) -> None:
    nodes, message = WRONG[name]
    graph = helper.make_graph(
        nodes,
        "wrong",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_empty_tensor_value_info("out")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    path = tmp_path / "wrong.onnx"
    path.write_bytes(model.SerializeToString())
    assert message in refusal(godot_runtime, path)


@pytest.mark.parametrize("opset", [8, 22])
def test_other_opsets_are_refused(opset: int, godot_runtime: GodotRuntime, tmp_path: Path) -> None:
    model = wrap([helper.make_node("Relu", ["x"], ["out"])], X, set(), 13, ["out"])
    model.opset_import[0].version = opset
    path = tmp_path / "old.onnx"
    path.write_bytes(model.SerializeToString())
    assert f"opset {opset}; 9 to 21 can be run" in refusal(godot_runtime, path)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "the file is empty"), (b"not a model at all", "a field"), (b"\x08\x07", "graphs")],
)
def test_what_is_no_model(
    data: bytes, message: str, godot_runtime: GodotRuntime, tmp_path: Path
) -> None:
    path = tmp_path / "none.onnx"
    path.write_bytes(data)
    assert message in refusal(godot_runtime, path)


def test_weights_elsewhere_are_not_read(godot_runtime: GodotRuntime, tmp_path: Path) -> None:
    model = wrap([helper.make_node("Add", ["x", "w"], ["out"])], X, set(), 13, ["out"])
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(24))
    for location in (str(secret), f"..{os.sep}secret", "../secret"):
        tensor = model.graph.initializer.add()
        tensor.name, tensor.data_type = "w", TensorProto.FLOAT
        tensor.dims[:] = [2, 3]
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
        folder = tmp_path / "models"
        folder.mkdir(exist_ok=True)
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        assert "are not beside it" in refusal(godot_runtime, path)
        del model.graph.initializer[:]
