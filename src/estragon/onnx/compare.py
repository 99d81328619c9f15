"""Run a model once on given inputs, or in both engines on random ones to compare them."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np

from estragon.onnx.engines import Engine, GodotRuntime, OnnxRuntime, Port
from estragon.support.errors import UserError

BATCHES = (1, 2, 5)


def run_once(model: Path, inputs: Path, engine: Literal["godot", "onnxruntime"]) -> dict[str, Any]:
    """Outputs by name as nested lists, for a JSON file of inputs by name; NaN becomes null."""
    _check_file(model)
    try:
        given = json.loads(inputs.read_text())
    except OSError as error:
        raise UserError(f"cannot read {inputs}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(f"{inputs} is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise UserError(f"{inputs}: expected an object, a nested list for each input by its name")
    if engine == "onnxruntime":
        return _run(OnnxRuntime(), model, given)
    with GodotRuntime() as godot:
        return _run(godot, model, given)


def _run(engine: Engine, model: Path, given: dict[str, Any]) -> dict[str, Any]:
    engine.load(model)
    outputs = engine.run(_arrays(given, engine.inputs))
    return {name: _plain(array) for name, array in outputs.items()}


def compare_file(
    model: Path, samples: int, seed: int, absolute: float, relative: float
) -> dict[str, Any]:
    """`compare` of a file in newly started engines."""
    _check_file(model)
    runtime = OnnxRuntime()
    runtime.load(model)
    with GodotRuntime() as godot:
        godot.load(model)
        random = np.random.default_rng(seed)
        return compare(godot, runtime, samples, random, absolute, relative)


def compare(
    godot: GodotRuntime,
    runtime: OnnxRuntime,
    samples: int,
    random: np.random.Generator,
    absolute: float = 1e-5,
    relative: float = 1e-4,
) -> dict[str, Any]:
    """The largest differences of both engines, which have loaded the same model."""
    worst, worst_relative, agrees = 0.0, 0.0, True
    for _ in range(samples):
        inputs = random_inputs(runtime.inputs, random)
        expected, found = runtime.run(inputs), godot.run(inputs)
        for name, right in expected.items():
            ours = found[name]
            if ours.shape != right.shape or ours.dtype != right.dtype:
                raise UserError(
                    f"'{name}' is {ours.dtype} {ours.shape} in Godot, "
                    f"{right.dtype} {right.shape} in onnxruntime"
                )
            error = _error(ours, right)
            size = np.abs(np.where(np.isfinite(right), right, 0.0).astype(np.float64))
            agrees = agrees and bool((error <= absolute + relative * size).all())
            worst = max(worst, float(error.max(initial=0.0)))
            worst_relative = max(worst_relative, float((error / (size + 1e-12)).max(initial=0.0)))
    return {
        "max_abs_error": worst,
        "max_rel_error": worst_relative,
        "samples": samples,
        "operators": godot.operators,
        "agrees": agrees,
    }


def random_inputs(ports: list[Port], random: np.random.Generator) -> dict[str, np.ndarray]:
    """An array for each input; dimensions of one name have one size, the first is the batch."""
    batch = int(random.choice(BATCHES))
    inputs = {}
    for port in ports:
        shape = [size if isinstance(size, int) else batch for size in port.shape]
        if "seq_lens" in port.name:
            inputs[port.name] = np.ones(shape, dtype=port.dtype)
        elif port.dtype.kind == "f":
            inputs[port.name] = random.normal(size=shape).astype(port.dtype)
        else:
            most = 256 if port.dtype == np.uint8 else 2
            inputs[port.name] = random.integers(0, most, shape).astype(port.dtype)
    return inputs


def _check_file(model: Path) -> None:
    if not model.is_file():
        raise UserError(f"no file {model}")


def _error(ours: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Absolute differences; the same infinity or NaN is no difference."""
    a, b = ours.astype(np.float64), right.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        error: np.ndarray = np.where(same, 0.0, np.abs(a - b))
    error[np.isnan(error)] = np.inf
    return error


def _arrays(given: dict[str, Any], ports: list[Port]) -> dict[str, np.ndarray]:
    names = [port.name for port in ports]
    if unknown := [name for name in given if name not in names]:
        raise UserError(f"the model has no input '{unknown[0]}'; it has {', '.join(names)}")
    if missing := [port for port in ports if port.name not in given]:
        raise UserError(f"missing input '{missing[0].name}', {missing[0].dtype}")
    arrays = {}
    for port in ports:
        shape = f"[{', '.join(str(size or '?') for size in port.shape)}]"
        try:
            array = np.asarray(given[port.name]).astype(port.dtype)
        except (TypeError, ValueError) as error:
            raise UserError(f"'{port.name}' is not an array of {port.dtype}: {error}") from error
        fits = array.ndim == len(port.shape) and all(
            not isinstance(size, int) or size == actual
            for size, actual in zip(port.shape, array.shape, strict=False)
        )
        if port.shape and not fits:
            raise UserError(f"'{port.name}': expected shape {shape}, got {list(array.shape)}")
        arrays[port.name] = array
    return arrays


def _plain(array: np.ndarray) -> Any:
    """Nested lists, with null for what JSON cannot hold."""
    if array.dtype.kind != "f":
        return array.tolist()
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()
