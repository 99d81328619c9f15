"""`estragon onnx run`, `estragon onnx compare` and `estragon onnx bench`."""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from estragon.cli import main
from estragon.onnx.compare import GodotRuntime, Port, random_inputs
from tests.onnx.networks import export


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "policy.onnx"
    return export("gru", path, dynamo=False, opset=13)


@pytest.fixture(scope="module")
def inputs(policy: Path) -> Path:
    path = policy.with_name("inputs.json")
    obs = np.linspace(-1, 1, 24).reshape(2, 12).tolist()
    path.write_text(json.dumps({"obs": obs, "state_ins": np.zeros((2, 16)).tolist()}))
    return path


@pytest.fixture
def shared_godot(godot_runtime: GodotRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use the Godot process of all tests instead of starting one."""
    monkeypatch.setattr(
        "estragon.onnx.compare.GodotRuntime", lambda: contextlib.nullcontext(godot_runtime)
    )


@pytest.mark.usefixtures("shared_godot")
def test_both_engines_print_the_same(
    policy: Path, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for engine in ("godot", "onnxruntime"):
        words = ["onnx", "run", str(policy), "--inputs", str(inputs), "--engine", engine]
        assert main(words) == 0
        printed.append(json.loads(capsys.readouterr().out))
    for name in ("output", "state_outs"):
        ours, right = (np.array(outputs[name]) for outputs in printed)
        assert ours.shape == right.shape
        assert np.allclose(ours, right, 1e-4, 1e-5)


def test_without_inputs_it_says_what_the_model_is(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["onnx", "run", str(policy)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == {"obs": "float32 [batch, 12]", "state_ins": "float32 [batch, 16]"}
    assert found["opset"] == 13
    assert "GRU" in found["operators"]
    assert found["metadata"] == {}


def test_bench_names_the_slowest_nodes(
    policy: Path,
    godot_runtime: GodotRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        "estragon.onnx.bench.GodotRuntime", lambda: contextlib.nullcontext(godot_runtime)
    )
    report = tmp_path / "bench.json"
    words = ["--seconds", "0.02", "--batch", "1", "4", "--json", str(report)]
    assert main(["onnx", "bench", str(policy), *words]) == 0
    shown = capsys.readouterr().out
    assert "slowest in Godot (one agent)" in shown
    found = json.loads(report.read_text())
    assert [row["batch"] for row in found["latency"]] == [1, 4]
    for engine in ("godot", "onnxruntime"):
        assert all(row[f"{engine}_usec"] > 0.0 for row in found["latency"])
        steps = found[f"{engine}_steps"]
        assert any("GRU" in name for name, _ in steps)
        assert [usec for _, usec in steps] == sorted((u for _, u in steps), reverse=True)


@pytest.mark.parametrize("verb", ["run", "bench"])
def test_what_is_no_model(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    for name in ("bad.onnx", "none.onnx"):
        assert main(["onnx", verb, str(tmp_path / name)]) == 2
        error = capsys.readouterr().err
        assert name in error
        assert error.count("\n") == 1


def test_compare_prints_one_object(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["onnx", "compare", str(policy), "--samples", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"max_abs_error", "max_rel_error", "samples", "operators"}
    assert found["samples"] == 3
    assert "GRU" in found["operators"]
    assert 0.0 <= found["max_abs_error"] < 1e-5


@pytest.mark.usefixtures("shared_godot")
def test_compare_fails_above_the_tolerance(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["onnx", "compare", str(policy), "--absolute", "0", "--relative", "0"]
    assert main(words) == 1
    assert json.loads(capsys.readouterr().out)["max_abs_error"] > 0.0


def wrong_inputs(folder: Path, text: str) -> Path:
    path = folder / "wrong.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2]", "expected an object"),
        ("{", "is not JSON"),
        ('{"obs": [[0]]}', "'state_ins'"),
        ('{"obs": [[0]], "state_ins": [[0]]}', "'obs': expected shape [batch, 12], got [1, 1]"),
        ('{"eyes": [[0]]}', "no input 'eyes'; it has obs, state_ins"),
        ('{"obs": "much", "state_ins": [[0]]}', "'obs' is not an array"),
    ],
)
def test_wrong_inputs_are_said(
    text: str, says: str, policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wrong_inputs(tmp_path, text)
    words = ["onnx", "run", str(policy), "--inputs", str(path), "--engine", "onnxruntime"]
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_missing_model_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["onnx", "compare", "none.onnx"]) == 2
    assert "no file none.onnx" in capsys.readouterr().err


@pytest.mark.usefixtures("shared_godot")
def test_a_model_that_cannot_run_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = helper.make_graph(
        [helper.make_node("Det", ["x"], ["y"], "area")],
        "unsupported",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "det.onnx"
    onnx.save(model, path)
    assert main(["onnx", "compare", str(path)]) == 2
    assert 'the operator Det "area" cannot be run' in capsys.readouterr().err


def test_without_the_extra_one_line_says_what_to_install(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["onnx", "compare", str(policy)]) == 2
    assert capsys.readouterr().err == (
        "estragon: 'estragon onnx compare' needs onnxruntime; run: pip install 'estragon[onnx]'\n"
    )


def test_free_sizes_of_one_name_are_the_same() -> None:
    kind = np.dtype(np.float32)
    ports = [Port("obs", kind, ("batch", 3)), Port("state", kind, (2, "batch", 4))]
    for seed in range(5):
        found = random_inputs(ports, np.random.default_rng(seed))
        assert found["obs"].shape[0] == found["state"].shape[1]
